//! A queue on a server, and an instance of it as the adapters of real servers implement it.
//!
//! [`MemoryQueue`] plays the server. This module does what an adapter does in its process: it remembers which leases it
//! knows, hands back those that it never heard of, and converts times between the clocks of server and machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::memory::{MemoryInstance, MemoryQueue};
use fetchwell_engine::ports::dead_letters::{LeaseEnding, Revision, SettleWithDetails};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lease, LeaseId, NewJob};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::checks::jobs::{Ending, JobChecks};
use crate::network::{Link, Store, at_once};
use crate::scenario::Plant;
use crate::sim::Sim;
use crate::web::site_name;

/// How long an instance lives without a renewal.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(20);

/// The server of a queue.
pub(crate) struct QueueServer {
    pub(crate) name: &'static str,
    pub(crate) queue: MemoryQueue,
    pub(crate) clock: Clock,
    pub(crate) checks: Mutex<JobChecks>,
    /// Whether results go to a separate sink before their leases are settled.
    pub(crate) delivers_first: bool,

    /// The URLs whose results are in that sink.
    pub(crate) delivered: Mutex<BTreeSet<String>>,
}

impl QueueServer {
    pub(crate) fn new(name: &'static str, clock: Clock, delivers_first: bool) -> QueueServer {
        let queue = MemoryQueue::new(clock.clone(), LEASE_TTL, false);
        let checks = Mutex::default();
        let delivered = Mutex::default();
        QueueServer { name, queue, clock, checks, delivers_first, delivered }
    }

    /// Adds a job, unless its URL is in the queue.
    pub(crate) fn enqueue(&self, job: NewJob) -> Result<(), String> {
        let offered = job.job.clone();
        let is_accepted = self.queue.enqueue(vec![job]) == 1;
        self.checks.lock().on_offered(&offered, is_accepted)
    }

    /// Adds a job, even if its URL is in the queue.
    pub(crate) fn accept(&self, job: Job) -> LeaseId {
        let id = self.checks.lock().on_accepted(&job);
        self.queue.enqueue(vec![NewJob::now(job)]);
        id
    }

    /// An operator retries or drops a dead letter. Returns `false` if it is not one.
    pub(crate) fn revise(&self, id: LeaseId, revision: Revision) -> bool {
        let is_done = self.queue.revise(id, revision);
        if is_done {
            self.checks.lock().on_revised(id, revision);
        }
        is_done
    }

    /// An operator ends a job that waits. Returns `false` if it does not wait.
    pub(crate) fn cancel(&self, id: LeaseId) -> Result<bool, String> {
        let is_done = self.queue.end_waiting(id);
        if is_done {
            self.checks.lock().on_cancelled(id)?;
        }
        Ok(is_done)
    }

    /// An operator makes a delayed job due now. Returns `false` if it is not delayed.
    pub(crate) fn hasten(&self, id: LeaseId) -> bool {
        let is_done = self.queue.hasten(id);
        if is_done {
            self.checks.lock().on_hastened(id);
        }
        is_done
    }

    /// What is stored when a lease is settled.
    fn check_delivery(&self, lease: &Lease, ending: &Ending) -> Result<(), String> {
        let url = &lease.job.url;
        let is_missing = self.delivers_first
            && ending.settlement == Settlement::Done
            && !self.delivered.lock().contains(url);
        if is_missing {
            Err(format!("{url} was settled before its result was stored"))
        } else {
            Ok(())
        }
    }
}

/// What the server knows about an instance.
struct Seat {
    server: Arc<QueueServer>,
    link: Arc<Link>,
    instance: MemoryInstance,
    state: Mutex<SeatState>,
}

#[derive(Default)]
struct SeatState {
    /// How often it lost its leases. A call from an earlier epoch has no effect.
    epoch: u32,
    /// Its leases.
    given: BTreeMap<LeaseId, Lease>,
}

/// The leases that a process knows it holds.
#[derive(Clone, Default)]
struct Known {
    epoch: u32,
    leases: BTreeSet<LeaseId>,
    /// There may be others.
    is_unsure: bool,
}

/// An instance of a queue, on the machine of its process.
pub(crate) struct RemoteInstance {
    seat: Arc<Seat>,
    link: Arc<Link>,
    /// The clock of the machine.
    clock: Clock,
    known: Mutex<Known>,
    /// The leases that the process was told it lost, and when it was told last.
    lost: Mutex<(BTreeSet<LeaseId>, Option<Instant>)>,
}

