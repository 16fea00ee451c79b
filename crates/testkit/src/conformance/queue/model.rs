//! The expected behaviour of a queue, implemented as simply as possible: a list of jobs that is searched each time.

use std::collections::HashMap;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::LEASE_TTL;

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

struct Expected {
    site: Site,
    key: Option<[u8; 16]>,
    due: Time,
    standing: Standing,
    history: History,
    interruptions: u32,
}

struct Instance {
    epoch: u32,
    expires_at: Time,
}

/// The expected state of a run-once queue.
pub(super) struct Model {
    jobs: Vec<Expected>,
    instances: Vec<Instance>,
    closed: HashMap<Site, Time>,
    accepted: i64,
    done: i64,
    skipped: i64,
}

impl Model {
    /// An empty queue with instances that have all just renewed for the first time.
    pub(super) fn new(instances: usize, now: Time) -> Model {
        let expires_at = now + LEASE_TTL;
        let instances = (0..instances).map(|_| Instance { epoch: 0, expires_at }).collect();
        let jobs = Vec::new();
        let closed = HashMap::new();
        Model { jobs, instances, closed, accepted: 0, done: 0, skipped: 0 }
    }

    /// The number of the next job.
    pub(super) fn next_number(&self) -> JobNumber {
        self.jobs.len()
    }

    /// Adds a job; returns whether it was accepted.
    pub(super) fn enqueue(
        &mut self,
        site: Site,
        key: Option<[u8; 16]>,
        due: Time,
        now: Time,
    ) -> bool {
        let there = |job: &Expected| job.standing != Standing::Gone && job.key == key;
        if key.is_some() && self.jobs.iter().any(there) {
            return false;
        }
        let standing = Standing::Waiting { delayed: due > now };
        let history = History::default();
        self.jobs.push(Expected { site, key, due, standing, history, interruptions: 0 });
        self.accepted += 1;
        true
    }

    /// The current hold of an instance, alive or not.
    pub(super) fn hold(&self, worker: usize) -> Hold {
        Hold { worker, epoch: self.instances[worker].epoch }
    }

    fn lives(&self, worker: usize, now: Time) -> bool {
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
            job.due = now;
            job.standing = Standing::Waiting { delayed: false };
        }
        let instance = &mut self.instances[worker];
        instance.epoch += u32::from(!held);
        instance.expires_at = now + LEASE_TTL;
        held
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
            if self.waiting(site).next().is_some() {
                self.closed.insert(site.clone(), *until);
            }
        }
        if !self.lives(worker, now) {
            assert!(matches!(taken, Taken::Idle { .. }), "the dead were given {taken:?}");
            return;
        }
        let available = self.available(now);
        match taken {
            Taken::Jobs(leases) => self.judge_leases(worker, demand, leases, &available),
            _ if !available.is_empty() => panic!("{available:?} could be had, not {taken:?}"),
            Taken::Idle { until } => {
                assert!(self.counts().0 > 0, "nothing is left: the run is over");
                let next = self.opens_next().unwrap_or(Time::FAR_FUTURE);
                assert!(*until > now && *until <= next, "{until} at {now}, {next} is next");
            }
            Taken::Exhausted => assert_eq!(self.counts().0, 0, "something is left"),
        }
    }

    fn judge_leases(
        &mut self,
        worker: usize,
        demand: &Demand,
        leases: &[Lease],
        available: &HashMap<Site, Vec<JobNumber>>,
    ) {
        assert!(!leases.is_empty() && leases.len() <= demand.most, "{} given", leases.len());
        let mut given: HashMap<Site, Vec<JobNumber>> = HashMap::new();
        for lease in leases {
            let number = number_of(lease);
            let hold = self.hold(worker);
            let job = &mut self.jobs[number];
            given.entry(job.site.clone()).or_default().push(number);
            assert_eq!((lease.history, lease.interruptions), (job.history, job.interruptions));
            job.standing = Standing::Leased { hold, started: false };
        }
        for (site, numbers) in &given {
            assert!(numbers.len() <= demand.most_per_site, "{numbers:?} are too many of {site}");
            let could = available.get(site).map_or(&[][..], Vec::as_slice);
            assert!(could.starts_with(numbers), "{numbers:?} of {could:?} of {site}");
        }
        if leases.len() < demand.most {
            for (site, numbers) in available {
                let given = given.get(site).map_or(0, Vec::len);
                assert_eq!(given, numbers.len().min(demand.most_per_site), "of {site}");
            }
        }
    }

    /// The jobs that could be leased now, by site, in order.
    fn available(&self, now: Time) -> HashMap<Site, Vec<JobNumber>> {
        let mut available: HashMap<Site, Vec<JobNumber>> = HashMap::new();
        for (number, job) in self.jobs.iter().enumerate() {
            if job.waits() && job.due.max(self.closed_until(&job.site)) <= now {
                available.entry(job.site.clone()).or_default().push(number);
            }
        }
        for numbers in available.values_mut() {
            numbers.sort_by_key(|number| (self.jobs[*number].due, *number));
        }
        available
    }

    fn opens_next(&self) -> Option<Time> {
        let waiting = self.jobs.iter().filter(|job| job.waits());
        waiting.map(|job| job.due.max(self.closed_until(&job.site))).min()
    }

    fn closed_until(&self, site: &Site) -> Time {
        self.closed.get(site).copied().unwrap_or(Time::EPOCH)
    }

    fn waiting(&self, site: &Site) -> impl Iterator<Item = &Expected> {
        self.jobs.iter().filter(move |job| job.waits() && job.site == *site)
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
