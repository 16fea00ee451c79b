//! The flows of a retriever: one fetches messages, one delivers results to webhooks.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::Observed;
use fetchwell_engine::gate::namespaced::Apart;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules};
use fetchwell_engine::pipeline::{self, Door, Limits, Plant};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{FetchResult, Inbox};
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
use fetchwell_engine::web::Timeouts;
use fetchwell_engine::wrapped_source::WrappedSource;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::deliveries::{Encode, Ready, Secrets};
use super::plan::{obituary, plan, retry_rule};
use crate::read_limits::ReadLimits;
use crate::webhooks;

/// A delivery is in memory with its content, so few are held at once.
const WEBHOOKS_WINDOW: usize = 256;
const WEBHOOKS_IN_FLIGHT: usize = 32;

/// What is over is taken out so often, so many in one transaction.
const PRUNE_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
const PRUNE_AT_MOST_EVERY: Duration = Duration::from_secs(1);
const PRUNE_MOST: u32 = 500;

/// Called with the status of each result that was stored.
pub type OnResult = Arc<dyn Fn(&str) + Send + Sync>;

/// What messages are fetched by.
#[derive(Clone, Debug)]
pub struct MessageRules {
    /// Attempts at a message, the first one included.
    pub max_attempts: u32,
    /// Redirects that are followed.
    pub max_redirects: u32,
    /// What reading a page may cost.
    pub reading: ReadLimits,
    /// The time limits where a retailer has none of its own.
    pub default_timeouts: Timeouts,
    /// The time limits of single retailers.
    pub timeouts: HashMap<String, Timeouts>,
    pub pace: GroupPace,
}

impl MessageRules {
    /// The rules of the gate for this door: retailers have a pace, and a message fails with its site.
    pub fn gate_rules(&self, mut rules: GateRules) -> GateRules {
        rules.pace.groups = self.pace.clone();
        rules.robots.pages_fail_with_it = true;
        rules.site_attempts = Some(self.max_attempts);
        rules
    }

    fn timeouts_of(&self, retailer: &str) -> Timeouts {
        self.timeouts.get(retailer).copied().unwrap_or(self.default_timeouts)
    }
}

/// The door that fetches the messages of a store.
pub fn messages(
    store: &RetrieverStore,
    rules: MessageRules,
    on_result: OnResult,
) -> Door<FetchResult> {
    let rule = retry_rule(rules.max_attempts);
    Door {
        source: store.messages.source.clone(),
        planner: Arc::new(move |lease| {
            let retailer = lease.job.lane.group.as_deref().unwrap_or_default();
            let timeouts = rules.timeouts_of(retailer);
            plan(lease, rule, timeouts, rules.max_redirects, rules.reading)
        }),
        finish: Arc::new(Observed {
            inner: store.messages.finish.clone(),
            on_settled: Box::new(move |finished, settled| report(finished, settled, &on_result)),
        }),
        obituary: Arc::new(|lease, cause, reason| vec![obituary(lease, cause, reason)]),
    }
}

/// Reports the result of a message, once it is stored.
fn report(finished: &Finished<FetchResult>, settled: Settled, on_result: &OnResult) {
    // A record beside a retry is no result yet.
    let is_final = !matches!(finished.settlement, Settlement::Retry { .. });
    if is_final && settled == Settled::Confirmed {
        finished.records.iter().for_each(|result| on_result(&result.status));
    }
}

/// Runs a door until it is told to stop, and then leaves what it still holds to others.
pub async fn flow<R: Send + Sync + 'static>(
    door: Door<R>,
    plant: Plant,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let source = door.source.clone();
    let ended = pipeline::run(door, plant, stop).await;
    if let Err(fault) = source.leave().await {
        warn!(
            "could not hand back leases; other instances take over when the leases expire: {fault}"
        );
    }
    ended.map(|_| ())
}

/// The gate of deliveries: `interval` is their pace, and what is known of their receivers is kept apart from the sites
/// that are fetched.
pub fn delivery_gate(
    politeness: Arc<dyn Politeness>,
    rules: GateRules,
    interval: Duration,
    clock: Clock,
) -> Gate {
    let pace = PaceRules {
        default_interval: interval,
        sites: HashMap::new(),
        concurrency: HashMap::new(),
        groups: GroupPace::default(),
    };
    let politeness = Arc::new(Apart::new(politeness, "webhook"));
    Gate::new(politeness, GateRules { pace, ..rules }, clock)
}

/// Delivers results to webhooks until it is told to stop.
pub async fn deliver(
    store: &RetrieverStore,
    encode: Encode,
    mut plant: Plant,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let max_in_flight = plant.limits.max_in_flight.min(WEBHOOKS_IN_FLIGHT);
    plant.limits = Limits { max_in_flight, window: WEBHOOKS_WINDOW, ..plant.limits };
    flow(deliveries(store, encode), plant, stop).await
}

fn deliveries(store: &RetrieverStore, encode: Encode) -> Door<Infallible> {
    let secrets = Secrets::default();
    let sign = secrets.signer();
    let ready = Ready { inbox: store.inbox.clone(), secrets, encode };
    Door {
        source: Arc::new(WrappedSource::new(store.deliveries.source.clone(), Arc::new(ready))),
        planner: Arc::new(move |lease| webhooks::plan(&sign, lease)),
        finish: store.deliveries.finish.clone(),
        obituary: Arc::new(|_, _, _| Vec::new()),
    }
}

/// Takes out what has been kept long enough: at the start, and from time to time. Where that is not long, more
/// often, so that nothing is there for much longer than it should.
pub async fn prune(
    store: &RetrieverStore,
    keep: Duration,
    health: &StoreHealth,
    stop: &CancellationToken,
) {
    let every = (keep / 2).clamp(PRUNE_AT_MOST_EVERY, PRUNE_AT_LEAST_EVERY);
    loop {
        prune_once(&*store.inbox, keep, health, stop).await;
        if tokio::time::timeout(every, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

async fn prune_once(
    inbox: &dyn Inbox,
    keep: Duration,
    health: &StoreHealth,
    stop: &CancellationToken,
) {
    while !stop.is_cancelled() {
        match inbox.prune(keep, PRUNE_MOST).await {
            Ok(taken) if taken < u64::from(PRUNE_MOST) => return,
            Ok(_) => {}
            Err(fault) => return health.failed_once(StoreCall::Prune, &fault),
        }
    }
}
