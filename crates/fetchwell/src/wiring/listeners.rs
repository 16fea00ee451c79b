//! Opens listeners.

use std::net::SocketAddr;

use fetchwell_service::server::ConnectionRules;
use fetchwell_settings::Values;
use tokio::net::TcpListener;

use crate::console::exit::Exit;

/// The rules for all listeners of this process.
pub(crate) fn connection_rules(values: &Values) -> ConnectionRules {
    ConnectionRules {
        per_address: values.api_max_connections_per_address,
        trusted_proxies: values.api_trusted_proxies.clone(),
    }
}

/// Binds a listener; `fix` tells the user what to do if that fails.
pub(crate) async fn listen(address: SocketAddr, fix: &str) -> Result<TcpListener, Exit> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Exit::Usage(format!("cannot listen on {address}: {error}; {fix}")))
}

/// Binds the metrics listener, if there is an address. Called before any work is taken, so that errors show early.
pub(crate) async fn listen_for_metrics(
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, Exit> {
    let Some(address) = address else { return Ok(None) };
    let fix = "use another address with --metrics-listen, or '' to disable metrics";
    listen(address, fix).await.map(Some)
}
