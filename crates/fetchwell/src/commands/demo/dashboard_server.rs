//! The dashboard of the demo: anyone on this machine can view it; it is read-only.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_service::audit::{AuditLog, AuthFailures};
use fetchwell_service::dashboard::{self, Authenticator, Dashboard, MetricsHistory, Subject};
use fetchwell_service::server::{self, ConnectionLimits};
use fetchwell_settings::Settings;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::counters::Counters;
use crate::console::exit::Exit;
use crate::wiring::{Parts, connection_rules, crawl_progress, open_sites, system_info};

/// The preferred port; if it is in use, any free one.
const PORT: u16 = 8082;
const MAX_CONNECTIONS: usize = 64;
/// How long a response in progress may take after the end.
const GRACE: Duration = Duration::from_millis(200);

/// A dashboard, served until this is dropped.
pub(super) struct DashboardServer {
    pub(super) address: String,
    _ends: DropGuard,
}

impl DashboardServer {
    pub(super) async fn begin(
        settings: &Settings,
        parts: &Parts,
        store: &RetrieverStore,
        counters: &Counters,
    ) -> Result<DashboardServer, Exit> {
        let at = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let listener = match at(PORT).await {
            Ok(listener) => listener,
            Err(_) => at(0).await?,
        };
        let address = format!("http://{}/", listener.local_addr()?);
        let politeness = parts.politeness.clone();
        let clock = parts.clock.clone();
        let sites = Arc::new(open_sites(settings, politeness, None, clock).await?);
        let subject = Subject {
            door: dashboard::DashboardHost::Demo,
            system: system_info(settings),
            clock: parts.clock.clone(),
            authenticator: Authenticator::Nobody,
            audit: AuditLog::of_store(store.inbox.clone(), parts.clock.clone()),
            auth_failures: Arc::new(AuthFailures::new(parts.clock.clone())),
            process_metrics: counters.process_metrics.clone(),
            history: MetricsHistory::default(),
            sites,
            oversight: Some(store.oversight.clone()),
            dead_letters: None,
            articles: None,
            crawl_progress: crawl_progress(settings),
        };
        let stop = CancellationToken::new();
        let dashboard = Dashboard::new(subject, stop.clone());
        let bounds =
            ConnectionLimits::few(connection_rules(&settings.values), MAX_CONNECTIONS, GRACE);
        let router = dashboard::alone(&dashboard);
        let serving = server::serve(listener, router, bounds, stop.clone());
        let ends = stop.clone().drop_guard();
        tokio::spawn(async move {
            tokio::join!(serving, dashboard.keep_history(), dashboard.keep_audit(&stop))
        });
        Ok(DashboardServer { address, _ends: ends })
    }
}
