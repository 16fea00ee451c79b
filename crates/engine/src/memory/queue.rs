//! The queue in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::ports::dead_letters::Revision;
use crate::ports::error::StoreError;
use crate::ports::finish::{Settle, Settled, Settlement};
use crate::ports::job::{Lane, Lease, LeaseId, NewJob};
use crate::ports::queue::{Instance, Ledger, LedgerMismatch, Queue};
use crate::ports::source::{Demand, Renewal, Source, Taken};

/// A queue in memory that several instances can share.
#[derive(Clone)]
pub struct MemoryQueue {
    clock: Clock,
    lease_ttl: Duration,
    /// Whether an empty queue ends the run.
    run_once: bool,
    state: Arc<Mutex<QueueState>>,
}

#[derive(Default)]
struct QueueState {
    jobs: BTreeMap<LeaseId, Stored>,
    keys: BTreeSet<[u8; 16]>,
    /// Waiting jobs, by site and lane. No room is empty.
    rooms: BTreeMap<Place, Room>,
    /// The sites of each lane, by when their rooms may next hand out a job. No lane is empty.
    agenda: BTreeMap<Lane, BTreeSet<(Time, String)>>,
    /// Waiting jobs, by deadline.
    deadlines: BTreeSet<(Time, LeaseId)>,
    instances: BTreeMap<u64, Time>,
    ledger: Ledger,
    next_id: LeaseId,
    next_epoch: u64,
}

/// A site and one of its lanes.
type Place = (String, Lane);

/// The waiting jobs of a site and one of its lanes.
#[derive(Default)]
struct Room {
    waiting: BTreeSet<(Time, LeaseId)>,
    closed_until: Time,
    /// Its time on the agenda.
    due: Option<Time>,
}

struct Stored {
    lease: Lease,
    key: Option<[u8; 16]>,
    due: Time,
    standing: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Queued,
    Delayed,
    Leased { epoch: u64, started: bool },
    Dead(String),
}

/// An instance that takes leases from a [`MemoryQueue`].
pub struct MemoryInstance {
    queue: MemoryQueue,
    epoch: Mutex<Option<u64>>,
    /// The lane that was first at the last take.
    turn: Mutex<Lane>,
    /// The number of leases that it rescued from dead instances.
    rescued: AtomicU64,
}

impl MemoryQueue {
    /// An empty queue; with `run_once`, the run ends when it is empty.
    pub fn new(clock: Clock, lease_ttl: Duration, run_once: bool) -> MemoryQueue {
        MemoryQueue { clock, lease_ttl, run_once, state: Arc::default() }
    }

    /// A queue of this process alone: nobody else takes its leases, so they need not expire soon.
    pub fn private(clock: Clock, run_once: bool) -> MemoryQueue {
        MemoryQueue::new(clock, Duration::from_secs(3_600), run_once)
    }

    /// Joins as a new instance.
    pub fn instance(&self) -> MemoryInstance {
        MemoryInstance {
            queue: self.clone(),
            epoch: Mutex::default(),
            turn: Mutex::default(),
            rescued: AtomicU64::new(0),
        }
    }

    /// Adds jobs, except those whose keys are already present. Returns how many were added.
    pub fn enqueue(&self, jobs: Vec<NewJob>) -> usize {
        let now = self.clock.now();
        let mut queue = self.state.lock();
        let mut accepted = 0;
        for NewJob { job, key, due } in jobs {
            if key.is_some_and(|key| !queue.keys.insert(key)) {
                continue;
            }
            queue.next_id += 1;
            let id = queue.next_id;
            let history = Default::default();
            let lease = Lease { id, job, history, interruptions: 0, accepted_at: now };
            queue.jobs.insert(id, Stored { lease, key, due: now, standing: Standing::Queued });
            queue.ledger.accepted += 1;
            queue.wait(id, due.unwrap_or(now), due.is_some_and(|due| due > now));
            accepted += 1;
        }
        accepted
    }

    /// How many jobs are in each state.
    pub fn ledger(&self) -> Ledger {
        self.state.lock().ledger
    }

