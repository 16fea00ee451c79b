//! Where a door tells its metrics, for those doors that have no API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use fetchwell_settings::Values;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::console::exit::Exit;
use crate::listener::{self, Connections};

/// Those who monitor are few.
const MAX_CONNECTIONS: usize = 64;
/// How long an answer under way may take after the signal to stop.
const GRACE: Duration = Duration::from_secs(1);

/// What Prometheus reads.
pub(crate) type Told = Arc<dyn Fn() -> String + Send + Sync>;

/// Listens there, before anything is taken.
pub(crate) async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Exit> {
    let Some(address) = address else { return Ok(None) };
    TcpListener::bind(address).await.map(Some).map_err(|error| {
        Exit::Usage(format!(
            "can't listen on {address}: {error}; --metrics-listen names another address, or '' for none"
        ))
    })
}

/// Answers at `/metrics` and `/livez` until `stop`.
pub(crate) async fn tell(
    listener: Option<TcpListener>,
    values: &Values,
    told: Told,
    stop: CancellationToken,
) {
    let Some(listener) = listener else { return };
    let metrics = async move || {
        ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], told()).into_response()
    };
    let router =
        Router::new().route("/metrics", get(metrics)).route("/livez", get(async || "ok\n"));
    let bounds = Connections::few(values, MAX_CONNECTIONS, GRACE);
    listener::serve(listener, router, bounds, stop).await;
}
