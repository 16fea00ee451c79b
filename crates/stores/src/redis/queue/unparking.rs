//! What waits goes back to the list: for another program to take, or when the last instance leaves.
//!
//! What a dead instance holds goes back with it, as soon as its lease has ended. Until then nobody can tell the dead
//! from the living, so whoever unparks looks again: an instance that renewed its lease meanwhile is at work.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::url_queue::Unparked;
use serde::Serialize;
use tracing::info;

use super::scripts::Nothing;
use super::{AtMost, MOST_PER_SCRIPT, RedisQueue};

/// How often it is looked whether an instance has renewed its lease.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A lease that ends just now is looked at a little later.
const LOOK_AFTER_AT_LEAST: Duration = Duration::from_millis(10);

/// An instance's epoch.
type Epoch = i64;

/// What one step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnparkStep {
    /// Instances may be dead whose leases have not ended: take another step a little later.
    Wait {
        /// How many instances.
        instances: usize,
        /// How many URLs they hold.
        held: u64,
        /// When the last of their leases ends, unless it is renewed.
        at_most: Duration,
    },
    /// That was all.
    Over(Unparked),
}

/// Puts what waits back on the list, step by step.
pub struct Unparking {
    queue: RedisQueue,
    only_when_alone: bool,
    urls: u64,
    /// When the lease of each instance ends, as it was first seen; `None` before the first step.
    seen: Option<HashMap<Epoch, i64>>,
    /// Those that renewed since, or came.
    at_work: HashSet<Epoch>,
}

/// An instance whose lease has not ended: its epoch, when the lease ends, in how many microseconds, URLs held.
type Instance = (Epoch, i64, i64, u64);

impl RedisQueue {
    /// Puts what waits back to the end of the list, site by site, from where it will be accepted anew: what it has
    /// been through is forgotten. What a list can't hold (a job with a key, a deadline, a lane or data of its door)
    /// stays.
    pub fn unparking(&self) -> Unparking {
        Unparking::new(self, false)
    }

    /// The same, unless an instance is at work.
    pub fn unparking_when_alone(&self) -> Unparking {
        Unparking::new(self, true)
    }

    async fn unpark_now(&self, only_when_alone: bool) -> Result<u64, StoreError> {
        #[derive(Serialize)]
        struct Asked {
            most: usize,
            only_when_alone: bool,
        }
        self.rescue().await?;
        self.file_the_unfiled().await?;
        let asked = Asked { most: MOST_PER_SCRIPT, only_when_alone };
        let mut from = b"-".to_vec();
        let mut unparked = 0;
        while !from.is_empty() {
            let step: (Vec<u8>, u64) =
                self.scripts.run_with(&self.scripts.unpark, &asked, &[&from]).await?;
            from = step.0;
            unparked += step.1;
        }
        Ok(unparked)
    }

    /// What instances hold whose leases have ended waits again.
    async fn rescue(&self) -> Result<(), StoreError> {
        let asked = AtMost { most: MOST_PER_SCRIPT };
        while self.scripts.run::<usize>(&self.scripts.rescue, &asked).await? == MOST_PER_SCRIPT {}
        Ok(())
    }
}

impl Unparking {
    fn new(queue: &RedisQueue, only_when_alone: bool) -> Unparking {
        let at_work = HashSet::new();
        Unparking { queue: queue.clone(), only_when_alone, urls: 0, seen: None, at_work }
    }

    /// Takes steps until there is nothing left to wait for.
    pub(super) async fn finish(mut self) -> Result<Unparked, StoreError> {
        let mut is_said = false;
        loop {
            match self.step().await? {
                UnparkStep::Over(unparked) => return Ok(unparked),
                UnparkStep::Wait { instances, held, at_most } => {
                    if !is_said {
                        info!(
                            instances,
                            urls = held,
                            "waiting up to {} s for leases to expire, which may belong to dead \
                             processes",
                            at_most.as_secs_f64().ceil()
                        );
                        is_said = true;
                    }
                    tokio::time::sleep(at_most.clamp(LOOK_AFTER_AT_LEAST, LOOK_EVERY)).await;
                }
            }
        }
    }

    /// Puts back what can be put back now, and says whether there may be more.
    pub async fn step(&mut self) -> Result<UnparkStep, StoreError> {
        let scripts = &self.queue.scripts;
        // Before anything is put back: whoever is gone by then has nothing any more that would be missed.
        let (instances, in_no_hands): (Vec<Instance>, i64) =
            scripts.run(&scripts.instances, &Nothing {}).await?;
        self.recognize(&instances);
        self.urls += self.queue.unpark_now(self.only_when_alone).await?;
        let is_at_work = |(epoch, ..): &&Instance| self.at_work.contains(epoch);
        let undecided = instances.iter().filter(|one| !is_at_work(one));
        let undecided: Vec<&Instance> = match self.only_when_alone {
            // One that is at work has to do it when it leaves, and what is nowhere need not be put back.
            true if instances.iter().any(|one| is_at_work(&one)) => Vec::new(),
            true if in_no_hands == 0 && held(&instances) == 0 => Vec::new(),
            true => undecided.collect(),
            false => undecided.filter(|(.., held)| *held > 0).collect(),
        };
        let Some(last_us) = undecided.iter().map(|(_, _, left_us, _)| *left_us).max() else {
            let at_work: Vec<Instance> = instances.iter().filter(is_at_work).copied().collect();
            return Ok(UnparkStep::Over(Unparked {
                urls: self.urls,
                at_work: at_work.len(),
                held: held(&at_work),
            }));
        };
        Ok(UnparkStep::Wait {
            instances: undecided.len(),
            held: undecided.iter().map(|(.., held)| held).sum(),
            at_most: Duration::from_micros(u64::try_from(last_us).unwrap_or(0)),
        })
    }

    fn recognize(&mut self, instances: &[Instance]) {
        let Some(seen) = &self.seen else {
            self.seen = Some(instances.iter().map(|(epoch, ends, ..)| (*epoch, *ends)).collect());
            return;
        };
        let lives = |(epoch, ends, ..): &&Instance| seen.get(epoch).is_none_or(|then| ends > then);
        self.at_work.extend(instances.iter().filter(lives).map(|(epoch, ..)| *epoch));
    }
}

fn held(instances: &[Instance]) -> u64 {
    instances.iter().map(|(.., held)| held).sum()
}