    /// Ends a waiting job as done. Returns `false` if it does not wait.
    pub fn end_waiting(&self, id: LeaseId) -> bool {
        let mut queue = self.state.lock();
        let waits = queue.stop_waiting(id);
        if waits {
            queue.ledger.done += 1;
            queue.forget(id);
        }
        waits
    }

    /// Makes a delayed job due now. Returns `false` if it is not delayed.
    pub fn hasten(&self, id: LeaseId) -> bool {
        let now = self.clock.now();
        let mut queue = self.state.lock();
        let is_delayed =
            queue.jobs.get(&id).is_some_and(|stored| stored.standing == Standing::Delayed);
        if is_delayed && queue.stop_waiting(id) {
            queue.wait(id, now, false);
        }
        is_delayed
    }

    /// Retries a dead job with an empty history, or drops it. Returns `false` if it is not dead.
    pub fn revise(&self, id: LeaseId, revision: Revision) -> bool {
        let now = self.clock.now();
        let mut queue = self.state.lock();
        let Some(stored) = queue.jobs.get_mut(&id) else { return false };
        if !matches!(stored.standing, Standing::Dead(_)) {
            return false;
        }
        stored.lease.history = Default::default();
        stored.lease.interruptions = 0;
        queue.ledger.dead -= 1;
        match revision {
            Revision::Retry => queue.wait(id, now, false),
            Revision::Drop => {
                queue.ledger.skipped += 1;
                queue.forget(id);
            }
        }
        true
    }

    /// The URLs of dead jobs, with the reasons.
    pub fn dead(&self) -> Vec<(String, String)> {
        let queue = self.state.lock();
        let dead = queue.jobs.values().filter_map(|stored| match &stored.standing {
            Standing::Dead(reason) => Some((stored.lease.job.url.clone(), reason.clone())),
            _ => None,
        });
        dead.collect()
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<usize, StoreError> {
        Ok(MemoryQueue::enqueue(self, jobs))
    }

    fn instance(&self) -> Arc<dyn Instance> {
        Arc::new(MemoryQueue::instance(self))
    }

    async fn ledger(&self) -> Result<Ledger, StoreError> {
        Ok(MemoryQueue::ledger(self))
    }

    /// The jobs are not counted again, because nothing else could have changed them.
    async fn audit(&self) -> Result<Result<Ledger, LedgerMismatch>, StoreError> {
        Ok(Ok(MemoryQueue::ledger(self)))
    }
}

impl QueueState {
    /// Makes a job wait until `due`; it must not be waiting already.
    fn wait(&mut self, id: LeaseId, due: Time, delayed: bool) {
        let Some(stored) = self.jobs.get_mut(&id) else { return };
        stored.due = due;
        stored.standing = if delayed { Standing::Delayed } else { Standing::Queued };
        if delayed {
            self.ledger.delayed += 1;
        } else {
            self.ledger.queued += 1;
        }
        if let Some(deadline) = stored.lease.job.deadline {
            self.deadlines.insert((deadline, id));
        }
        let place = place_of(&stored.lease);
        if !self.rooms.contains_key(&place) {
            let closed_until = self.closed_until(&place.0);
            self.rooms.insert(place.clone(), Room { closed_until, ..Room::default() });
        }
        if let Some(room) = self.rooms.get_mut(&place) {
            room.waiting.insert((due, id));
        }
        self.reschedule(&place);
    }

    /// A closed site is closed for every lane.
    fn closed_until(&self, site: &str) -> Time {
        let of_site =
            self.rooms.range(first_place(site)..).take_while(|((name, _), _)| name == site);
        of_site.map(|(_, room)| room.closed_until).max().unwrap_or(Time::EPOCH)
    }

    /// The last call for a site wins, even if its time is earlier.
    fn close_until(&mut self, site: &str, until: Time) {
        let mut closed = Vec::new();
        let from = self.rooms.range_mut(first_place(site)..);
        for (place, room) in from.take_while(|((name, _), _)| name == site) {
            room.closed_until = until;
            closed.push(place.clone());
        }
        for place in closed {
            self.reschedule(&place);
        }
    }

