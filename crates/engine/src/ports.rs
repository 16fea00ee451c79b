//! The ports: what a door brings, and what a store must do.

#![warn(missing_docs)]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_policy::breaker::Transition;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::retry::History;
use fetchwell_policy::site::{Permit, Report, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::Notify;

use crate::http::budget::Share;
use crate::web::{Outcome, Phases, Request};

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, Error)]
pub enum StoreFault {
    /// The store could not be reached or is busy: try again.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The store answered something that it never should.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store is not one that this program can use.
    #[error("this store cannot be used: {0}")]
    Unfit(String),
    /// What was to be written is larger than the store can hold: it never will be.
    #[error("the store can't hold it: {0}")]
    TooLarge(String),
}

/// Something to be fetched, as a door queued it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The exact string that was queued.
    pub url: String,
    /// The site that its first request goes to; `None` when the URL makes no sense.
    pub site: Option<Site>,
    /// In whose name it is done.
    pub lane: Lane,
    /// After this it is not worth having: its requests are answered with "its deadline passed". Until
    /// then it waits, and then it is handed out however long its site is closed.
    pub deadline: Option<Time>,
    /// The door's own data.
    pub payload: Vec<u8>,
}

/// In whose name a job is done. Lanes take turns, so that none holds up another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// A group (a retailer) that has a pace of its own, besides that of each site.
    pub group: Option<String>,
    /// Whoever asked for it (a caller).
    pub party: Option<String>,
}

/// Names a lease within its source.
pub type LeaseId = i64;

/// A job that is ours until it is settled, or until this instance is taken for dead.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Its name.
    pub id: LeaseId,
    /// What to do.
    pub job: Job,
    /// What it has been through.
    pub history: History,
    /// How often a process died while it was being fetched.
    pub interruptions: u32,
    /// When it was accepted.
    pub accepted_at: Time,
}

impl Lease {
    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.history.failures().saturating_add(self.interruptions).saturating_add(1)
    }
}

/// What a source is asked for.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// At most so many.
    pub most: usize,
    /// At most so many of one site and lane.
    pub most_per_site: usize,
    /// At most so many of one lane that has a group; 0: as many as there are.
    pub most_per_group: usize,
    /// What changed since the last demand: none of these sites before the time given, since they are
    /// busy, full or closed; a time that has come opens one again.
    pub closed: Vec<(Site, Time)>,
    /// None of these groups, this time, but for what is overdue: what is here of theirs is as much as
    /// their pace lets go.
    pub resting: Vec<String>,
}

/// What a source gives.
#[derive(Debug)]
pub enum Taken {
    /// These.
    Jobs(Vec<Lease>),
    /// Nothing is due; ask again then, or sooner.
    Idle {
        /// When something is due by what the source knows.
        until: Time,
    },
    /// Nothing is left and nothing will come: a run-once door ends.
    Exhausted,
}

/// How the instance's own lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It holds for this long from the moment it was asked for.
    Held {
        /// How long.
        ttl: Duration,
    },
    /// It had run out. Everything that was taken before is not ours any more; a new epoch began.
    Lost,
}

/// Where leases come from.
#[async_trait]
pub trait Source: Send + Sync {
    /// Hands out leases. An instance asks again when it has its answer, not before.
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreFault>;

    /// Notes that these are about to be fetched: if we die now, that was an interruption.
    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreFault>;

    /// Renews the instance's lease, and rescues what dead instances held.
    async fn renew(&self) -> Result<Renewal, StoreFault>;

    /// Leaves: what this instance still holds can be taken by others at once.
    async fn leave(&self) -> Result<(), StoreFault> {
        Ok(())
    }

    /// How many leases of dead instances it has rescued so far.
    fn rescued(&self) -> u64 {
        0
    }

    /// When the oldest job was accepted that waits in the store, however far ahead its time is; `None` if nothing
    /// waits there, or the store can't tell. Jobs in somebody's hands may count. A store may have to look at all
    /// that waits: this is asked for now and then.
    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreFault> {
        Ok(None)
    }

    /// Notified when something was put in by this process. It only wakes: what others put in is found
    /// by asking from time to time.
    fn news(&self) -> Option<Arc<Notify>> {
        None
    }
}

