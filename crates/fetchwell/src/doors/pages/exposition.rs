//! What monitoring asks this process: its metrics, whether it lives, whether it is ready.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
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
    stores: Stores,
    last: Mutex<Option<(Instant, Option<Sizes>)>>,
}

/// Where this process writes, and how that goes.
pub(super) struct Stores {
    pub(super) health: Arc<StoreHealth>,
    /// Events go to Kafka, which the store knows nothing of.
    pub(super) events_elsewhere: bool,
}

impl Stores {
    /// Whether what comes in can be stored.
    fn can_store(&self) -> bool {
        let counts = |call: StoreCall| {
            call.is_storing() && !(self.events_elsewhere && call == StoreCall::Finish)
        };
        self.health.failing_anywhere(counts).is_none()
    }
}

impl Exposition {
    pub(super) fn new(
        queue: UrlList,
        metrics: Arc<PageMetrics>,
        measures: Arc<Measures>,
        stores: Stores,
    ) -> Exposition {
        Exposition { queue, metrics, measures, stores, last: Mutex::default() }
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
    let not_ready = match told.sizes().await {
        Some(_) if told.stores.can_store() => return "ok\n".into_response(),
        Some(_) => "nothing can be stored; the log says why\n",
        None => "the queue can't be reached\n",
    };
    (StatusCode::SERVICE_UNAVAILABLE, not_ready).into_response()
}