    /// Puts a room on the agenda for its first job, but not while its site is closed. Removes it if it is empty.
    fn reschedule(&mut self, place: &Place) {
        let Some(room) = self.rooms.get_mut(place) else { return };
        let next = room.waiting.first().map(|(due, _)| room.closed_until.max(*due));
        let before = std::mem::replace(&mut room.due, next);
        if next.is_none() {
            self.rooms.remove(place);
        }
        if before == next {
            return;
        }
        let (site, lane) = place;
        let of_lane = self.agenda.entry(lane.clone()).or_default();
        if let Some(due) = before {
            of_lane.remove(&(due, site.clone()));
        }
        if let Some(due) = next {
            of_lane.insert((due, site.clone()));
        }
        if of_lane.is_empty() {
            self.agenda.remove(lane);
        }
    }

    /// The lanes that may hand out jobs, starting with the one after `turn`; without groups that rest.
    fn due_lanes(&self, demand: &Demand, turn: &Lane, now: Time) -> Vec<Lane> {
        let is_due =
            |sites: &BTreeSet<(Time, String)>| sites.first().is_some_and(|(due, _)| *due <= now);
        let due = self.agenda.iter().filter(|(lane, sites)| is_due(sites) && !rests(lane, demand));
        let mut lanes: Vec<Lane> = due.map(|(lane, _)| lane.clone()).collect();
        let first = lanes.iter().position(|lane| lane > turn).unwrap_or(0);
        lanes.rotate_left(first);
        lanes
    }

    /// At most `most` sites of a lane that may hand out jobs.
    fn due_sites(&self, lane: &Lane, most: usize, now: Time) -> Vec<String> {
        let sites = self.agenda.get(lane).into_iter().flatten();
        let due = sites.take_while(|(due, _)| *due <= now).take(most);
        due.map(|(_, site)| site.clone()).collect()
    }

    fn lease_from(&mut self, place: &Place, most: usize, epoch: u64, now: Time) -> Vec<Lease> {
        let Some(room) = self.rooms.get(place) else { return Vec::new() };
        let due = room.waiting.range(..=(now, LeaseId::MAX)).take(most).map(|(_, id)| *id);
        let due: Vec<LeaseId> = due.collect();
        let leases = due.into_iter().filter_map(|id| self.lease(id, epoch)).collect();
        self.reschedule(place);
        leases
    }

    /// Jobs whose deadlines have passed are handed out, however long their sites are closed.
    fn lease_overdue(&mut self, most: usize, epoch: u64, now: Time) -> Vec<Lease> {
        let overdue = self.deadlines.range(..=(now, LeaseId::MAX)).take(most).map(|(_, id)| *id);
        let overdue: Vec<LeaseId> = overdue.collect();
        let leases: Vec<Lease> =
            overdue.into_iter().filter_map(|id| self.lease(id, epoch)).collect();
        for lease in &leases {
            self.reschedule(&place_of(lease));
        }
        leases
    }

    /// Takes a job out of those that wait. Returns `false` if it does not wait.
    fn stop_waiting(&mut self, id: LeaseId) -> bool {
        let Some(stored) = self.jobs.get(&id) else { return false };
        match stored.standing {
            Standing::Queued => self.ledger.queued -= 1,
            Standing::Delayed => self.ledger.delayed -= 1,
            Standing::Leased { .. } | Standing::Dead(_) => return false,
        }
        let place = place_of(&stored.lease);
        if let Some(deadline) = stored.lease.job.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        if let Some(room) = self.rooms.get_mut(&place) {
            room.waiting.remove(&(stored.due, id));
        }
        self.reschedule(&place);
        true
    }

    /// Removes a job that has ended.
    fn forget(&mut self, id: LeaseId) {
        if let Some(key) = self.jobs.remove(&id).and_then(|stored| stored.key) {
            self.keys.remove(&key);
        }
    }

