//! `fetchwell serve`: two flows, one API, one store, one end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::adapters::apart::Apart;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules};
use fetchwell_engine::inbox::{Inbox, RetrieverStore};
use fetchwell_engine::pipeline::{self, Door, Limits, Plant};
use fetchwell_engine::ports::{Source, StoreFault};
use fetchwell_engine::web::Timeouts;
use fetchwell_policy::pace::Rate;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::counted::Counted;
use super::deliveries::{Ready, Secrets};
use super::store::open_store;
use super::{first_start, obituary, plan, retry_rule};
use crate::api::{self, Api, Connections, Foundation, Metrics, Rules};
use crate::cli::Exit;
use crate::doors::sites::SiteDesk;
use crate::doors::webhooks;
use crate::measures::DoorName;
use crate::plant::{Parts, address_guard, gate_rules};
use crate::settings::{Settings, Values};
use crate::signals::stop_on_signal;

/// A delivery is in memory with its content, so few are held at once.
const WEBHOOKS_WINDOW: usize = 256;
const WEBHOOKS_IN_FLIGHT: usize = 32;

/// What is over is taken out so often, so many in one transaction.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60);
const PRUNE_MOST: u32 = 500;

/// Serves until it is told to stop.
pub(crate) async fn serve(settings: &Settings) -> Result<Exit, Exit> {
    let listener = listen(&settings.values).await?;
    let address = listener.local_addr()?;
    let stop = stop_on_signal();
    let (store, clock) = open_store(settings).await?;
    let parts = Parts::open(settings).await?;
    parts.own_listeners.register(address);
    first_start::welcome(&*store.inbox, &clock, address).await?;

    let (sites, audit) = (parts.politeness.clone(), Some(store.inbox.clone()));
    let sites = SiteDesk::open(settings, sites, audit, parts.clock.clone()).await?;
    let metrics = Arc::new(Metrics::default());
    let foundation = Foundation {
        inbox: store.inbox.clone(),
        oversight: store.oversight.clone(),
        sites,
        results: store.results.clone(),
        clock,
        guard: address_guard(settings),
        metrics: metrics.clone(),
        measures: parts.measures.clone(),
        stop: stop.clone(),
    };
    let (api, audit) = Api::new(foundation, rules(&settings.values));
    let bounds = Connections {
        most: settings.values.retriever_max_connections,
        grace: settings.values.shutdown_grace,
    };
    info!("listening on http://{address}; the documentation is at http://{address}/docs");
    let api_ended = CancellationToken::new();
    let serving = async {
        api::serve(listener, api::router(&api), bounds, stop.clone()).await;
        api_ended.cancel();
    };
    let (messages, deliveries, (), (), ()) = tokio::join!(
        ending_all(&stop, messages(settings, &parts, &store, metrics, stop.clone())),
        ending_all(&stop, deliveries(settings, &parts, &store, stop.clone())),
        serving,
        audit.run(store.inbox.clone(), api_ended.clone()),
        prune(store.inbox.clone(), settings.values.retriever_retention, stop.clone()),
    );
    messages.and(deliveries)?;
    Ok(Exit::Ok)
}

async fn listen(values: &Values) -> Result<TcpListener, Exit> {
    let mut address: SocketAddr = values.retriever_listen;
    if let Some(port) = values.retriever_api_port {
        address.set_port(port);
    }
    TcpListener::bind(address).await.map_err(|error| {
        Exit::Usage(format!("can't listen on {address}: {error}; --listen names another address"))
    })
}

fn rules(values: &Values) -> Rules {
    Rules {
        default_deadline: values.retriever_deadline,
        max_batch_body_bytes: values.retriever_max_batch_body,
        public_metrics: values.retriever_public_metrics,
        caller_rate: values.retriever_caller_rate,
        caller_burst: values.retriever_caller_burst,
    }
}

/// A flow that can't go on ends everything: a server that accepts and never fetches helps nobody.
async fn ending_all(
    stop: &CancellationToken,
    flow: impl Future<Output = Result<(), StoreFault>>,
) -> Result<(), StoreFault> {
    let ended = flow.await;
    stop.cancel();
    ended
}

