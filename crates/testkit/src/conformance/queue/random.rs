//! A random history, compared with the model step by step.

use std::time::Duration;

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::source::{Demand, Renewal, Taken};
use fetchwell_policy::retry::History;
use fetchwell_policy::site::HORIZON;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::lanes::lane;
use super::model::{Hold, LANES, Model, Traits, number_of};
use super::trial::{Trial, Worker, site};
use super::{LEASE_TTL, QueueStore};
use crate::conformance::replay::{Dice, for_each_seed};
use crate::replay::{count_or, is_soak};

/// The number of histories: in the test command, and in `scripts/soak`.
const HISTORIES: [u64; 2] = [4, 50];
/// The length of each history.
const STEPS: [usize; 2] = [400, 1_000];
const WORKERS: usize = 3;
const SITES: usize = 4;
const GROUPS: [&str; LANES] = ["", "shop", "shop", "bank"];
const PARTIES: [&str; LANES] = ["", "anna", "berta", "anna"];
/// The maximum number of unfinished jobs, because the model searches all of them each time.
const MOST_LEFT: i64 = 60;

/// Three instances in two processes perform random operations; the queue must behave like the model.
pub async fn a_random_history_follows_the_model(store: &dyn QueueStore) {
    histories(store, false).await;
}

pub(super) async fn histories(store: &dyn QueueStore, lanes_take_turns: bool) {
    let soak = usize::from(is_soak());
    let count = count_or("FETCHWELL_TEST_QUEUE_HISTORIES", HISTORIES[soak]);
    for_each_seed(0..count, |seed| async move {
        // With one process that adds jobs, the order of all jobs is known.
        let traits = Traits {
            instances: WORKERS,
            lanes_take_turns,
            keeps_order_of_ties: seed.is_multiple_of(2),
        };
        history(&*store.fresh(), seed, traits, STEPS[soak]).await;
    })
    .await;
}

async fn history(store: &dyn QueueStore, seed: u64, traits: Traits, steps: usize) {
    let one = Trial::new(store).await;
    let other = one.beside(store).await;
    let trials = [&one, &other];
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        workers.push(trials[worker % trials.len()].worker().await);
    }
    let model = Model::new(traits, one.now());
    let dice = Dice::seeded(seed);
    let mut history = RandomHistory { trials, traits, workers, model, dice, taken: Vec::new() };
    for _ in 0..steps {
        history.step().await;
        assert_eq!(one.ledger().await, history.model.ledger());
    }
    history.wind_up().await;
}

struct RandomHistory<'a> {
    /// The queue, as seen by each process.
    trials: [&'a Trial; 2],
    traits: Traits,
    workers: Vec<Worker<'a>>,
    model: Model,
    dice: Dice,
    /// All recent leases, settled or not: dead instances come back with old leases.
    taken: Vec<(Lease, Hold)>,
}

