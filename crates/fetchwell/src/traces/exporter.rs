//! The thread that sends spans to the collector. It has a runtime of its own: whatever the collector does, the
//! flow does not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::http::{Client, DnsSettings, HttpLimits, HttpSettings, OwnListeners};
use fetchwell_engine::web::{Exchange, Leave, Method, Phases, Request, Web};
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::url::WebUrl;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::runtime;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use super::otlp::request_body;
use super::span::Span;
use crate::cli::Exit;

/// Spans in one request.
const MOST_PER_REQUEST: usize = 512;
/// How long the first of them waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// How long the collector has to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends spans.
pub(super) struct Exporter {
    client: Client,
    collector: WebUrl,
    service: String,
    /// What did not fit into the queue.
    dropped: Arc<AtomicU64>,
}

impl Exporter {
    pub(super) fn new(
        collector: WebUrl,
        service: String,
        dropped: Arc<AtomicU64>,
    ) -> Result<Exporter, Exit> {
        let client = Client::new(http_settings())?;
        Ok(Exporter { client, collector, service, dropped })
    }

    /// Sends what comes, until nobody is left who could bring more.
    pub(super) fn run(self, waiting: Receiver<Span>) {
        match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(self.send_all(waiting)),
            Err(error) => warn!("no traces are sent: {error}"),
        }
    }

    async fn send_all(self, mut waiting: Receiver<Span>) {
        let mut is_failing = false;
        let mut spans = Vec::new();
        while gather(&mut waiting, &mut spans).await {
            match self.send(&spans).await {
                Ok(()) if is_failing => {
                    let lost = self.dropped.swap(0, Ordering::Relaxed);
                    info!(lost, "the trace collector takes traces again");
                    is_failing = false;
                }
                Ok(()) => {}
                Err(why) => {
                    self.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
                    if !is_failing {
                        let collector = self.collector.as_str();
                        warn!(
                            "traces are lost: {collector} {why}; mend it or unset OTEL_EXPORTER_OTLP_ENDPOINT"
                        );
                    }
                    is_failing = true;
                }
            }
            spans.clear();
        }
    }

    async fn send(&self, spans: &[Span]) -> Result<(), String> {
        let body = request_body(&self.service, spans);
        let request = Request::ungoverned(self.collector.clone())
            .by(Method::Post(body.into()))
            .with_header("content-type", "application/json");
        let mut phases = Phases::default();
        match self.client.exchange(&request, &mut AtOnce, &mut phases).await {
            Exchange::Answered(answer) if (200..300).contains(&answer.status) => Ok(()),
            Exchange::Answered(answer) => Err(format!("answers {}", answer.status)),
            Exchange::Failed(Happened::OurFault(why)) => Err(why),
            Exchange::Failed(happened) => Err(format!("can't be asked: {happened}")),
            Exchange::NotSent => Err("dropped its connection".to_owned()),
        }
    }
}

/// Waits for spans, and a little for more of them. `false`: there will be none.
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

/// The collector is the operator's own: any address will do, and nothing is to be waited for.
fn http_settings() -> HttpSettings {
    let anywhere = vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    HttpSettings {
        user_agent: concat!("Fetchwell/", env!("CARGO_PKG_VERSION"), " OTLP").to_owned(),
        limits: HttpLimits {
            connect_timeout: PATIENCE,
            request_timeout: PATIENCE,
            max_idle_connections: 1,
            ..HttpLimits::default()
        },
        guard: AddressGuard::new(anywhere),
        resolve: Vec::new(),
        dns: DnsSettings { servers: Vec::new(), timeout: PATIENCE },
        own_listeners: OwnListeners::default(),
        private_only: Arc::new(|_| false),
        extra_ca_file: None,
    }
}

/// Leave for a request that no gate has a say in.
struct AtOnce;

#[async_trait]
impl Leave for AtOnce {
    async fn to_write(&mut self) -> bool {
        true
    }
}