    fn lease(&mut self, id: LeaseId, epoch: u64) -> Option<Lease> {
        let stored = self.jobs.get_mut(&id)?;
        match stored.standing {
            Standing::Delayed => self.ledger.delayed -= 1,
            _ => self.ledger.queued -= 1,
        }
        self.ledger.in_flight += 1;
        stored.standing = Standing::Leased { epoch, started: false };
        let lease = stored.lease.clone();
        let due = stored.due;
        if let Some(deadline) = lease.job.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        if let Some(room) = self.rooms.get_mut(&place_of(&lease)) {
            room.waiting.remove(&(due, id));
        }
        Some(lease)
    }

    /// Makes the leases of dead instances wait again. Returns how many there were.
    fn rescue(&mut self, now: Time) -> usize {
        let expired = self.instances.extract_if(.., |_, expires| *expires <= now);
        let dead: BTreeSet<u64> = expired.map(|(epoch, _)| epoch).collect();
        self.requeue_leases(&dead, true, now)
    }

    /// Requeues the leases of these instances. If `count_interruptions`, fetches in progress count as interrupted.
    fn requeue_leases(
        &mut self,
        epochs: &BTreeSet<u64>,
        count_interruptions: bool,
        now: Time,
    ) -> usize {
        let leases: Vec<(LeaseId, bool)> = self
            .jobs
            .iter()
            .filter_map(|(id, stored)| match stored.standing {
                Standing::Leased { epoch, started } if epochs.contains(&epoch) => {
                    Some((*id, started))
                }
                _ => None,
            })
            .collect();
        for (id, started) in &leases {
            self.ledger.in_flight -= 1;
            let Some(stored) = self.jobs.get_mut(id) else { continue };
            stored.lease.interruptions += u32::from(count_interruptions && *started);
            self.wait(*id, now, false);
        }
        leases.len()
    }