impl RemoteInstance {
    pub(crate) fn new(server: Arc<QueueServer>, link: Arc<Link>, clock: Clock) -> RemoteInstance {
        let instance = server.queue.instance();
        let seat = Seat { server, link: link.clone(), instance, state: Mutex::default() };
        let known = Mutex::default();
        RemoteInstance { seat: Arc::new(seat), link, clock, known, lost: Mutex::default() }
    }

    pub(crate) fn sim(&self) -> &Sim {
        &self.link.sim
    }

    /// Checks that a process which was told that it lost its leases does not go on with them.
    pub(crate) fn check_that_it_holds(&self, leases: impl Iterator<Item = LeaseId>) {
        let lost = self.lost.lock();
        let is_later = lost.1.is_some_and(|told_at| told_at < Instant::now());
        for id in leases.filter(|id| is_later && lost.0.contains(id)) {
            let name = &self.link.process.name;
            let found = format!("{name} finishes job {id}, although it knows that it lost it");
            self.link.sim.fail("leases", &found);
        }
    }

    async fn give_back_the_unknown(&self) -> Result<(), StoreError> {
        let known = self.known.lock().clone();
        if !known.is_unsure {
            return Ok(());
        }
        let seat = self.seat.clone();
        self.link
            .call(Store::Queues, "a hand-back", move || seat.give_back_all_but(&known))
            .await?;
        self.known.lock().is_unsure = false;
        Ok(())
    }

    /// Converts a time of the server to the clock of the machine, if the server's clock shows `server_now` now.
    fn to_local(&self, server_now: Time) -> impl Fn(Time) -> Time + use<> {
        let local_now = self.clock.now();
        move |time| shift(time, server_now, local_now)
    }

    /// The settlement with its times by the server's clock, for when the server carries it out.
    fn to_send(&self, settlement: &Settlement) -> impl FnOnce(Time) -> Settlement + Send + use<> {
        let settlement = settlement.clone();
        let local_now = self.clock.now();
        move |server_now| {
            let moved = |time| shift(time, local_now, server_now);
            match settlement {
                Settlement::Retry { at, mut history, payload } => {
                    history.first_site_failure = history.first_site_failure.map(moved);
                    Settlement::Retry { at: moved(at), history, payload }
                }
                Settlement::HandBack { at } => Settlement::HandBack { at: moved(at) },
                other => other,
            }
        }
    }

    /// Settles leases in one step, together with what `also` does at the server for the index of each that is confirmed.
    pub(crate) async fn settle_and(
        &self,
        batch: Vec<(Lease, Ending)>,
        mut also: impl FnMut(usize) + Send + 'static,
    ) -> Result<Vec<Settled>, StoreError> {
        self.settle_within(std::future::ready(()), batch, move |(), index| also(index)).await
    }

    /// The same in a transaction that begins with `begin`. What that returns is dropped when the transaction ends.
    pub(crate) async fn settle_within<B: Send + 'static>(
        &self,
        begin: impl Future<Output = B> + Send + 'static,
        batch: Vec<(Lease, Ending)>,
        mut also: impl FnMut(&mut B, usize) + Send + 'static,
    ) -> Result<Vec<Settled>, StoreError> {
        let ids: Vec<LeaseId> = batch.iter().map(|(lease, _)| lease.id).collect();
        let to_send = batch.into_iter().map(|(lease, ending)| {
            let at_server = self.to_send(&ending.settlement);
            (lease, ending, at_server)
        });
        let to_send: Vec<_> = to_send.collect();
        let seat = self.seat.clone();
        let epoch = self.known.lock().epoch;
        let settle = async move {
            let mut begun = begin.await;
            seat.settle(epoch, to_send, |index| also(&mut begun, index))
        };
        let settled = self.link.transact(Store::Queues, "a settlement", settle).await?;
        let mut known = self.known.lock();
        for id in ids {
            known.leases.remove(&id);
        }
        Ok(settled)
    }
}

fn shift(time: Time, from: Time, to: Time) -> Time {
    match time {
        Time::EPOCH | Time::FAR_FUTURE => time,
        time => time.by_clock_ahead_by_us(to.as_micros().saturating_sub(from.as_micros())),
    }
}

impl Seat {
    fn holder(&self, state: &SeatState) -> String {
        format!("{}/{}", self.link.process.name, state.epoch)
    }

