//! A random history, compared with the model step by step.

use std::time::Duration;

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::source::{Demand, Renewal, Taken};
use fetchwell_policy::retry::History;
use fetchwell_policy::site::HORIZON;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::model::{Hold, Model, number_of};
use super::trial::{Trial, Worker, site};
use super::{LEASE_TTL, QueueStore};
use crate::conformance::replay::{Dice, for_each_seed};
use crate::replay::is_soak;

const SEEDS: std::ops::Range<u64> = 0..4;
/// The length of each history: in the test command, and in `scripts/soak`.
const STEPS: [usize; 2] = [400, 1_000];
const WORKERS: usize = 3;
const SITES: usize = 4;
/// The maximum number of unfinished jobs, because the model searches all of them each time.
const MOST_LEFT: i64 = 60;

/// Three instances perform random operations; the queue must behave like the model.
pub async fn a_random_history_follows_the_model(store: &dyn QueueStore) {
    for_each_seed(SEEDS, |seed| async move { history(&*store.fresh(), seed).await }).await;
}

async fn history(store: &dyn QueueStore, seed: u64) {
    let trial = Trial::new(store).await;
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(trial.worker().await);
    }
    let model = Model::new(WORKERS, trial.now());
    let dice = Dice::seeded(seed);
    let mut history = RandomHistory { trial: &trial, workers, model, dice, taken: Vec::new() };
    for _ in 0..STEPS[usize::from(is_soak())] {
        history.step().await;
        assert_eq!(trial.ledger().await, history.model.ledger());
    }
    history.wind_up().await;
}

struct RandomHistory<'a> {
    trial: &'a Trial,
    workers: Vec<Worker<'a>>,
    model: Model,
    dice: Dice,
    /// All recent leases, settled or not: dead instances come back with old leases.
    taken: Vec<(Lease, Hold)>,
}

impl RandomHistory<'_> {
    async fn step(&mut self) {
        let worker = self.dice.below(WORKERS);
        match self.dice.below(20) {
            0..=3 => self.enqueue().await,
            4..=8 => self.take(worker).await,
            9..=10 => self.start(worker).await,
            11..=15 => self.settle().await,
            16..=17 => self.renew(worker).await,
            // Far enough on average that an instance occasionally renews too late.
            18 => self.trial.clock.advance(Duration::from_millis(self.millis(9_000))),
            _ if self.dice.once_in(10) => self.trial.clock.advance(LEASE_TTL),
            _ => self.trial.clock.advance(Duration::from_micros(1)),
        }
    }

    fn millis(&mut self, below: usize) -> u64 {
        u64::try_from(self.dice.below(below)).unwrap_or(0)
    }

    fn some_site(&mut self) -> Site {
        site(&format!("site{}.test", self.dice.below(SITES)))
    }

    /// A time around now, mostly in the future.
    fn some_time(&mut self) -> Time {
        let span = Duration::from_millis(self.millis(12_000));
        self.trial.now() + span - HORIZON / 5
    }

    async fn enqueue(&mut self) {
        let ledger = self.model.ledger();
        if ledger.waiting() > MOST_LEFT {
            return;
        }
        let now = self.trial.now();
        let mut jobs = Vec::new();
        let mut expected = 0;
        for _ in 0..=self.dice.below(4) {
            let site = self.some_site();
            let key = u8::try_from(self.dice.below(40)).unwrap_or(0);
            let key = self.dice.once_in(3).then_some([key; 16]);
            let due = self.dice.once_in(3).then(|| self.some_time());
            let payload = self.model.next_number().to_le_bytes().to_vec();
            let url = format!("http://{site}/{}", self.model.next_number());
            let job = Job {
                url,
                site: Some(site.clone()),
                lane: Lane::default(),
                payload,
                deadline: None,
            };
            jobs.push(NewJob { job, key, due });
            expected += usize::from(self.model.enqueue(site, key, due.unwrap_or(now), now));
        }
        assert_eq!(self.trial.enqueue(jobs).await, expected);
    }

    async fn take(&mut self, worker: usize) {
        let closed = match self.dice.below(4) {
            0 => vec![(self.some_site(), self.some_time())],
            _ => Vec::new(),
        };
        let most = 1 + self.dice.below(8);
        let most_per_site = 1 + self.dice.below(4);
        self.take_by(worker, &Demand { most, most_per_site, closed, ..Demand::default() }).await;
    }

    async fn take_by(&mut self, worker: usize, demand: &Demand) {
        let taken = self.workers[worker].take(demand).await;
        self.model.take(worker, demand, &taken, self.trial.now());
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

    async fn settle(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let index = self.dice.below(self.taken.len());
        let (lease, hold) = self.taken[index].clone();
        // Mostly remove it, so that the next pick is mostly still held.
        if !self.dice.once_in(4) {
            self.taken.swap_remove(index);
        }
        let number = number_of(&lease);
        let ours = self.model.hold(hold.worker);
        if hold != ours && self.model.is_held_by(number, ours) {
            return; // It got its own lost lease again: the port cannot tell the two apart.
        }
        let settlement = self.some_settlement();
        let expected = self.model.settle(number, &settlement, hold.worker, self.trial.now());
        assert_eq!(self.workers[hold.worker].settle(&lease, settlement).await, expected);
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
        let held = self.model.renew(worker, self.trial.now());
        let renewal = self.workers[worker].renew().await;
        assert_eq!(renewal, if held { Renewal::Held { ttl: LEASE_TTL } } else { Renewal::Lost });
    }

    /// At the end everything can be leased and settled: nothing is lost, stuck or duplicated.
    async fn wind_up(&mut self) {
        self.trial.clock.advance(LEASE_TTL * 2);
        self.renew(0).await;
        let demand = Demand { most: 1_000, most_per_site: 1_000, ..Demand::default() };
        self.taken.clear();
        self.take_by(0, &demand).await;
        for (lease, _) in std::mem::take(&mut self.taken) {
            let now = self.trial.now();
            let expected = self.model.settle(number_of(&lease), &Settlement::Done, 0, now);
            assert_eq!(self.workers[0].settle(&lease, Settlement::Done).await, expected);
        }
        self.take_by(0, &demand).await;
        let ledger = self.trial.ledger().await;
        assert_eq!(ledger, self.model.ledger());
        assert_eq!(ledger.accepted, ledger.ended());
    }
}
