//! Traces of each lease and each request, for a collector that the operator runs.
//!
//! Spans are created from the events of the pipeline after the fact, so that the pipeline carries no tracing state. A
//! separate thread sends them by OTLP over HTTP, as JSON. Its queue is bounded; spans that do not fit are dropped.
//!
//! | file | |
//! |---|---|
//! | `ids` | ids of traces and spans, the same in every process |
//! | `span` | the data of a span |
//! | `story` | creates the spans of an event |
//! | `redacted` | removes possible secrets from URLs |
//! | `otlp` | encodes spans as OTLP JSON |
//! | `exporter` | the thread that sends them |

mod exporter;
mod ids;
mod otlp;
mod redacted;
mod span;
mod story;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use fetchwell_engine::http::ClientError;
use fetchwell_engine::pipeline::{Event, EventSink};
use fetchwell_policy::url::{UrlFault, WebUrl};
use parking_lot::Mutex;
use tokio::sync::mpsc::{Sender, channel};
use tracing::warn;

use crate::metrics::DoorName;
use exporter::Exporter;
use span::Span;

/// The URL of the collector; tracing is off without it.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The name of this program in traces.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
/// The maximum number of spans that wait for the collector.
const MOST_WAITING: usize = 8_192;

/// Why tracing cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The variable is not the URL of a collector.
    #[error(
        "{ENDPOINT} is {endpoint:?}, which is not the http(s) URL of a collector; write \
         http://HOST:4318, or unset it"
    )]
    Endpoint { endpoint: String, source: UrlFault },
    /// The HTTP client could not be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The thread could not be started.
    #[error(transparent)]
    Start(#[from] io::Error),
}

/// Creates spans from events and passes them to its thread. When the last reference is dropped, the waiting spans are
/// sent.
pub struct Tracer {
    /// `None` only during drop.
    spans: Option<Sender<Span>>,
    lost: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Tracer {
    /// A tracer, if the environment names a collector.
    pub fn from_environment() -> Result<Option<Arc<Tracer>>, TracesError> {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(endpoint) = read(ENDPOINT) else { return Ok(None) };
        let service = read(SERVICE_NAME).unwrap_or_else(|| "fetchwell".to_owned());
        let collector =
            traces_url(&endpoint).map_err(|source| TracesError::Endpoint { endpoint, source })?;
        Tracer::start(collector, service).map(|tracer| Some(Arc::new(tracer)))
    }

    fn start(collector: WebUrl, service: String) -> Result<Tracer, TracesError> {
        let (spans, waiting) = channel(MOST_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let exporter = Exporter::new(collector, service, lost.clone())?;
        let thread = std::thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || exporter.run(waiting))?;
        Ok(Tracer { spans: Some(spans), lost, thread: Mutex::new(Some(thread)) })
    }

    /// Traces the events of a door's pipeline and passes them on.
    pub fn listening(self: &Arc<Tracer>, door: DoorName, then: EventSink) -> EventSink {
        let tracer = self.clone();
        Arc::new(move |event: Event| {
            for span in story::spans_of(door, &event) {
                tracer.hand_over(span);
            }
            then(event);
        })
    }

    fn hand_over(&self, span: Span) {
        let taken = self.spans.as_ref().is_some_and(|spans| spans.try_send(span).is_ok());
        if !taken {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Tracer {
    /// Waits until the queued spans are sent, with at most one timeout of the exporter per request.
    fn drop(&mut self) {
        self.spans = None;
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            warn!("the thread that sends traces has panicked; the last traces are lost");
        }
    }
}

/// The URL for traces, below the endpoint that the environment names.
fn traces_url(endpoint: &str) -> Result<WebUrl, UrlFault> {
    WebUrl::parse(&format!("{}/v1/traces", endpoint.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_below_the_endpoint() {
        for (endpoint, expected) in [
            ("http://localhost:4318", Some("http://localhost:4318/v1/traces")),
            ("https://otel.example/base/", Some("https://otel.example/base/v1/traces")),
            ("localhost:4318", None),
            ("grpc://localhost:4317", None),
        ] {
            let url = traces_url(endpoint);
            assert_eq!(url.as_ref().map(WebUrl::as_str).ok(), expected, "{endpoint}");
        }
    }
}