/// Fetches messages.
async fn messages(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> Result<(), StoreFault> {
    let values = &settings.values;
    let (rule, timeouts) = (retry_rule(values.retriever_max_retries), timeouts(settings));
    let max_redirects = values.http_max_redirects;
    let source = store.messages.source.clone();
    let door = Door {
        source: source.clone(),
        planner: Arc::new(move |lease| {
            let retailer = lease.job.lane.group.as_deref().unwrap_or_default();
            plan(lease, rule, timeouts(retailer), max_redirects)
        }),
        finish: Arc::new(Counted { inner: store.messages.finish.clone(), metrics }),
        obituary: Arc::new(|lease, reason| vec![obituary(lease, reason)]),
    };
    let mut rules = gate_rules(settings, None);
    rules.pace.groups = retailers_pace(settings);
    rules.robots.pages_fail_with_it = true;
    let gate = Gate::new(parts.politeness.clone(), rules, parts.clock.clone());
    let mut plant = parts.plant(settings, gate, DoorName::Serve, Arc::new(|_| {}));
    plant.limits.max_in_flight = values.retriever_worker_count.unwrap_or(values.max_in_flight);
    flow(door, plant, &*source, stop).await
}

/// Delivers webhooks, at a pace of their own.
async fn deliveries(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
    stop: CancellationToken,
) -> Result<(), StoreFault> {
    let secrets = Secrets::default();
    let sign = secrets.signer();
    let inner = store.deliveries.source.clone();
    let source = Arc::new(Ready { inner, inbox: store.inbox.clone(), secrets });
    let door = Door {
        source: source.clone(),
        planner: Arc::new(move |lease| webhooks::plan(&sign, lease)),
        finish: store.deliveries.finish.clone(),
        obituary: Arc::new(|_, _| Vec::new()),
    };
    let pace = PaceRules {
        default_interval: Rate::per_second(settings.values.webhooks_rate, 1).interval,
        sites: HashMap::new(),
        concurrency: HashMap::new(),
        groups: GroupPace::default(),
    };
    let rules = GateRules { pace, ..gate_rules(settings, None) };
    let politeness = Arc::new(Apart::new(parts.politeness.clone(), "webhook"));
    let gate = Gate::new(politeness, rules, parts.clock.clone());
    let mut plant = parts.plant(settings, gate, DoorName::Webhooks, Arc::new(|_| {}));
    plant.limits =
        Limits { max_in_flight: WEBHOOKS_IN_FLIGHT, window: WEBHOOKS_WINDOW, ..plant.limits };
    flow(door, plant, &*source, stop).await
}

async fn flow<R: Send + Sync + 'static>(
    door: Door<R>,
    plant: Plant,
    source: &dyn Source,
    stop: CancellationToken,
) -> Result<(), StoreFault> {
    let ended = pipeline::run(door, plant, stop).await;
    if let Err(fault) = source.leave().await {
        warn!("what this instance still held is taken by others when its lease ends: {fault}");
    }
    ended.map(|_| ())
}

/// The pace of each retailer, besides that of each site.
fn retailers_pace(settings: &Settings) -> GroupPace {
    let values = &settings.values;
    let (per_second, burst) =
        (values.retriever_default_requests_per_second, values.retriever_default_burst_size);
    let named = settings.retailers().iter().map(|(name, own)| {
        let rate = Rate::per_second(
            own.requests_per_second.unwrap_or(per_second),
            own.burst_size.unwrap_or(burst),
        );
        (name.clone(), rate)
    });
    GroupPace { default: Some(Rate::per_second(per_second, burst)), named: named.collect() }
}

/// The time limits of each retailer.
fn timeouts(settings: &Settings) -> impl Fn(&str) -> Timeouts + Send + Sync + use<> {
    let values = &settings.values;
    let (connect, request) =
        (values.retriever_connection_timeout, values.retriever_request_timeout);
    let named: HashMap<String, Timeouts> = settings
        .retailers()
        .iter()
        .map(|(name, own)| {
            let connect = own.connection_timeout.or(connect);
            let request = own.request_timeout.or(request);
            (name.clone(), Timeouts { connect, request })
        })
        .collect();
    move |retailer| named.get(retailer).copied().unwrap_or(Timeouts { connect, request })
}

/// Takes out what has been kept long enough, from time to time.
async fn prune(inbox: Arc<dyn Inbox>, keep: Duration, stop: CancellationToken) {
    while tokio::time::timeout(PRUNE_INTERVAL, stop.cancelled()).await.is_err() {
        loop {
            match inbox.prune(keep, PRUNE_MOST).await {
                Ok(taken) if taken < u64::from(PRUNE_MOST) => break,
                Ok(_) if stop.is_cancelled() => return,
                Ok(_) => {}
                Err(fault) => {
                    warn!("old messages can't be taken out now: {fault}");
                    break;
                }
            }
        }
    }
}
