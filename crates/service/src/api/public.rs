//! Endpoints that need no token: health checks and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request, State};
use axum::response::IntoResponse;
use fetchwell_engine::store_health::StoreCall;
use fetchwell_telemetry::metrics::DoorName;
use http::header::CONTENT_TYPE;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::identity::Identity;
use super::problems::StoreProblems;
use super::{Api, ApiResult};
use crate::problem::{PROBLEM_JSON, Problem, ProblemBody, ProblemKind};

/// The store is checked at most this often, however many clients ask.
const READINESS_CACHE: Duration = Duration::from_secs(1);

/// Whether the store can be read and written; if not, the call that fails, or `None` if the store does not answer.
type StoreState = Result<(), Option<StoreCall>>;

/// The last known state of the store.
#[derive(Default)]
pub(super) struct Readiness(Mutex<Option<(Instant, StoreState)>>);

/// Check whether the process is alive
#[utoipa::path(
    get, path = "/livez", tag = "Operations",
    responses((status = 200, description = "the process is alive", body = String, content_type = "text/plain"))
)]
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// Check whether messages are accepted and fetched, and whether results are stored
#[utoipa::path(
    get, path = "/readyz", tag = "Operations",
    responses(
        (status = 200, description = "ready", body = String, content_type = "text/plain"),
        (status = 503, description = "not ready", body = ProblemBody, content_type = PROBLEM_JSON, headers(("Retry-After" = u64, description = "seconds to wait"))),
    )
)]
pub(super) async fn readyz(State(api): State<Arc<Api>>) -> Result<&'static str, Problem> {
    if api.on.stop.is_cancelled() {
        return Err(Problem::new(ProblemKind::STORE_UNAVAILABLE)
            .saying("The server is stopping; use another one.")
            .retry_after(super::STORE_RETRY_SECONDS));
    }
    let mut last = api.readiness.0.lock().await;
    let known = last.filter(|(at, _)| at.elapsed() < READINESS_CACHE).map(|(_, ready)| ready);
    let ready = match known {
        Some(ready) => ready,
        None => {
            let fatal = api.on.health.fatal();
            let failing = || api.on.health.failing_anywhere(StoreCall::stops_work);
            let ready = match fatal.or_else(failing) {
                Some(failing) => Err(Some(failing.call)),
                None if api.stored(api.on.inbox.check().await).is_err() => Err(None),
                None => Ok(()),
            };
            *last = Some((Instant::now(), ready));
            ready
        }
    };
    let down = |failing| {
        Problem::new(ProblemKind::STORE_UNAVAILABLE)
            .saying(why_not_ready(failing))
            .retry_after(super::STORE_RETRY_SECONDS)
    };
    ready.map(|()| "ok\n").map_err(down)
}

/// This page is public, and an error of the store may contain the name of its server, so only the log has the error.
fn why_not_ready(failing: Option<StoreCall>) -> String {
    let means = match failing {
        Some(StoreCall::Engine) => {
            return "The server is stopping after an internal error; use another one.".to_owned();
        }
        Some(call) => call.means(),
        None => "it does not answer",
    };
    format!("The store is failing: {means}. See the server's log for the cause.")
}

/// Metrics for Prometheus
///
/// Public unless the setting `retriever.public_metrics` is false.
#[utoipa::path(
    get, path = "/metrics", tag = "Operations",
    responses(
        (status = 200, description = "metrics in the Prometheus text format", body = String, content_type = "text/plain; version=0.0.4"),
        (status = 401, description = "no token, or an invalid one", body = ProblemBody, content_type = PROBLEM_JSON, headers(("WWW-Authenticate" = String, description = "Bearer"))),
        StoreProblems,
    )
)]
pub(super) async fn metrics(State(api): State<Arc<Api>>, request: Request) -> ApiResult {
    if !api.rules.public_metrics {
        let (mut parts, _) = request.into_parts();
        Identity::from_request_parts(&mut parts, &api).await?;
    }
    let ledger = api.stored(api.on.inbox.ledger().await)?;
    let content_type = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    api.on.process_metrics.door(DoorName::Serve).note_ledger(Some(ledger));
    let text = api.on.metrics.render(&ledger) + &api.on.process_metrics.render();
    Ok((content_type, text).into_response())
}
