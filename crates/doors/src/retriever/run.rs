//! The flows of the retriever: one fetches messages, the other delivers results to webhooks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::Observed;
use fetchwell_engine::gate::namespaced::NamespacedPoliteness;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules};
use fetchwell_engine::pipeline::{self, Door, RunLimits, Runtime};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{BatchId, DeliveryRecord, FetchResult, Inbox};
use fetchwell_engine::ports::message_batches::{CANCELLED_AT_ONCE, MessageBatches};
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::ports::retriever_store::{RetrieverStore, Station};
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
use fetchwell_engine::web::Timeouts;
use fetchwell_engine::wrapped_source::WrappedSource;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::bodies::BodyRules;
use super::deliveries::{Encode, Ready, Secrets};
use super::plan::{give_up_record, plan, retry_rule};
use crate::read_limits::ReadLimits;
use crate::webhooks;

/// Few deliveries are held at once, because each is in memory with its content.
const WEBHOOKS_WINDOW: usize = 256;
const WEBHOOKS_IN_FLIGHT: usize = 32;

/// The longest and the shortest interval between prunes, and the rows deleted per transaction.
const PRUNE_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
const PRUNE_AT_MOST_EVERY: Duration = Duration::from_secs(1);
const PRUNE_MOST: u32 = 500;

/// Called with the status of each result that was stored.
pub type OnResult = Arc<dyn Fn(&str) + Send + Sync>;

/// The rules for fetching messages.
#[derive(Clone, Debug)]
pub struct MessageRules {
    /// The number of attempts, including the first.
    pub max_attempts: u32,
    pub max_redirects: u32,
    /// The limits for reading a page.
    pub reading: ReadLimits,
    /// The limits for keeping bodies.
    pub bodies: BodyRules,
    /// The timeouts for retailers that have none of their own.
    pub default_timeouts: Timeouts,
    /// The timeouts of single retailers.
    pub timeouts: HashMap<String, Timeouts>,
    pub pace: GroupPace,
}

impl MessageRules {
    /// The gate rules of this door: retailers have rate limits, and a message fails when its site does.
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
    station: &Station<FetchResult>,
    rules: MessageRules,
    on_result: OnResult,
) -> Door<FetchResult> {
    let rule = retry_rule(rules.max_attempts);
    Door {
        source: station.source.clone(),
        planner: Arc::new(move |lease| {
            let retailer = lease.job.lane.group.as_deref().unwrap_or_default();
            let timeouts = rules.timeouts_of(retailer);
            plan(lease, rule, timeouts, rules.max_redirects, rules.reading, rules.bodies)
        }),
        finish: Arc::new(Observed {
            inner: station.finish.clone(),
            on_settled: Box::new(move |finished, settled| report(finished, settled, &on_result)),
        }),
        give_up_record: Arc::new(|lease, cause, reason| vec![give_up_record(lease, cause, reason)]),
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

/// Runs a door until `stop`, then hands back its leases.
pub async fn flow<R: Send + Sync + 'static>(
    door: Door<R>,
    runtime: Runtime,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let source = door.source.clone();
    let ended = pipeline::run(door, runtime, stop).await;
    if let Err(fault) = source.leave().await {
        warn!(
            "could not hand back leases; other instances take over when the leases expire: {fault}"
        );
    }
    ended.map(|_| ())
}

/// The gate of deliveries. `interval` is their pace; the state of their receivers is kept apart from that of the sites
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
    let politeness = Arc::new(NamespacedPoliteness::new(politeness, "webhook"));
    Gate::new(politeness, GateRules { pace, ..rules }, clock)
}

/// Delivers results to webhooks until `stop`.
pub async fn deliver(
    store: &RetrieverStore,
    encode: Encode,
    mut runtime: Runtime,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let max_in_flight = runtime.limits.max_in_flight.min(WEBHOOKS_IN_FLIGHT);
    runtime.limits = RunLimits { max_in_flight, window: WEBHOOKS_WINDOW, ..runtime.limits };
    let clock = runtime.clock.clone();
    flow(deliveries(store, encode, clock), runtime, stop).await
}

fn deliveries(store: &RetrieverStore, encode: Encode, clock: Clock) -> Door<DeliveryRecord> {
    let secrets = Secrets::default();
    let sign = secrets.signer();
    let inbox = store.inbox.clone();
    let crawls = store.crawls.as_ref().map(|store| store.crawls.clone());
    let ready = Ready { inbox, batches: store.batches.clone(), crawls, secrets, encode };
    Door {
        source: Arc::new(WrappedSource::new(store.deliveries.source.clone(), Arc::new(ready))),
        planner: Arc::new(move |lease| webhooks::plan(&sign, lease)),
        finish: store.deliveries.finish.clone(),
        give_up_record: Arc::new(move |lease, _, reason| {
            webhooks::give_up_record(lease, reason, clock.wall()).into_iter().collect()
        }),
    }
}

/// How long data is kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Ended messages and their results.
    pub messages: Duration,
    /// Bodies of responses.
    pub bodies: Duration,
}

/// Deletes expired messages and bodies, and looks after batches that have not ended, at the start and then regularly. A
/// shorter retention is checked more often, so that nothing stays much longer than it should.
pub async fn prune(
    store: &RetrieverStore,
    retention: Retention,
    health: &StoreHealth,
    stop: &CancellationToken,
) {
    let shortest = retention.messages.min(retention.bodies);
    let every = (shortest / 2).clamp(PRUNE_AT_MOST_EVERY, PRUNE_AT_LEAST_EVERY);
    loop {
        prune_once(&*store.inbox, retention.messages, health, stop).await;
        prune_bodies_once(&*store.inbox, health, stop).await;
        tidy_once(&*store.batches, health, stop).await;
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

async fn prune_bodies_once(inbox: &dyn Inbox, health: &StoreHealth, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        match inbox.prune_bodies(PRUNE_MOST).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(fault) => return health.failed_once(StoreCall::Prune, &fault),
        }
    }
}

/// Looks after all batches that have not ended.
async fn tidy_once(batches: &dyn MessageBatches, health: &StoreHealth, stop: &CancellationToken) {
    let mut after = None;
    while !stop.is_cancelled() {
        match tidy_some(batches, after, stop).await {
            Ok(None) => return,
            Ok(next) => after = next,
            Err(fault) => return health.failed_once(StoreCall::Prune, &fault),
        }
    }
}

/// Cancels messages of cancelled batches that wait: they were in flight when their batch was cancelled, or the request
/// to cancel it was cut off. Recounts batches whose messages were ended by an earlier release, which does not count
/// them. Returns where to continue; `None` at the end.
async fn tidy_some(
    batches: &dyn MessageBatches,
    after: Option<BatchId>,
    stop: &CancellationToken,
) -> Result<Option<BatchId>, StoreError> {
    let open = batches.open(after).await?;
    for batch in &open {
        if !batch.has_messages_left {
            batches.recount(batch.id).await?;
            continue;
        }
        let mut may_cancel = batch.is_cancelled;
        while may_cancel && !stop.is_cancelled() {
            may_cancel = batches.cancel_some(batch.id).await? == CANCELLED_AT_ONCE;
        }
    }
    Ok(open.last().map(|last| last.id))
}