/// What is to become of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It has its result.
    Done,
    /// It was not to be fetched.
    Skipped,
    /// Another attempt, not before `at`.
    Retry {
        /// When.
        at: Time,
        /// What it has been through by now.
        history: History,
        /// The door's own data from now on; `None`: as it was.
        payload: Option<Vec<u8>>,
    },
    /// Done for now, and due again at `at`.
    Recur {
        /// When.
        at: Time,
        /// The door's own data from now on; `None`: as it was.
        payload: Option<Vec<u8>>,
    },
    /// Given up.
    Dead {
        /// Why.
        reason: String,
    },
    /// Untouched: somebody else, or we ourselves, shall have it not before `at`.
    HandBack {
        /// When.
        at: Time,
    },
}

impl Settlement {
    /// Another attempt, with the door's data as it was.
    pub fn retry(at: Time, history: History) -> Settlement {
        Settlement::Retry { at, history, payload: None }
    }

    /// Another round, with the door's data as it was.
    pub fn recur(at: Time) -> Settlement {
        Settlement::Recur { at, payload: None }
    }
}

/// A lease that has come to an end.
#[derive(Debug)]
pub struct Finished<R> {
    /// The lease.
    pub lease: Lease,
    /// What came out.
    pub records: Vec<R>,
    /// What is to become of the lease.
    pub settlement: Settlement,
    /// Where the time of its last request went.
    pub phases: Phases,
    /// What its records hold of the byte budget, until they are safe.
    pub share: Share,
}

impl<R> Finished<R> {
    /// Whether somebody was asked for something: if it is lost, they will be asked again.
    pub(crate) fn is_page(&self) -> bool {
        self.phases.first_byte > Duration::ZERO
    }
}

/// Whether a settlement was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was: the records are in the sink and the lease is gone.
    Confirmed,
    /// The lease was not ours any more: nothing was written.
    Stale,
}

/// Where records go, and how leases end.
#[async_trait]
pub trait Finish<R>: Send + Sync {
    /// Writes the records, then settles the leases; in one transaction where store and sink are one.
    /// An error means that nothing is known: the same batch is tried again.
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreFault>;
}

/// A sink on its own: idempotent by key, since a batch may come again.
#[async_trait]
pub trait Sink<R>: Send + Sync {
    /// Returns once the records are safe.
    async fn write(&self, records: &[&R]) -> Result<(), StoreFault>;
}

#[async_trait]
impl<R: Send + Sync, T: Sink<R> + ?Sized> Sink<R> for Arc<T> {
    async fn write(&self, records: &[&R]) -> Result<(), StoreFault> {
        (**self).write(records).await
    }
}

/// For a flow that only settles: its records have no values.
pub struct NoRecords;

#[async_trait]
impl Sink<Infallible> for NoRecords {
    async fn write(&self, _: &[&Infallible]) -> Result<(), StoreFault> {
        Ok(())
    }
}

/// Ends leases without writing records: the second half of a finish that is not one transaction.
#[async_trait]
pub trait Settle: Send + Sync {
    /// Ends the leases that are still ours.
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreFault>;
}

#[async_trait]
impl<T: Settle + ?Sized> Settle for Arc<T> {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreFault> {
        (**self).settle(batch).await
    }
}

/// Sink, then settle: for a sink and a source that share no transaction.
pub struct SinkThenSettle<S, Q> {
    /// Where the records go first.
    pub sink: S,
    /// Where the leases end after that.
    pub source: Q,
}

#[async_trait]
impl<R, S, Q> Finish<R> for SinkThenSettle<S, Q>
where
    R: Send + Sync,
    S: Sink<R>,
    Q: Settle,
{
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreFault> {
        let records: Vec<&R> = batch.iter().flat_map(|finished| &finished.records).collect();
        if !records.is_empty() {
            self.sink.write(&records).await?;
        }
        let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
        self.source.settle(&leases).await
    }
}

/// What a plan wants next.
#[derive(Debug)]
pub enum Step<R> {
    /// These requests besides those under way; an empty list waits for the latter.
    Fetch(Vec<Request>),
    /// The end.
    Finish(Vec<R>, Settlement),
    /// The door can't go on, for this reason: all that is held goes back, and the run ends.
    Halt(String),
}

