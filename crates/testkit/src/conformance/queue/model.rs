//! The expected behaviour of a queue, implemented as simply as possible: a list of jobs that is searched each time.

use std::collections::HashMap;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Lane, Lease, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::LEASE_TTL;

/// The number of lanes in a history.
pub(super) const LANES: usize = 4;

/// Identifies a job by the order in which it was added.
pub(super) type JobNumber = usize;

/// An instance and its epoch, which changes when the instance loses its leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) worker: usize,
    pub(super) epoch: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Waiting { delayed: bool },
    Leased { hold: Hold, started: bool },
    Dead,
    Gone,
}

/// Where a job waits.
type Place = (Site, Lane);

struct Expected {
    place: Place,
    key: Option<[u8; 16]>,
    accepted_at: Time,
    deadline: Option<Time>,
    due: Time,
    standing: Standing,
    history: History,
    interruptions: u32,
}

struct Instance {
    epoch: u32,
    expires_at: Time,
}

struct Closing {
    until: Time,
    /// Whether the queue may have forgotten it: overdue jobs were handed out nevertheless, and no other job waits there.
    may_be_forgotten: bool,
}

/// What the model must know of the queue.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    pub(super) instances: usize,
    pub(super) lanes_take_turns: bool,
    /// Whether jobs that became due at the same time come in the order in which they were added.
    pub(super) keeps_order_of_ties: bool,
}

/// The expected state of a run-once queue.
pub(super) struct Model {
    traits: Traits,
    jobs: Vec<Expected>,
    instances: Vec<Instance>,
    closed: HashMap<Site, Closing>,
    accepted: i64,
    done: i64,
    skipped: i64,
}

impl Model {
    /// An empty queue with instances that have all just renewed for the first time.
    pub(super) fn new(traits: Traits, now: Time) -> Model {
        let expires_at = now + LEASE_TTL;
        let instances = (0..traits.instances).map(|_| Instance { epoch: 0, expires_at }).collect();
        let jobs = Vec::new();
        let closed = HashMap::new();
        Model { traits, jobs, instances, closed, accepted: 0, done: 0, skipped: 0 }
    }

    /// The number of the next job.
    pub(super) fn next_number(&self) -> JobNumber {
        self.jobs.len()
    }

    /// Adds a job; returns whether it was accepted.
    pub(super) fn enqueue(&mut self, new: &NewJob, now: Time) -> bool {
        let key = new.key;
        let there = |job: &Expected| job.standing != Standing::Gone && job.key == key;
        if key.is_some() && self.jobs.iter().any(there) {
            return false;
        }
        let due = new.due.unwrap_or(now);
        let site = new.job.site.clone().expect("each URL has a site");
        self.jobs.push(Expected {
            place: (site, new.job.lane.clone()),
            key,
            accepted_at: now,
            deadline: new.job.deadline,
            due,
            standing: Standing::Waiting { delayed: due > now },
            history: History::default(),
            interruptions: 0,
        });
        self.accepted += 1;
        true
    }

    /// The current hold of an instance, alive or not.
    pub(super) fn hold(&self, worker: usize) -> Hold {
        Hold { worker, epoch: self.instances[worker].epoch }
    }

    pub(super) fn lives(&self, worker: usize, now: Time) -> bool {
        self.instances[worker].expires_at > now
    }

    /// Renews, after rescuing the leases of all dead instances. Returns whether the lease was still held.
    pub(super) fn renew(&mut self, worker: usize, now: Time) -> bool {
        let held = self.lives(worker, now);
        let dead: Vec<usize> = (0..self.instances.len()).filter(|w| !self.lives(*w, now)).collect();
        for job in &mut self.jobs {
            let Standing::Leased { hold, started } = job.standing else { continue };
            if !dead.contains(&hold.worker) {
                continue;
            }
            job.interruptions += u32::from(started);
            job.wait(now, now);
        }
        let instance = &mut self.instances[worker];
        instance.epoch += u32::from(!held);
        instance.expires_at = now + LEASE_TTL;
        held
    }

    /// An instance that lives leaves, and a new one takes its place.
    pub(super) fn replace(&mut self, worker: usize, now: Time) {
        let ours = self.hold(worker);
        for job in &mut self.jobs {
            if matches!(job.standing, Standing::Leased { hold, .. } if hold == ours) {
                job.wait(now, now);
            }
        }
        self.instances[worker].epoch += 1;
        self.renew(worker, now);
    }

    /// Records a start, if the instance holds the job.
    pub(super) fn start(&mut self, number: JobNumber, worker: usize) {
        let ours = self.hold(worker);
        if let Standing::Leased { hold, started } = &mut self.jobs[number].standing {
            *started |= *hold == ours;
        }
    }

