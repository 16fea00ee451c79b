//! A random history of producers, workers and operators: the ledger always agrees, and no URL is lost.

use std::time::Duration;

use fetchwell_engine::ports::dead_letters::{DeadLetters, Letters, Revision};
use fetchwell_engine::ports::finish::{Settle, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::source::Source;
use fetchwell_policy::chance::Chance;
use fetchwell_stores::redis::RedisInstance;

use super::rig::{DEAD_LIST, LEASE_TTL, Rig, take, take_all};

const SEEDS: std::ops::Range<u64> = 0..3;
const STEPS: usize = 500;
const WORKERS: u64 = 3;

struct History<'a> {
    rig: &'a Rig,
    chance: Chance,
    workers: Vec<RedisInstance>,
    taken: Vec<(usize, Lease)>,
    pushed: i64,
}

#[tokio::test]
async fn whatever_is_done_nothing_is_lost_or_double() {
    for seed in SEEDS {
        println!("seed {seed}");
        let Some(rig) = Rig::if_there().await else { return };
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            workers.push(rig.worker().await);
        }
        let chance = Chance::seeded(seed);
        let mut history = History { rig: &rig, chance, workers, taken: Vec::new(), pushed: 0 };
        for _ in 0..STEPS {
            history.step().await;
            history.check().await;
        }
        history.wind_up().await;
    }
}

impl History<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.chance.next_u64() % bound
    }

    fn some_worker(&mut self) -> usize {
        usize::try_from(self.below(WORKERS)).unwrap()
    }

    /// What was pushed is in the list, or was accepted: nothing else comes in.
    async fn check(&self) {
        let ledger = self.rig.ledger().await;
        let in_list = i64::try_from(self.rig.list().await.len()).unwrap();
        assert_eq!(self.pushed, in_list + ledger.accepted, "{ledger:?}");
    }

    async fn step(&mut self) {
        let worker = self.some_worker();
        match self.below(20) {
            0..=4 => self.push().await,
            5..=9 => {
                let most = usize::try_from(self.below(6)).unwrap();
                let leases = take(&self.workers[worker], most).await;
                self.taken.extend(leases.into_iter().map(|lease| (worker, lease)));
            }
            10..=14 => self.settle().await,
            15 => self.start().await,
            16 => drop(self.workers[worker].renew().await.unwrap()),
            17 => self.operate().await,
            // Another client takes a dead letter: for good, since it is nobody's any more.
            _ if self.below(9) == 0 => {
                self.rig.ask::<Option<String>>(&format!("LPOP {DEAD_LIST}")).await;
            }
            18 => {
                let span = Duration::from_millis(self.below(12_000));
                self.rig.clock.advance(span);
            }
            _ if self.below(5) == 0 => self.workers[worker].leave().await.unwrap(),
            _ => self.rig.clock.advance(LEASE_TTL / 2),
        }
    }

    async fn push(&mut self) {
        for _ in 0..=self.below(5) {
            let site = self.below(4);
            let page = self.below(9);
            self.rig.push(&[&format!("http://s{site}.test/{page}")]).await;
            self.pushed += 1;
        }
        if self.below(9) == 0 {
            self.rig.push(&["bad"]).await;
            self.pushed += 1;
        }
    }

    fn some_lease(&mut self) -> Option<(usize, Lease)> {
        let count = u64::try_from(self.taken.len()).unwrap();
        (count > 0).then(|| {
            let index = usize::try_from(self.below(count)).unwrap();
            self.taken.swap_remove(index)
        })
    }

    async fn start(&mut self) {
        if let Some((worker, lease)) = self.some_lease() {
            self.workers[worker].started(&[lease.id]).await.unwrap();
            self.taken.push((worker, lease));
        }
    }

    async fn settle(&mut self) {
        let Some((worker, lease)) = self.some_lease() else { return };
        let at = self.rig.clock.now() + Duration::from_millis(self.below(9_000));
        let settlement = match self.below(6) {
            0 => Settlement::Done,
            1 => Settlement::Skipped,
            2 => Settlement::retry(at, lease.history),
            3 | 4 => Settlement::Dead { reason: "so".to_owned() },
            _ => Settlement::HandBack { at },
        };
        self.workers[worker].settle(&[(&lease, &settlement)]).await.unwrap();
    }

    async fn operate(&mut self) {
        let queue = &self.rig.queue;
        let group = queue.dead_groups().await.unwrap().into_keys().next();
        let some = group.map(|group| Letters::OfGroup { group, most: 2 });
        match (self.below(4), some) {
            (0, _) => drop(queue.unparking(false).step().await.unwrap()),
            (1, _) => drop(queue.revise(&Letters::All, Revision::Retry).await.unwrap()),
            (2, Some(some)) => drop(queue.revise(&some, Revision::Retry).await.unwrap()),
            (3, Some(some)) => drop(queue.revise(&some, Revision::Drop).await.unwrap()),
            _ => {}
        }
    }

    /// In the end everything can be had and done.
    async fn wind_up(&mut self) {
        self.rig.clock.advance(LEASE_TTL * 2);
        self.rig.queue.revise(&Letters::All, Revision::Retry).await.unwrap();
        let worker = self.rig.worker().await;
        for lease in take_all(&worker).await {
            worker.settle(&[(&lease, &Settlement::Done)]).await.unwrap();
        }
        self.check().await;
        let ledger = self.rig.ledger().await;
        assert_eq!(ledger.accepted, ledger.done + ledger.skipped, "{ledger:?}");
        assert_eq!(ledger.accepted, self.pushed);
    }
}
