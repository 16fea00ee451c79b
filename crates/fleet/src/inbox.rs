//! The store of `serve`: messages, their results, and a counter per caller, as a SQL server keeps them.
//!
//! The queue of the messages is a [`QueueServer`]. A transaction that ends messages locks the counters of their callers,
//! in order, and holds them until it ends: the cursors of a caller are in the order of the commits, so no reader skips a
//! result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_engine::ports::job::{Job, Lane, LeaseId};
use fetchwell_policy::time::Time;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::sleep;

use crate::checks::jobs::Ending;
use crate::checks::messages::{Judged, MessageChecks};
use crate::network::Link;
use crate::queue::{QueueServer, RemoteInstance};
use crate::scenario::{Feature, Scenario};
use crate::sim::Sim;

/// The callers of the service.
pub(crate) const CALLERS: [&str; 3] = ["ann", "ben", "cem"];

/// The retailer of messages whose URLs belong to no group.
const NO_GROUP: &str = "default";

/// A message to be accepted.
#[derive(Clone, Debug)]
pub(crate) struct NewMessage {
    pub(crate) url: String,
    pub(crate) retailer: Option<&'static str>,
    pub(crate) deadline_in: Duration,
}

/// An accepted message.
#[derive(Clone)]
struct Message {
    caller: &'static str,
    content: NewMessage,
    deadline: Time,
    has_ended: bool,
    /// The message that an operator sent again in its place.
    retried_as: Option<LeaseId>,
}

/// Lock them with `begin` before anything else.
type Counters = BTreeMap<&'static str, Arc<tokio::sync::Mutex<i64>>>;

/// The counters that a transaction has locked: the last cursor of each caller.
pub(crate) type LockedCounters = BTreeMap<&'static str, OwnedMutexGuard<i64>>;

pub(crate) struct Inbox {
    pub(crate) queue: Arc<QueueServer>,
    counters: Counters,
    tables: Mutex<Tables>,
    checks: Mutex<MessageChecks>,
}

#[derive(Default)]
struct Tables {
    messages: BTreeMap<LeaseId, Message>,
    /// The messages of each submission, by caller and idempotency key.
    submissions: BTreeMap<(&'static str, u32), Vec<LeaseId>>,
    /// The results of each caller, by cursor.
    outboxes: BTreeMap<&'static str, BTreeMap<i64, LeaseId>>,
}

impl Inbox {
    pub(crate) fn new(scenario: &Scenario, queue: QueueServer) -> Inbox {
        let counters = CALLERS.map(|caller| (caller, Arc::default())).into_iter().collect();
        let checks = MessageChecks { may_be_disallowed: scenario.has(Feature::ChangingRobots) };
        Inbox {
            queue: Arc::new(queue),
            counters,
            tables: Mutex::default(),
            checks: Mutex::new(checks),
        }
    }

    /// Accepts messages, unless they came with this key before.
    pub(crate) fn submit(
        &self,
        caller: &'static str,
        key: u32,
        messages: &[NewMessage],
    ) -> Vec<LeaseId> {
        let mut tables = self.tables.lock();
        if let Some(ids) = tables.submissions.get(&(caller, key)) {
            return ids.clone();
        }
        let accepted = messages.iter().map(|new| self.accept(&mut tables, caller, new.clone()));
        let ids: Vec<LeaseId> = accepted.collect();
        tables.submissions.insert((caller, key), ids.clone());
        ids
    }

    fn accept(&self, tables: &mut Tables, caller: &'static str, content: NewMessage) -> LeaseId {
        let deadline = self.queue.clock.now() + content.deadline_in;
        let mut job = Job::new(content.url.clone(), Options::default().to_payload());
        let group = content.retailer.unwrap_or(NO_GROUP).to_owned();
        job.lane = Lane { group: Some(group), party: Some(caller.to_owned()) };
        job.deadline = Some(deadline);
        let id = self.queue.accept(job);
        let has_ended = false;
        let message = Message { caller, content, deadline, has_ended, retried_as: None };
        tables.messages.insert(id, message);
        id
    }

    /// Results of a caller after a cursor, at most `most`.
    pub(crate) fn read(&self, caller: &str, after: i64, most: usize) -> Vec<(i64, LeaseId)> {
        let tables = self.tables.lock();
        let rows = tables.outboxes.get(caller).into_iter().flat_map(|rows| rows.range(after + 1..));
        rows.take(most).map(|(cursor, id)| (*cursor, *id)).collect()
    }

    /// The messages of a caller.
    pub(crate) fn sent(&self, caller: &str) -> Vec<LeaseId> {
        let tables = self.tables.lock();
        let of_caller = tables.messages.iter().filter(|(_, message)| message.caller == caller);
        of_caller.map(|(id, _)| *id).collect()
    }

    /// Begins a transaction that ends these messages.
    async fn begin(self: Arc<Self>, messages: Vec<LeaseId>) -> LockedCounters {
        let callers: Vec<&str> = {
            let tables = self.tables.lock();
            messages.iter().filter_map(|id| Some(tables.messages.get(id)?.caller)).collect()
        };
        let mut locked = LockedCounters::new();
        for (caller, counter) in &self.counters {
            if callers.contains(caller) {
                locked.insert(caller, counter.clone().lock_owned().await);
            }
        }
        locked
    }