    /// Settles a job, and returns the expected answer.
    pub(super) fn settle(
        &mut self,
        number: JobNumber,
        settlement: &Settlement,
        worker: usize,
        now: Time,
    ) -> Settled {
        let ours = self.hold(worker);
        let lives = self.lives(worker, now);
        let job = &mut self.jobs[number];
        let is_ours = matches!(job.standing, Standing::Leased { hold, .. } if hold == ours);
        if !lives || !is_ours {
            return Settled::Stale;
        }
        match settlement {
            Settlement::Done => {
                self.done += 1;
                job.standing = Standing::Gone;
            }
            Settlement::Skipped => {
                self.skipped += 1;
                job.standing = Standing::Gone;
            }
            Settlement::Dead { .. } => job.standing = Standing::Dead,
            Settlement::Retry { at, history, .. } => {
                job.history = *history;
                job.wait(*at, now);
            }
            Settlement::HandBack { at } => job.wait(*at, now),
        }
        Settled::Confirmed
    }

    /// Checks what an instance was given, and updates the model.
    pub(super) fn take(&mut self, worker: usize, demand: &Demand, taken: &Taken, now: Time) {
        for (site, until) in &demand.closed {
            if self.waiting_at(site).next().is_some() {
                let closing = Closing { until: *until, may_be_forgotten: false };
                self.closed.insert(site.clone(), closing);
            }
        }
        if !self.lives(worker, now) {
            assert!(matches!(taken, Taken::Idle { .. }), "the dead were given {taken:?}");
            return;
        }
        let must = self.available(demand, false, now);
        let overdue = self.overdue(now);
        match taken {
            Taken::Jobs(leases) => self.judge_leases(worker, demand, leases, now),
            _ if !overdue.is_empty() => {
                panic!("{overdue:?} are overdue, but the answer is {taken:?}")
            }
            _ if !must.is_empty() => panic!("{must:?} could be had, but the answer is {taken:?}"),
            Taken::Idle { until } => {
                assert!(self.counts().0 > 0, "nothing is left: the run is over");
                let next = self.next_at(demand).unwrap_or(Time::FAR_FUTURE);
                assert!(*until > now && *until <= next, "{until} at {now}, {next} is next");
            }
            Taken::Exhausted => assert_eq!(self.counts().0, 0, "something is left"),
        }
    }

    fn judge_leases(&mut self, worker: usize, demand: &Demand, leases: &[Lease], now: Time) {
        let must = self.available(demand, false, now);
        let may = self.available(demand, true, now);
        let mut overdue = self.overdue(now);
        assert!(!leases.is_empty() && leases.len() <= demand.most, "{} given", leases.len());
        let hold = self.hold(worker);
        let mut given: HashMap<Place, Vec<JobNumber>> = HashMap::new();
        let mut late: HashMap<Place, usize> = HashMap::new();
        for lease in leases {
            let number = number_of(lease);
            let job = &mut self.jobs[number];
            assert!(job.waits(), "{number} was given, but it is {:?}", job.standing);
            assert_eq!((lease.history, lease.interruptions), (job.history, job.interruptions));
            assert_eq!((lease.accepted_at, lease.job.deadline), (job.accepted_at, job.deadline));
            job.standing = Standing::Leased { hold, started: false };
            let place = job.place.clone();
            match overdue.iter().position(|late| *late == number) {
                Some(index) => {
                    overdue.swap_remove(index);
                    *late.entry(place).or_default() += 1;
                }
                None => given.entry(place).or_default().push(number),
            }
        }
        for (place, numbers) in &given {
            assert!(numbers.len() <= demand.most_per_site, "{numbers:?} are too many of {place:?}");
            self.judge_order(numbers, may.get(place).map_or(&[][..], Vec::as_slice));
        }
        if leases.len() < demand.most {
            assert!(overdue.is_empty(), "{overdue:?} are overdue, too");
            self.judge_shares(demand, &must, &given, &late);
        }
        self.forget_closings(now);
    }

    /// The first of those that could be had are handed out.
    fn judge_order(&self, given: &[JobNumber], could: &[JobNumber]) {
        if self.traits.keeps_order_of_ties {
            assert!(could.starts_with(given), "{given:?} of {could:?}");
            return;
        }
        assert!(given.iter().all(|number| could.contains(number)), "{given:?} of {could:?}");
        let due = |numbers: &[JobNumber]| -> Vec<Time> {
            numbers.iter().map(|number| self.jobs[*number].due).collect()
        };
        assert!(due(could).starts_with(&due(given)), "{given:?} of {could:?}");
    }

    /// If fewer jobs were handed out than requested, each lane got all that it could have, or at least its share of what
    /// was left after the overdue jobs, which may count for the limit of their site.
    fn judge_shares(
        &self,
        demand: &Demand,
        must: &HashMap<Place, Vec<JobNumber>>,
        given: &HashMap<Place, Vec<JobNumber>>,
        late: &HashMap<Place, usize>,
    ) {
        let mut lanes: HashMap<&Lane, (usize, usize)> = HashMap::new();
        for (place, numbers) in must {
            let of_site =
                demand.most_per_site.saturating_sub(late.get(place).copied().unwrap_or(0));
            let lane = lanes.entry(&place.1).or_default();
            lane.0 += numbers.len().min(of_site);
            lane.1 += given.get(place).map_or(0, Vec::len);
        }
        let most = demand.most - late.values().sum::<usize>();
        let share = if self.traits.lanes_take_turns { most / LANES } else { most };
        for (lane, (could, got)) in lanes {
            assert!(got >= could.min(share), "{got} of {could} of {lane:?}, its share is {share}");
        }
    }

