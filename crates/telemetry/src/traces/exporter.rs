//! The thread that sends spans to the collector. It has its own runtime, so that a slow collector does not affect the
//! pipelines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_engine::http::ClientError;
use fetchwell_engine::http::operator_client::{NoAnswer, OperatorClient};
use fetchwell_engine::web::{Method, Request};
use fetchwell_policy::url::WebUrl;
use tokio::runtime;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use super::otlp::request_body;
use super::span::Span;

/// The maximum number of spans in one request.
const MOST_PER_REQUEST: usize = 512;
/// How long the first span of a request waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// The timeout for a response of the collector.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct Exporter {
    client: OperatorClient,
    collector: WebUrl,
    service: String,
    /// The number of spans that could not be sent.
    lost: Arc<AtomicU64>,
}

impl Exporter {
    pub(super) fn new(
        collector: WebUrl,
        service: String,
        lost: Arc<AtomicU64>,
    ) -> Result<Exporter, ClientError> {
        let client = OperatorClient::new(PATIENCE)?;
        Ok(Exporter { client, collector, service, lost })
    }

    /// Sends spans until all senders are dropped.
    pub(super) fn run(self, waiting: Receiver<Span>) {
        match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(self.send_all(waiting)),
            Err(error) => warn!("no traces are sent: {error}"),
        }
    }

    /// Logs one line when the collector becomes unreachable, and one when it is back.
    async fn send_all(self, mut waiting: Receiver<Span>) {
        let mut is_away = false;
        let mut spans = Vec::new();
        while gather(&mut waiting, &mut spans).await {
            match self.send(&spans).await {
                Ok(()) if is_away => {
                    let lost = self.lost.swap(0, Ordering::Relaxed);
                    info!(lost, "the trace collector is reachable again");
                    is_away = false;
                }
                Ok(()) => {}
                Err(why) => {
                    self.lost.fetch_add(spans.len() as u64, Ordering::Relaxed);
                    if !is_away {
                        warn!(
                            "traces are lost: {} {why}; fix the collector, or unset \
                             OTEL_EXPORTER_OTLP_ENDPOINT",
                            self.collector.as_str()
                        );
                    }
                    is_away = true;
                }
            }
            spans.clear();
        }
    }

    async fn send(&self, spans: &[Span]) -> Result<(), NoAnswer> {
        let body = request_body(&self.service, spans);
        let request = Request::ungoverned(self.collector.clone())
            .by(Method::POST)
            .with_body(body)
            .with_header("content-type", "application/json");
        self.client.ask(&request).await.map(|_| ())
    }
}

/// Waits for spans, and then up to [`LINGER`] for more. Returns false if all senders are dropped.
async fn gather(waiting: &mut Receiver<Span>, spans: &mut Vec<Span>) -> bool {
    if waiting.recv_many(spans, MOST_PER_REQUEST).await == 0 {
        return false;
    }
    let until = Instant::now() + LINGER;
    while spans.len() < MOST_PER_REQUEST {
        let room = MOST_PER_REQUEST - spans.len();
        match timeout_at(until, waiting.recv_many(spans, room)).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    true
}
