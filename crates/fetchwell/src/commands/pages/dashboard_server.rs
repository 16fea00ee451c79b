//! The dashboard of this door, on its own listener.

use std::net::SocketAddr;
use std::time::Duration;

use fetchwell_doors::pages::PagePorts;
use fetchwell_service::audit::AuditLog;
use fetchwell_service::auth::ApiToken;
use fetchwell_service::dashboard::{Authenticator, DashboardHost, Subject};
use fetchwell_service::server::ConnectionLimits;
use fetchwell_settings::{Settings, Values};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::console::exit::Exit;
use crate::console::output::print;
use crate::wiring::{
    self, Parts, connection_rules, dashboard_subject, open_articles_if_any, serve_dashboard,
};

/// A dashboard has few users.
const MAX_CONNECTIONS: usize = 256;
/// How long a response in progress may take after the signal to stop.
const GRACE: Duration = Duration::from_secs(1);

/// Binds the listener before any work is taken.
pub(super) async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Exit> {
    let Some(address) = address else { return Ok(None) };
    wiring::listen(address, "use another address with --dashboard=ADDR:PORT").await.map(Some)
}

/// Serves until `stop`. An error here does not stop the fetching.
pub(super) async fn serve(
    settings: &Settings,
    ports: &PagePorts,
    parts: &Parts,
    listener: Option<TcpListener>,
    stop: &CancellationToken,
) -> Result<(), Exit> {
    let Some(listener) = listener else { return Ok(()) };
    let address = listener.local_addr()?;
    parts.own_listeners.register(address);
    let authenticator = Authenticator::OneToken(token(&settings.values, address)?);
    let audit = AuditLog::of_process(parts.clock.clone());
    let subject = Subject {
        dead_letters: Some(ports.queue.clone()),
        articles: open_articles_if_any(settings).await?,
        ..dashboard_subject(settings, parts, DashboardHost::Pages, authenticator, audit).await?
    };
    info!("the dashboard is at http://{address}/");
    let rules = connection_rules(&settings.values);
    let bounds = ConnectionLimits::few(rules, MAX_CONNECTIONS, GRACE);
    serve_dashboard(subject, listener, bounds, stop.clone()).await;
    Ok(())
}

/// The hash of the configured token, or else of a new one, which is printed once.
fn token(values: &Values, address: SocketAddr) -> Result<[u8; 32], Exit> {
    if let Some(token) = &values.dashboard_token {
        return Ok(Sha256::digest(token.reveal().as_bytes()).into());
    }
    let token = ApiToken::generate()?;
    print(format!(
        "Dashboard: http://{address}/\nToken, valid until this process exits:\n\n  {}\n\n\
         To keep the same token, set dashboard.token.\n",
        token.reveal()
    ))?;
    Ok(token.hash())
}
