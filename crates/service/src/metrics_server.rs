//! Metrics and health checks over HTTP, for processes without an API.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::{self, ConnectionLimits, ConnectionRules};

/// Only a few clients read metrics.
const MAX_CONNECTIONS: usize = 64;
/// How long a response in progress may take after the signal to stop.
const GRACE: Duration = Duration::from_secs(1);

/// Renders the metrics.
pub type Text = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Whether the process is ready; `Err` says why it is not.
pub type Readiness = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Wraps a synchronous function.
pub fn at_once(text: impl Fn() -> String + Send + Sync + 'static) -> Text {
    Arc::new(move || -> BoxFuture<'static, String> { Box::pin(ready(text())) })
}

/// Serves `/metrics`, `/livez` and, with a `readiness`, `/readyz`, until `stop`. Without a listener it returns at once.
pub async fn serve(
    listener: Option<TcpListener>,
    rules: ConnectionRules,
    text: Text,
    readiness: Option<Readiness>,
    stop: CancellationToken,
) {
    let Some(listener) = listener else { return };
    let metrics = async move || {
        ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text().await).into_response()
    };
    let mut router =
        Router::new().route("/metrics", get(metrics)).route("/livez", get(async || "ok\n"));
    if let Some(readiness) = readiness {
        router = router.route("/readyz", get(async move || readyz(readiness().await)));
    }
    let bounds = ConnectionLimits::few(rules, MAX_CONNECTIONS, GRACE);
    server::serve(listener, router, bounds, stop).await;
}

fn readyz(readiness: Result<(), String>) -> Response {
    match readiness {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_testkit::plain_http::ask;

    use super::*;

    #[tokio::test]
    async fn readiness_is_told_only_where_there_is_one() {
        let not_ready: Readiness = Arc::new(|| -> BoxFuture<'static, Result<(), String>> {
            Box::pin(ready(Err::<(), _>("there is no store".to_owned())))
        });
        for (readiness, expected) in [(None, 404), (Some(not_ready), 503)] {
            let has_reason = readiness.is_some();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let rules = ConnectionRules { per_address: 64, trusted_proxies: Vec::new() };
            let stop = CancellationToken::new();
            let text = at_once(|| "up 1\n".to_owned());
            let serving = serve(Some(listener), rules, text, readiness, stop.clone());
            let serving = tokio::spawn(serving);
            let metrics = ask(address, "", "GET /metrics", &[], "").await.unwrap();
            assert_eq!((metrics.status, metrics.body.as_slice()), (200, &b"up 1\n"[..]));
            let readyz = ask(address, "", "GET /readyz", &[], "").await.unwrap();
            assert_eq!(readyz.status, expected);
            assert_eq!(readyz.body == b"there is no store\n", has_reason);
            stop.cancel();
            serving.await.unwrap();
        }
    }
}
