//! What monitoring asks this process: its metrics, whether it lives, whether it is ready.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::metrics::{PageMetrics, Sizes};
use crate::doors::url_list::UrlList;
use crate::listener::{self, Connections};
use crate::measures::{DoorName, Measures};
use crate::settings::Values;

/// The queue is asked so often at the most, however many ask us.
const SIZES_CACHE: Duration = Duration::from_secs(1);
/// Those who monitor are few.
const MAX_CONNECTIONS: usize = 64;
/// How long an answer under way may take after the signal to stop.
const GRACE: Duration = Duration::from_secs(1);

/// What is told.
pub(super) struct Exposition {
    queue: UrlList,
    metrics: Arc<PageMetrics>,
    measures: Arc<Measures>,
    last: Mutex<Option<(Instant, Option<Sizes>)>>,
}

impl Exposition {
    pub(super) fn new(
        queue: UrlList,
        metrics: Arc<PageMetrics>,
        measures: Arc<Measures>,
    ) -> Exposition {
        Exposition { queue, metrics, measures, last: Mutex::default() }
    }

    /// Answers until `stop`.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        values: &Values,
        stop: CancellationToken,
    ) {
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .with_state(Arc::new(self));
        let bounds = Connections::few(values, MAX_CONNECTIONS, GRACE);
        listener::serve(listener, router, bounds, stop).await;
    }

    /// As they were a moment ago; `None`: the queue could not be asked.
    async fn sizes(&self) -> Option<Sizes> {
        let mut last = self.last.lock().await;
        if let Some((at, sizes)) = *last
            && at.elapsed() < SIZES_CACHE
        {
            return sizes;
        }
        let (sizes, ledger) = self.queue.sizes().await.ok().unzip();
        self.measures.door(DoorName::Pages).note_ledger(ledger);
        *last = Some((Instant::now(), sizes));
        sizes
    }
}

async fn metrics(State(told): State<Arc<Exposition>>) -> Response {
    let content_type = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let text = told.metrics.render(told.sizes().await) + &told.measures.render();
    (content_type, text).into_response()
}

async fn readyz(State(told): State<Arc<Exposition>>) -> Response {
    match told.sizes().await {
        Some(_) => "ok\n".into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the queue can't be reached\n").into_response(),
    }
}