impl RandomHistory<'_> {
    async fn step(&mut self) {
        let worker = self.dice.below(WORKERS);
        match self.dice.below(42) {
            0..=7 => self.enqueue().await,
            8..=17 => self.take(worker).await,
            18..=20 => self.start(worker).await,
            21..=31 => self.settle().await,
            32..=35 => self.renew(worker).await,
            36 => self.replace(worker).await,
            37 => self.model.judge_oldest(self.workers[worker].oldest_waiting().await),
            // Far enough on average that an instance occasionally renews too late.
            38..=39 => {
                let span = self.millis(9_000);
                self.advance(Duration::from_millis(span));
            }
            _ if self.dice.once_in(10) => self.advance(LEASE_TTL),
            _ => self.advance(Duration::from_micros(1)),
        }
    }

    fn now(&self) -> Time {
        self.trials[0].now()
    }

    /// Both processes have the same clock.
    fn advance(&self, span: Duration) {
        self.trials[0].clock.advance(span);
    }

    fn millis(&mut self, below: usize) -> u64 {
        u64::try_from(self.dice.below(below)).unwrap_or(0)
    }

    fn some_site(&mut self) -> Site {
        site(&format!("site{}.test", self.dice.below(SITES)))
    }

    fn some_lane(&mut self) -> Lane {
        let index = self.dice.below(LANES);
        match self.traits.lanes_take_turns {
            true => lane(GROUPS[index], PARTIES[index]),
            false => Lane::default(),
        }
    }

    /// A time around now, mostly in the future.
    fn some_time(&mut self) -> Time {
        let span = Duration::from_millis(self.millis(12_000));
        self.now() + span - HORIZON / 5
    }

    async fn enqueue(&mut self) {
        let ledger = self.model.ledger();
        if ledger.waiting() > MOST_LEFT {
            return;
        }
        let now = self.now();
        let mut jobs = Vec::new();
        let mut expected = 0;
        // A few deadlines for many jobs, as the messages of a batch have them.
        let deadlines = [self.some_time(), now + Duration::from_secs(self.millis(60))];
        for _ in 0..=self.dice.below(4) {
            let new = self.new_job(&deadlines);
            expected += usize::from(self.model.enqueue(&new, now));
            jobs.push(new);
        }
        let process = if self.traits.keeps_order_of_ties { 0 } else { self.dice.below(2) };
        assert_eq!(self.trials[process].enqueue(jobs).await, expected);
    }

    fn new_job(&mut self, deadlines: &[Time]) -> NewJob {
        let site = self.some_site();
        let key = u8::try_from(self.dice.below(40)).unwrap_or(0);
        let key = self.dice.once_in(3).then_some([key; 16]);
        let due = self.dice.once_in(3).then(|| self.some_time());
        let deadline = *self.dice.pick(deadlines);
        let job = Job {
            url: format!("http://{site}/{}", self.model.next_number()),
            site: Some(site),
            lane: self.some_lane(),
            payload: self.model.next_number().to_le_bytes().to_vec(),
            deadline: self.dice.once_in(3).then_some(deadline),
        };
        NewJob { job, key, due }
    }

    async fn take(&mut self, worker: usize) {
        let closed = match self.dice.below(4) {
            0 => vec![(self.some_site(), self.some_time())],
            _ => Vec::new(),
        };
        let most = 1 + self.dice.below(8);
        let most_per_site = 1 + self.dice.below(4);
        let group = GROUPS[self.dice.below(LANES)].to_owned();
        let rests = self.dice.once_in(4) && self.traits.lanes_take_turns && !group.is_empty();
        let resting = if rests { vec![group] } else { Vec::new() };
        let demand = Demand { most, most_per_site, closed, resting, ..Demand::default() };
        self.take_by(worker, &demand).await;
    }

    async fn take_by(&mut self, worker: usize, demand: &Demand) {
        let taken = self.workers[worker].take(demand).await;
        self.model.take(worker, demand, &taken, self.now());
        if let Taken::Jobs(leases) = taken {
            let hold = self.model.hold(worker);
            self.taken.extend(leases.into_iter().map(|lease| (lease, hold)));
        }
    }

    async fn start(&mut self, worker: usize) {
        if self.taken.is_empty() {
            return;
        }
        let (lease, _) = self.dice.pick(&self.taken).clone();
        self.model.start(number_of(&lease), worker);
        self.workers[worker].start(&[lease]).await;
    }

    /// Settles a few leases of one instance in one batch.
    async fn settle(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let most = 1 + self.dice.below(3);
        let worker = self.dice.pick(&self.taken).1.worker;
        let mut leases: Vec<Lease> = Vec::new();
        while leases.len() < most {
            let of_worker = |(lease, hold): &(Lease, Hold)| {
                hold.worker == worker && leases.iter().all(|other| other.id != lease.id)
            };
            let candidates: Vec<usize> =
                (0..self.taken.len()).filter(|index| of_worker(&self.taken[*index])).collect();
            if candidates.is_empty() {
                break;
            }
            let index = *self.dice.pick(&candidates);
            let (lease, hold) = self.taken[index].clone();
            // Mostly remove it, so that the next pick is mostly still held.
            if !self.dice.once_in(4) {
                self.taken.swap_remove(index);
            }
            let ours = self.model.hold(worker);
            if hold != ours && self.model.is_held_by(number_of(&lease), ours) {
                break; // It got its own lost lease again: the port cannot tell the two apart.
            }
            leases.push(lease);
        }
        let now = self.now();
        let settlements: Vec<Settlement> = leases.iter().map(|_| self.some_settlement()).collect();
        let batch: Vec<(&Lease, &Settlement)> = leases.iter().zip(&settlements).collect();
        let settle = |(lease, settlement): &(&Lease, &Settlement)| {
            self.model.settle(number_of(lease), settlement, worker, now)
        };
        let expected: Vec<_> = batch.iter().map(settle).collect();
        if !batch.is_empty() {
            assert_eq!(self.workers[worker].settle_all(&batch).await, expected);
        }
    }

    fn some_settlement(&mut self) -> Settlement {
        let at = self.some_time();
        let failures = u32::try_from(self.dice.below(9)).unwrap_or(0);
        match self.dice.below(10) {
            0..=2 => Settlement::Done,
            3 => Settlement::Skipped,
            4..=6 => Settlement::Retry {
                at,
                history: History {
                    url_failures: failures,
                    first_site_failure: self.dice.once_in(2).then_some(at),
                    ..History::default()
                },
                payload: None,
            },
            7 => Settlement::Dead { reason: "so".to_owned() },
            _ => Settlement::HandBack { at },
        }
    }

    async fn renew(&mut self, worker: usize) {
        let held = self.model.renew(worker, self.now());
        let renewal = self.workers[worker].renew().await;
        assert_eq!(renewal, if held { Renewal::Held { ttl: LEASE_TTL } } else { Renewal::Lost });
    }

    /// An instance leaves, and a new one joins.
    async fn replace(&mut self, worker: usize) {
        if !self.model.lives(worker, self.now()) {
            return;
        }
        self.model.replace(worker, self.now());
        self.workers[worker].leave().await;
        self.workers[worker] = self.trials[worker % self.trials.len()].worker().await;
    }

    /// At the end everything can be leased and settled: nothing is lost, stuck or duplicated.
    async fn wind_up(&mut self) {
        self.advance(LEASE_TTL * 2);
        self.renew(0).await;
        let demand = Demand { most: 1_000, most_per_site: 1_000, ..Demand::default() };
        while self.model.ledger().unfinished() > 0 {
            self.taken.clear();
            self.take_by(0, &demand).await;
            assert!(!self.taken.is_empty(), "{:?}", self.model.ledger());
            for (lease, _) in std::mem::take(&mut self.taken) {
                let now = self.now();
                let expected = self.model.settle(number_of(&lease), &Settlement::Done, 0, now);
                assert_eq!(self.workers[0].settle(&lease, Settlement::Done).await, expected);
            }
        }
        self.take_by(0, &demand).await;
        let ledger = self.trials[0].ledger().await;
        assert_eq!(ledger, self.model.ledger());
        assert_eq!(ledger.accepted, ledger.ended());
    }
}
