//! The dashboard of the demo: anyone on this machine can view it; it is read-only.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_service::audit::AuditLog;
use fetchwell_service::dashboard::{Authenticator, DashboardHost, Subject};
use fetchwell_service::server::ConnectionLimits;
use fetchwell_settings::Settings;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::console::exit::Exit;
use crate::wiring::{Parts, connection_rules, dashboard_subject, serve_dashboard};

/// The preferred port; if it is in use, any free one.
const PORT: u16 = 8082;
const MAX_CONNECTIONS: usize = 64;
/// How long a response in progress may take after the end.
const GRACE: Duration = Duration::from_millis(200);

/// Serves the dashboard until the guard is dropped. Returns its URL.
pub(super) async fn begin(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
) -> Result<(String, DropGuard), Exit> {
    let at = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let listener = match at(PORT).await {
        Ok(listener) => listener,
        Err(_) => at(0).await?,
    };
    let address = format!("http://{}/", listener.local_addr()?);
    let audit = AuditLog::of_store(store.inbox.clone(), parts.clock.clone());
    let nobody = Authenticator::Nobody;
    let subject = Subject {
        oversight: Some(store.oversight.clone()),
        ..dashboard_subject(settings, parts, DashboardHost::Demo, nobody, audit).await?
    };
    let rules = connection_rules(&settings.values);
    let bounds = ConnectionLimits::few(rules, MAX_CONNECTIONS, GRACE);
    let stop = CancellationToken::new();
    tokio::spawn(serve_dashboard(subject, listener, bounds, stop.clone()));
    Ok((address, stop.drop_guard()))
}