    fn take(
        &self,
        epoch: u32,
        mut demand: Demand,
        spans: &[Duration],
    ) -> Result<(Time, Taken), StoreError> {
        let now = self.server.clock.now();
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return Ok((now, Taken::Idle { until: now + LEASE_TTL / 4 }));
        }
        for ((_, until), span) in demand.closed.iter_mut().zip(spans) {
            *until = now + *span;
        }
        let taken = at_once(self.instance.take(&demand))?;
        if let Taken::Jobs(leases) = &taken {
            let holder = self.holder(&state);
            let ids: Vec<LeaseId> = leases.iter().map(|lease| lease.id).collect();
            self.link.sim.note(
                &self.link.process.name,
                "take",
                format_args!("{} {ids:?}", self.server.name),
            );
            state.given.extend(leases.iter().map(|lease| (lease.id, lease.clone())));
            self.check(|checks| {
                checks.on_taken(&holder, leases, now)?;
                checks.lanes_take_turns(&demand, leases, now)
            });
        }
        Ok((now, taken))
    }

    fn give_back_all_but(&self, known: &Known) -> Result<(), StoreError> {
        let now = self.server.clock.now();
        let unknown: Vec<Lease> = {
            let state = self.state.lock();
            let unknown = state.given.values().filter(|lease| !known.leases.contains(&lease.id));
            unknown.cloned().collect()
        };
        let ends = unknown.into_iter().map(move |lease| {
            let settlement = Settlement::HandBack { at: now };
            let ending = Ending { settlement, has_details: false };
            (lease, ending, move |at: Time| Settlement::HandBack { at })
        });
        self.settle(known.epoch, ends.collect(), |_| {}).map(|_| ())
    }

    /// Returns the epoch from now on, and the number of leases that the instance holds.
    fn renew(&self) -> Result<(u32, usize), StoreError> {
        let now = self.server.clock.now();
        let renewal = at_once(self.instance.renew())?;
        let mut state = self.state.lock();
        if renewal == Renewal::Lost {
            state.epoch += 1;
            state.given.clear();
            self.link.sim.note(&self.link.process.name, "lost", format_args!("its leases"));
        }
        let holder = self.holder(&state);
        self.check(|checks| checks.on_renewed(&holder, now, now + LEASE_TTL));
        Ok((state.epoch, state.given.len()))
    }

    fn settle<F: FnOnce(Time) -> Settlement>(
        &self,
        epoch: u32,
        batch: Vec<(Lease, Ending, F)>,
        mut also: impl FnMut(usize),
    ) -> Result<Vec<Settled>, StoreError> {
        let now = self.server.clock.now();
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return Ok(vec![Settled::Stale; batch.len()]);
        }
        let holder = self.holder(&state);
        let at_server = batch.into_iter().map(|(lease, ending, at)| {
            let settlement = at(now);
            (lease, Ending { settlement, ..ending })
        });
        let batch: Vec<(Lease, Ending)> = at_server.collect();
        let ends: Vec<_> =
            batch.iter().map(|(lease, ending)| (lease, &ending.settlement)).collect();
        let settled = at_once(self.instance.settle(&ends))?;
        for (index, ((lease, ending), settled)) in batch.iter().zip(&settled).enumerate() {
            state.given.remove(&lease.id);
            self.link.sim.note(
                &self.link.process.name,
                "settle",
                format_args!("{} {} {}: {settled:?}", self.server.name, lease.id, ending.word()),
            );
            if *settled == Settled::Confirmed {
                also(index);
            }
        }
        self.check(|checks| {
            for ((lease, ending), settled) in batch.iter().zip(&settled) {
                checks.on_settled(&holder, lease, ending, *settled, now)?;
                if *settled == Settled::Confirmed {
                    self.server.check_delivery(lease, ending)?;
                }
            }
            Ok(())
        });
        Ok(settled)
    }

    /// Runs a check after an operation, and compares the ledger with what it knows.
    fn check(&self, check: impl FnOnce(&mut JobChecks) -> Result<(), String>) {
        let mut checks = self.server.checks.lock();
        let checked = check(&mut checks);
        let checked = checked.and_then(|()| checks.compare(&self.server.queue.ledger()));
        drop(checks);
        if let Err(found) = checked {
            self.link.sim.fail("jobs", &format!("{}: {found}", self.server.name));
        }
    }
}