/// Time and chance, for plans: they are pure.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// What time it is, by the clock that decides.
    pub now: Time,
    /// What the wall clock shows: for what the world is told.
    pub wall: Time,
    /// A number in `0.0..1.0`.
    pub chance: f64,
}

/// What a door does with one lease: a pure state machine.
pub trait Plan<R>: Send {
    /// Called first with nothing, then with each outcome as it comes.
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<R>;

    /// Whether there are results in hand that would be lost if the lease were handed back now. Such a
    /// lease waits in memory, however long.
    fn has_results_in_hand(&self) -> bool {
        false
    }

    /// The memory that a step on a body of so many bytes takes besides the body. The step begins when the byte budget
    /// has that.
    fn working_bytes(&self, _body_bytes: usize) -> usize {
        0
    }

    /// The memory that the records of its last step hold, which counts until they are stored; `None`: as much as the
    /// last body.
    fn held_bytes(&self) -> Option<usize> {
        None
    }
}

/// A site's question to the politeness store.
#[derive(Clone, Debug)]
pub struct SiteAsk {
    /// Which site.
    pub site: Site,
    /// Its pace.
    pub rate: Rate,
    /// The request is for the page that a robots.txt was just read for.
    pub follows_robots: bool,
}

/// A site's news for the politeness store.
#[derive(Clone, Debug)]
pub struct SiteReport {
    /// Which site.
    pub site: Site,
    /// What became of a request.
    pub report: Report,
}

/// The answer to a turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// The store's clock: verdicts are by it.
    pub now: Time,
    /// A verdict for each question, in order.
    pub verdicts: Vec<Verdict>,
    /// Breakers that opened or closed.
    pub transitions: Vec<(Site, Transition)>,
}

/// What is known of an origin's robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsRecord {
    /// The text, when it was last reachable; empty when there is no such file (4xx).
    #[serde(with = "crate::readable")]
    pub body: Option<Vec<u8>>,
    /// The status of the last answer that settled the matter.
    pub status: Option<u16>,
    /// When `body` was read.
    pub fetched_at: Time,
    /// Since when it cannot be reached, and why; `None`: it was there the last time.
    pub unreachable: Option<Unreachable>,
}

/// A robots.txt that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreachable {
    /// Since when.
    pub since: Time,
    /// How often it was tried since.
    pub tries: u32,
    /// When to try again.
    pub retry_at: Time,
    /// The site asked us to wait until then (`Retry-After`); else that is our own back-off.
    #[serde(default)]
    pub is_asked_for: bool,
    /// What happened.
    pub reason: String,
    /// How often its site had recovered by then.
    #[serde(default)]
    pub recoveries: u32,
}

impl Unreachable {
    /// Whether the file comes before the site's next page, whatever `retry_at` says: the site has answered again
    /// since, or its breaker is open, so that the next page goes after a recovery.
    pub fn comes_first(&self, state: &SiteState) -> bool {
        self.recoveries != state.health.recoveries || state.breaker.blocked_until().is_some()
    }
}

/// The politeness store: what all processes on it share.
#[async_trait]
pub trait Politeness: Send + Sync {
    /// One atomic step: records the reports, then answers the questions, by the store's own clock.
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreFault>;

    /// Judges a permit at the moment the head is about to be written. Also tells the store's time.
    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreFault>;

    /// What is known of an origin's robots.txt.
    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreFault>;

    /// Keeps what was learnt of an origin's robots.txt.
    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreFault>;

    /// Looks at a site without asking for anything. Also tells the store's time.
    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreFault>;

    /// Forgets sites at rest, never one in penalty. Returns how many.
    async fn sweep(&self) -> Result<u64, StoreFault>;

    /// The sites that operators gave orders to that may end a wait, at `since` or later, each at its last one.
    /// A store that takes no orders has none.
    async fn orders_since(&self, _since: Time) -> Result<RecentOrders, StoreFault> {
        Ok(RecentOrders::default())
    }
}

/// Orders are heard of for this long; then they just stand.
pub const ORDERS_TOLD_FOR: Duration = Duration::from_hours(1);

/// Sites in one answer about orders, at most.
pub const ORDERS_AT_ONCE: usize = 10_000;