    /// A queue may forget that a site is closed once no job waits there.
    fn forget_closings(&mut self, now: Time) {
        let jobs = &self.jobs;
        for (site, closing) in &mut self.closed {
            let waits = jobs.iter().any(|job| job.waits() && job.place.0 == *site);
            closing.may_be_forgotten |= closing.until > now && !waits;
        }
    }

    /// The jobs that are not overdue and can be leased now, by place, in order.
    fn available(
        &self,
        demand: &Demand,
        opens_forgotten: bool,
        now: Time,
    ) -> HashMap<Place, Vec<JobNumber>> {
        let mut available: HashMap<Place, Vec<JobNumber>> = HashMap::new();
        for (number, job) in self.jobs.iter().enumerate() {
            let at = job.due.max(self.closed_until(&job.place.0, opens_forgotten));
            if job.waits() && !job.is_overdue(now) && at <= now && !job.rests(demand) {
                available.entry(job.place.clone()).or_default().push(number);
            }
        }
        for numbers in available.values_mut() {
            numbers.sort_by_key(|number| (self.jobs[*number].due, *number));
        }
        available
    }

    fn overdue(&self, now: Time) -> Vec<JobNumber> {
        let numbered = self.jobs.iter().enumerate();
        let overdue = numbered.filter(|(_, job)| job.waits() && job.is_overdue(now));
        overdue.map(|(number, _)| number).collect()
    }

    /// When the next job can be leased at the latest.
    fn next_at(&self, demand: &Demand) -> Option<Time> {
        let waiting = self.jobs.iter().filter(|job| job.waits());
        let at = waiting.filter_map(|job| {
            let opens = job.due.max(self.closed_until(&job.place.0, false));
            let in_turn = (!job.rests(demand)).then_some(opens);
            in_turn.into_iter().chain(job.deadline).min()
        });
        at.min()
    }

    fn closed_until(&self, site: &Site, opens_forgotten: bool) -> Time {
        let closing = self.closed.get(site);
        let closing = closing.filter(|closing| !(opens_forgotten && closing.may_be_forgotten));
        closing.map_or(Time::EPOCH, |closing| closing.until)
    }

    fn waiting_at(&self, site: &Site) -> impl Iterator<Item = &Expected> {
        self.jobs.iter().filter(move |job| job.waits() && job.place.0 == *site)
    }

    /// Checks the time at which the oldest waiting job was accepted. Leased jobs may count.
    pub(super) fn judge_oldest(&self, oldest: Option<Time>) {
        let Some(oldest) = oldest else { return };
        let accepted = |job: &&Expected| job.accepted_at;
        let waiting = self.jobs.iter().filter(|job| job.waits());
        let unfinished = self.jobs.iter().filter(|job| job.waits() || job.is_leased());
        let latest = waiting.map(|job| accepted(&job)).min().unwrap_or(Time::FAR_FUTURE);
        let earliest = unfinished.map(|job| accepted(&job)).min().unwrap_or(Time::FAR_FUTURE);
        assert!(earliest <= oldest && oldest <= latest, "{oldest}, not {earliest} to {latest}");
    }

    /// The number of unfinished jobs, and the ledger.
    fn counts(&self) -> (i64, Ledger) {
        let accepted = self.accepted;
        let done = self.done;
        let skipped = self.skipped;
        let mut ledger = Ledger { accepted, done, skipped, ..Ledger::default() };
        for job in &self.jobs {
            match job.standing {
                Standing::Waiting { delayed: false } => ledger.queued += 1,
                Standing::Waiting { delayed: true } => ledger.delayed += 1,
                Standing::Leased { .. } => ledger.in_flight += 1,
                Standing::Dead => ledger.dead += 1,
                Standing::Gone => {}
            }
        }
        (ledger.unfinished(), ledger)
    }

    /// The expected number of jobs in each state.
    pub(super) fn ledger(&self) -> Ledger {
        self.counts().1
    }

    /// Whether the instance holds the job now.
    pub(super) fn is_held_by(&self, number: JobNumber, by: Hold) -> bool {
        matches!(self.jobs[number].standing, Standing::Leased { hold, .. } if hold == by)
    }
}

impl Expected {
    fn waits(&self) -> bool {
        matches!(self.standing, Standing::Waiting { .. })
    }

    fn is_leased(&self) -> bool {
        matches!(self.standing, Standing::Leased { .. })
    }

    fn is_overdue(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    fn rests(&self, demand: &Demand) -> bool {
        self.place.1.group.as_ref().is_some_and(|group| demand.resting.contains(group))
    }

    fn wait(&mut self, due: Time, now: Time) {
        self.due = due;
        self.standing = Standing::Waiting { delayed: due > now };
    }
}

/// The number of a job, which is its payload.
pub(super) fn number_of(lease: &Lease) -> JobNumber {
    let bytes = lease.job.payload.as_slice().try_into().expect("a number as the payload");
    JobNumber::from_le_bytes(bytes)
}