    /// Stores the result of a message, in the transaction that ends it.
    fn put_out(
        &self,
        counters: &mut LockedCounters,
        id: LeaseId,
        result: &FetchResult,
    ) -> Result<(), String> {
        let now = self.queue.clock.now();
        let mut tables = self.tables.lock();
        let Tables { messages, outboxes, .. } = &mut *tables;
        let message = messages.get_mut(&id).ok_or_else(|| format!("there is no message {id}"))?;
        let counter = counters
            .get_mut(message.caller)
            .ok_or_else(|| format!("the counter of {} is not locked", message.caller))?;
        **counter += 1;
        let cursor = **counter;
        let outbox = outboxes.entry(message.caller).or_default();
        if let Some((last, _)) = outbox.last_key_value().filter(|(last, _)| **last >= cursor) {
            let caller = message.caller;
            return Err(format!("{caller} can read cursor {last}, and gets cursor {cursor} now"));
        }
        outbox.insert(cursor, id);
        message.has_ended = true;
        let mut jobs = self.queue.checks.lock();
        jobs.on_record(id);
        let judged = Judged {
            id,
            url: &message.content.url,
            deadline: message.deadline,
            now,
            deaths: jobs.deaths(id),
        };
        self.checks.lock().on_result(&judged, result)
    }

    /// An operator retries a message: as a new one if it has ended, or at once if it is delayed.
    pub(crate) fn retry(&self, id: LeaseId) -> &'static str {
        if self.queue.hasten(id) {
            return "is due now";
        }
        let mut tables = self.tables.lock();
        let Some(message) = tables.messages.get(&id).cloned() else { return "is unknown" };
        if !message.has_ended || message.retried_as.is_some() {
            return "is left alone";
        }
        let new = self.accept(&mut tables, message.caller, message.content);
        if let Some(message) = tables.messages.get_mut(&id) {
            message.retried_as = Some(new);
        }
        "is sent again"
    }

    /// An operator cancels a message, if it waits. Its caller gets a result that says so.
    pub(crate) async fn cancel(self: Arc<Self>, id: LeaseId) -> Result<&'static str, String> {
        let mut counters = self.clone().begin(vec![id]).await;
        if !self.queue.cancel(id)? {
            return Ok("does not wait");
        }
        let status = FetchResult::CANCELLED.to_owned();
        let result = FetchResult { status, ..FetchResult::default() };
        self.put_out(&mut counters, id, &result)?;
        Ok("is cancelled")
    }

    /// At the end: every message has one result in the outbox of its caller.
    pub(crate) fn at_the_end(&self) -> Result<(), String> {
        let tables = self.tables.lock();
        let results: usize = tables.outboxes.values().map(BTreeMap::len).sum();
        match results == tables.messages.len() {
            true => Ok(()),
            false => Err(format!("{} messages have {results} results", tables.messages.len())),
        }
    }
}

/// Results and settlements are one transaction.
pub(crate) struct OutboxWithSettlement {
    pub(crate) instance: Arc<RemoteInstance>,
    pub(crate) link: Arc<Link>,
    pub(crate) inbox: Arc<Inbox>,
}

#[async_trait]
impl Finish<FetchResult> for OutboxWithSettlement {
    async fn finish(&self, batch: &[Finished<FetchResult>]) -> Result<Vec<Settled>, StoreError> {
        self.instance.check_that_it_holds(batch.iter().map(|finished| finished.lease.id));
        let ids: Vec<LeaseId> = batch.iter().map(|finished| finished.lease.id).collect();
        let results: Vec<Option<FetchResult>> = batch.iter().map(final_result).collect();
        let ends = batch.iter().zip(&results).map(|(finished, result)| {
            // A message that was given up is done: its caller has a result.
            let settlement = match (&finished.settlement, result) {
                (Settlement::Dead { .. }, Some(_)) => Settlement::Done,
                (settlement, _) => settlement.clone(),
            };
            (finished.lease.clone(), Ending { settlement, has_details: false })
        });
        let ends: Vec<_> = ends.collect();
        let takes = self.link.transaction_takes();
        let begin = {
            let inbox = self.inbox.clone();
            let ended = ids.iter().zip(&results).filter(|(_, result)| result.is_some());
            let ended: Vec<LeaseId> = ended.map(|(id, _)| *id).collect();
            async move {
                let counters = inbox.begin(ended).await;
                sleep(takes).await;
                counters
            }
        };
        let inbox = self.inbox.clone();
        let sim = self.link.sim.clone();
        let put_out = move |counters: &mut LockedCounters, index: usize| {
            let Some((id, Some(result))) = ids.get(index).zip(results.get(index)) else { return };
            store(&sim, &inbox, counters, *id, result);
        };
        self.instance.settle_within(begin, ends, put_out).await
    }
}

fn store(
    sim: &Sim,
    inbox: &Inbox,
    counters: &mut LockedCounters,
    id: LeaseId,
    result: &FetchResult,
) {
    let FetchResult { status, attempts, .. } = result;
    sim.note("store", "result", format_args!("{id} {status} after {attempts} attempts"));
    if let Err(found) = inbox.put_out(counters, id, result) {
        sim.fail("messages", &found);
    }
}

/// The result that a message ends with. A record beside a retry only describes an attempt.
fn final_result(finished: &Finished<FetchResult>) -> Option<FetchResult> {
    let is_final = matches!(
        finished.settlement,
        Settlement::Done | Settlement::Skipped | Settlement::Dead { .. }
    );
    finished.records.first().filter(|_| is_final).cloned()
}