/// The sites that such orders were given to lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentOrders {
    /// The store's time when it was asked. What is given later may be noted with an earlier time, by as
    /// much as an order takes.
    pub now: Time,
    /// Each site, and when; the earliest first, [`ORDERS_AT_ONCE`] at most.
    pub sites: Vec<(Site, Time)>,
}

/// Bodies by key, each with a time to live.
#[async_trait]
pub trait PageCache: Send + Sync {
    /// Keeps a body; one that is there is replaced.
    async fn put(&self, key: &str, body: Bytes, ttl: Duration) -> Result<(), StoreFault>;

    /// The body, unless its time is over.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreFault>;

    /// Takes out what is over. Returns how many.
    async fn sweep(&self) -> Result<u64, StoreFault>;
}

/// Something that happened, for those who follow a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Names it: the same one when its batch comes again, so that who reads it twice can tell.
    pub id: String,
    /// Events of one key are read in the order in which they were published.
    pub key: [u8; 32],
    /// JSON.
    pub value: String,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is safe. It may be there more than once.
    Confirmed,
    /// The log will never take it.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A log of events: at least once, in order for each key.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Returns once each event is safe or refused, an answer for each in order. An error means that
    /// nothing is known: the same batch is tried again.
    async fn publish(&self, events: &[Event]) -> Result<Vec<Published>, StoreFault>;
}

/// How many jobs stand where. Every move changes two of these in the same transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// All that ever came in (a recurring job counts once a round).
    pub accepted: i64,
    /// With a result.
    pub done: i64,
    /// Not to be fetched.
    pub skipped: i64,
    /// Waiting.
    pub queued: i64,
    /// Leased.
    pub in_flight: i64,
    /// Waiting for a time.
    pub delayed: i64,
    /// Given up.
    pub dead: i64,
}

impl Ledger {
    /// Whether nothing is missing and nothing is double.
    pub fn balances(&self) -> bool {
        self.difference() == 0
    }

    /// What was accepted less what is accounted for: jobs that are missing, or (below 0) double.
    pub fn difference(&self) -> i64 {
        let Ledger { done, skipped, queued, in_flight, delayed, dead, .. } = self;
        self.accepted - (done + skipped + queued + in_flight + delayed + dead)
    }

    /// What is wrong with it, in words, where the jobs themselves were counted: those that are queued,
    /// delayed, in flight and dead.
    pub fn difference_from(&self, counted: [i64; 4]) -> Option<String> {
        let told = [self.queued, self.delayed, self.in_flight, self.dead];
        let mut wrong = Vec::new();
        if !self.balances() {
            let stand = self.done + self.skipped + told.iter().sum::<i64>();
            wrong.push(format!("{} were accepted, and {stand} stand somewhere", self.accepted));
        }
        for ((name, told), counted) in
            ["queued", "delayed", "in flight", "dead"].iter().zip(told).zip(counted)
        {
            if told != counted {
                wrong.push(format!("the counter says {told} {name}, the rows say {counted}"));
            }
        }
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FullDisk;

    #[async_trait]
    impl Sink<()> for FullDisk {
        async fn write(&self, _: &[&()]) -> Result<(), StoreFault> {
            Err(StoreFault::Unavailable("no space is left".to_owned()))
        }
    }

    struct NeverSettled;

    #[async_trait]
    impl Settle for NeverSettled {
        async fn settle(&self, _: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreFault> {
            panic!("it was settled, and its records are nowhere")
        }
    }

    #[tokio::test]
    async fn what_is_not_written_is_not_settled() {
        let url = "https://example.com/".to_owned();
        let (lane, payload) = (Lane::default(), Vec::new());
        let job = Job { url, site: None, lane, deadline: None, payload };
        let (history, accepted_at) = (History::default(), Time::EPOCH);
        let lease = Lease { id: 1, job, history, interruptions: 0, accepted_at };
        let (records, settlement) = (vec![()], Settlement::Done);
        let (phases, share) = (Phases::default(), Share::none());
        let finish = SinkThenSettle { sink: FullDisk, source: NeverSettled };
        let fault = finish.finish(&[Finished { lease, records, settlement, phases, share }]).await;
        assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "{fault:?}");
    }
}