    fn settle(&mut self, lease: &Lease, settlement: &Settlement, epoch: u64, now: Time) -> Settled {
        let Some(stored) = self.jobs.get_mut(&lease.id) else { return Settled::Stale };
        if !matches!(stored.standing, Standing::Leased { epoch: held, .. } if held == epoch) {
            return Settled::Stale;
        }
        self.ledger.in_flight -= 1;
        match settlement {
            Settlement::Done | Settlement::Skipped => {
                if let Some(key) = stored.key {
                    self.keys.remove(&key);
                }
                self.jobs.remove(&lease.id);
                match settlement {
                    Settlement::Done => self.ledger.done += 1,
                    _ => self.ledger.skipped += 1,
                }
            }
            Settlement::Retry { at, history, payload } => {
                stored.lease.history = *history;
                if let Some(payload) = payload {
                    stored.lease.job.payload.clone_from(payload);
                }
                self.wait(lease.id, *at, *at > now);
            }
            Settlement::HandBack { at } => self.wait(lease.id, *at, *at > now),
            Settlement::Dead { reason } => {
                stored.standing = Standing::Dead(reason.clone());
                self.ledger.dead += 1;
            }
        }
        Settled::Confirmed
    }
}

impl MemoryInstance {
    /// The epoch, if this instance is still alive by the queue's clock.
    fn live_epoch(&self, queue: &QueueState, now: Time) -> Option<u64> {
        let epoch = (*self.epoch.lock())?;
        (*queue.instances.get(&epoch)? > now).then_some(epoch)
    }
}

#[async_trait]
impl Source for MemoryInstance {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let now = self.queue.clock.now();
        let mut queue = self.queue.state.lock();
        for (site, until) in &demand.closed {
            queue.close_until(site.as_str(), *until);
        }
        let Some(epoch) = self.live_epoch(&queue, now) else {
            return Ok(Taken::Idle { until: now + self.queue.lease_ttl / 4 });
        };
        let mut turn = self.turn.lock();
        let lanes = queue.due_lanes(demand, &turn, now);
        if let Some(first) = lanes.first() {
            turn.clone_from(first);
        }
        let mut leases = queue.lease_overdue(demand.most, epoch, now);
        let mut lanes_left = lanes.len();
        for lane in lanes {
            let share = (demand.most - leases.len()).div_ceil(lanes_left);
            let share = match (&lane.group, demand.most_per_group) {
                (Some(_), most @ 1..) => share.min(most),
                _ => share,
            };
            let full = leases.len() + share;
            // Each of them hands out at least one.
            for site in queue.due_sites(&lane, share, now) {
                let most = demand.most_per_site.min(full - leases.len());
                leases.extend(queue.lease_from(&(site, lane.clone()), most, epoch, now));
            }
            lanes_left -= 1;
        }
        if !leases.is_empty() {
            return Ok(Taken::Jobs(leases));
        }
        let ledger = queue.ledger;
        if self.queue.run_once && ledger.unfinished() == 0 {
            return Ok(Taken::Exhausted);
        }
        let poll = now + Duration::from_secs(1);
        let may_give = queue.agenda.iter().filter(|(lane, _)| !rests(lane, demand));
        let due = may_give.filter_map(|(_, sites)| Some(sites.first()?.0)).min();
        let deadline = queue.deadlines.first().map(|(deadline, _)| *deadline);
        let next = due.into_iter().chain(deadline).min().unwrap_or(poll);
        Ok(Taken::Idle { until: next.max(now).min(poll) })
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        let Some(ours) = *self.epoch.lock() else { return Ok(()) };
        let mut queue = self.queue.state.lock();
        for id in leases {
            match queue.jobs.get_mut(id).map(|stored| &mut stored.standing) {
                Some(Standing::Leased { epoch, started }) if *epoch == ours => *started = true,
                _ => {}
            }
        }
        Ok(())
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        let now = self.queue.clock.now();
        let mut queue = self.queue.state.lock();
        let held = self.live_epoch(&queue, now);
        self.rescued.fetch_add(queue.rescue(now) as u64, Ordering::Relaxed);
        let mut epoch = self.epoch.lock();
        let is_first = epoch.is_none();
        let current = held.unwrap_or_else(|| {
            queue.next_epoch += 1;
            queue.next_epoch
        });
        *epoch = Some(current);
        queue.instances.insert(current, now + self.queue.lease_ttl);
        let kept = held.is_some() || is_first;
        Ok(if kept { Renewal::Held { ttl: self.queue.lease_ttl } } else { Renewal::Lost })
    }

    async fn leave(&self) -> Result<(), StoreError> {
        let now = self.queue.clock.now();
        let mut queue = self.queue.state.lock();
        if let Some(epoch) = self.epoch.lock().take() {
            queue.instances.remove(&epoch);
            queue.requeue_leases(&BTreeSet::from([epoch]), false, now);
        }
        Ok(())
    }

    fn rescued(&self) -> u64 {
        self.rescued.load(Ordering::Relaxed)
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        let queue = self.queue.state.lock();
        let waits =
            |stored: &&Stored| matches!(stored.standing, Standing::Queued | Standing::Delayed);
        // Ids are in the order of acceptance.
        Ok(queue.jobs.values().find(waits).map(|stored| stored.lease.accepted_at))
    }
}

#[async_trait]
impl Settle for MemoryInstance {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        let now = self.queue.clock.now();
        let mut queue = self.queue.state.lock();
        let Some(epoch) = self.live_epoch(&queue, now) else {
            return Ok(vec![Settled::Stale; batch.len()]);
        };
        let settled =
            batch.iter().map(|(lease, settlement)| queue.settle(lease, settlement, epoch, now));
        Ok(settled.collect())
    }
}

fn place_of(lease: &Lease) -> Place {
    let site = lease.job.site.as_ref().map_or("", Site::as_str);
    (site.to_owned(), lease.job.lane.clone())
}

/// The place of a site that comes before its others.
fn first_place(site: &str) -> Place {
    (site.to_owned(), Lane::default())
}

fn rests(lane: &Lane, demand: &Demand) -> bool {
    lane.group.as_ref().is_some_and(|group| demand.resting.contains(group))
}
