//! Opens listeners, and serves metrics.

use std::net::SocketAddr;

use fetchwell_service::metrics_server::{self, at_once};
use fetchwell_service::server::ConnectionRules;
use fetchwell_settings::Values;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

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

/// Runs `work` beside a server of these metrics, which ends with `stop`. When the work ends, it cancels `stop`.
pub(crate) async fn with_metrics<T>(
    listener: Option<TcpListener>,
    values: &Values,
    metrics: impl Fn() -> String + Send + Sync + 'static,
    stop: CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let rules = connection_rules(values);
    let serving = metrics_server::serve(listener, rules, at_once(metrics), None, stop.clone());
    let work = async {
        let ended = work.await;
        stop.cancel();
        ended
    };
    tokio::join!(work, serving).0
}