#[async_trait]
impl Source for RemoteInstance {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        self.give_back_the_unknown().await?;
        let epoch = {
            let mut known = self.known.lock();
            known.is_unsure = true;
            known.epoch
        };
        let local_now = self.clock.now();
        let seat = self.seat.clone();
        let mut demand = demand.clone();
        if let Ok(site) = Site::parse(&site_name(0))
            && self.sim().has_plant(Plant::ClosedSite)
        {
            demand.closed.push((site, local_now + Duration::from_hours(1)));
        }
        let spans: Vec<Duration> =
            demand.closed.iter().map(|(_, until)| until.since(local_now)).collect();
        if self.sim().has_plant(Plant::TooManyLeases) {
            demand.most = usize::MAX;
        }
        let answer = self
            .link
            .call(Store::Queues, "a take", move || seat.take(epoch, demand, &spans))
            .await?;
        let local = self.to_local(answer.0);
        if self.sim().has_plant(Plant::EmptyTakes) {
            return Ok(Taken::Idle { until: local_now });
        }
        Ok(match answer.1 {
            Taken::Jobs(mut leases) => {
                for lease in &mut leases {
                    lease.accepted_at = local(lease.accepted_at);
                    lease.job.deadline = lease.job.deadline.map(&local);
                    let first = &mut lease.history.first_site_failure;
                    *first = first.map(&local);
                }
                let mut known = self.known.lock();
                known.is_unsure = false;
                let mut lost = self.lost.lock();
                lost.0.retain(|id| leases.iter().all(|lease| lease.id != *id));
                known.leases.extend(leases.iter().map(|lease| lease.id));
                Taken::Jobs(leases)
            }
            other => {
                self.known.lock().is_unsure = false;
                match other {
                    Taken::Idle { until } => Taken::Idle { until: local(until) },
                    other => other,
                }
            }
        })
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        let leases = leases.to_vec();
        let seat = self.seat.clone();
        let epoch = self.known.lock().epoch;
        let noted = self.link.call(Store::Queues, "a start", move || {
            let state = seat.state.lock();
            if state.epoch != epoch {
                return Ok(());
            }
            seat.server.checks.lock().on_started(&seat.holder(&state), &leases);
            at_once(seat.instance.started(&leases))
        });
        noted.await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        if self.sim().has_plant(Plant::BrokenStore) {
            return Err(StoreError::corrupt("a planted bug"));
        }
        let seat = self.seat.clone();
        let answer = self.link.call(Store::Queues, "a renewal", move || seat.renew()).await?;
        let epoch = answer.0;
        let held = answer.1;
        let mut known = self.known.lock();
        let is_lost = known.epoch != epoch;
        if is_lost {
            let mut lost = self.lost.lock();
            lost.0.append(&mut known.leases);
            lost.1 = Some(Instant::now());
            *known = Known { epoch, ..Known::default() };
        }
        known.is_unsure |= held > known.leases.len();
        let is_told = is_lost && !self.sim().has_plant(Plant::LossNotTold);
        Ok(if is_told { Renewal::Lost } else { Renewal::Held { ttl: LEASE_TTL } })
    }

    fn rescued(&self) -> u64 {
        self.seat.instance.rescued()
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        let seat = self.seat.clone();
        let asked = self.link.call(Store::Queues, "a look for the oldest", move || {
            let oldest = at_once(seat.instance.oldest_waiting())?;
            Ok((seat.server.clock.now(), oldest))
        });
        let answer = asked.await?;
        Ok(answer.1.map(self.to_local(answer.0)))
    }
}

#[async_trait]
impl Settle for RemoteInstance {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        let ends = batch.iter().map(|(lease, settlement)| {
            let ending = Ending { settlement: (*settlement).clone(), has_details: false };
            ((*lease).clone(), ending)
        });
        self.settle_and(ends.collect(), |_| {}).await
    }
}

#[async_trait]
impl SettleWithDetails for RemoteInstance {
    async fn settle_with(&self, batch: &[LeaseEnding<'_>]) -> Result<Vec<Settled>, StoreError> {
        let ends = batch.iter().map(|(lease, settlement, details)| {
            let settlement = (*settlement).clone();
            ((*lease).clone(), Ending { settlement, has_details: details.is_some() })
        });
        self.settle_and(ends.collect(), |_| {}).await
    }
}
