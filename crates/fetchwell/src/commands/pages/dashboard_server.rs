//! The dashboard of this door, on its own listener.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::pages::PagePorts;
use fetchwell_service::audit::{AuditLog, AuthFailures};
use fetchwell_service::auth::ApiToken;
use fetchwell_service::dashboard::{self, Authenticator, Dashboard, MetricsHistory, Subject};
use fetchwell_service::server::{self, ConnectionLimits};
use fetchwell_settings::Settings;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::console::exit::Exit;
use crate::console::output::print;
use crate::wiring::{
    self, Parts, connection_rules, crawl_progress, open_articles_if_any, open_sites, system_info,
};

/// A dashboard has few users.
const MAX_CONNECTIONS: usize = 256;
/// How long a response in progress may take after the signal to stop.
const GRACE: Duration = Duration::from_secs(1);

/// What the dashboard shows.
pub(super) struct DashboardServer<'a> {
    pub(super) settings: &'a Settings,
    pub(super) ports: &'a PagePorts,
    pub(super) parts: &'a Parts,
}

/// Binds the listener before any work is taken.
pub(super) async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Exit> {
    let Some(address) = address else { return Ok(None) };
    wiring::listen(address, "use another address with --dashboard=ADDR:PORT").await.map(Some)
}

impl DashboardServer<'_> {
    /// Serves until `stop`. An error here does not stop the fetching.
    pub(super) async fn serve(
        &self,
        listener: Option<TcpListener>,
        stop: &CancellationToken,
    ) -> Result<(), Exit> {
        let Some(listener) = listener else { return Ok(()) };
        let address = listener.local_addr()?;
        self.parts.own_listeners.register(address);
        let authenticator = Authenticator::OneToken(self.token(address)?);
        let dashboard = Dashboard::new(self.subject(authenticator).await?, stop.clone());
        info!("the dashboard is at http://{address}/");
        let bounds =
            ConnectionLimits::few(connection_rules(&self.settings.values), MAX_CONNECTIONS, GRACE);
        let router = dashboard::alone(&dashboard);
        let serving = server::serve(listener, router, bounds, stop.clone());
        tokio::join!(serving, dashboard.keep_history(), dashboard.keep_audit(stop));
        Ok(())
    }

    /// The hash of the configured token, or else of a new one, which is printed once.
    fn token(&self, address: SocketAddr) -> Result<[u8; 32], Exit> {
        if let Some(token) = &self.settings.values.dashboard_token {
            return Ok(Sha256::digest(token.reveal().as_bytes()).into());
        }
        let token = ApiToken::generate()?;
        let said = format!(
            "Dashboard: http://{address}/\nToken, valid until this process exits:\n\n  {}\n\n\
             To keep the same token, set dashboard.token.\n",
            token.reveal()
        );
        print(said.as_bytes())?;
        Ok(token.hash())
    }

    async fn subject(&self, authenticator: Authenticator) -> Result<Subject, Exit> {
        let politeness = self.parts.politeness.clone();
        let clock = self.parts.clock.clone();
        let audit = AuditLog::of_process(clock.clone());
        let sites =
            open_sites(self.settings, politeness, Some(audit.clone()), clock.clone()).await?;
        Ok(Subject {
            door: dashboard::DashboardHost::Pages,
            system: system_info(self.settings),
            auth_failures: Arc::new(AuthFailures::new(clock.clone())),
            clock,
            authenticator,
            audit,
            process_metrics: self.parts.process_metrics.clone(),
            history: MetricsHistory::default(),
            sites: Arc::new(sites),
            oversight: None,
            dead_letters: Some(self.ports.queue.clone()),
            articles: open_articles_if_any(self.settings).await?,
            crawl_progress: crawl_progress(self.settings),
        })
    }
}
