//! Puts waiting URLs back on the list: for another program, or when the last instance leaves.
//!
//! URLs held by a dead instance are put back, too, as soon as its lease has expired. Until then a dead instance cannot
//! be told from a live one, so unparking checks again: an instance that has renewed its lease meanwhile is alive.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::url_queue::Unparked;
use serde_json::json;
use tracing::info;

use super::{MOST_PER_SCRIPT, RedisQueue};

/// How often to check whether an instance has renewed its lease.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The shortest wait, for a lease that is just about to expire.
const LOOK_AFTER_AT_LEAST: Duration = Duration::from_millis(10);

/// The epoch of an instance.
type Epoch = i64;

/// The outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnparkStep {
    /// Some instances may be dead, but their leases have not expired: take another step later.
    Wait {
        /// The number of such instances.
        instances: usize,
        /// The number of URLs that they hold.
        held: u64,
        /// When the last of their leases expires, unless it is renewed.
        at_most: Duration,
    },
    /// There is nothing left to do.
    Over(Unparked),
}

/// Puts waiting URLs back on the list, step by step.
pub struct Unparking {
    queue: RedisQueue,
    only_when_alone: bool,
    urls: u64,
    /// The lease expiry of each instance when it was first seen; `None` before the first step.
    seen: Option<HashMap<Epoch, i64>>,
    /// Instances that have renewed their lease or joined since then.
    at_work: HashSet<Epoch>,
}

/// An instance with a valid lease: its epoch, the expiry, the microseconds until then, and the number of URLs that it
/// holds.
type Instance = (Epoch, i64, i64, u64);

impl RedisQueue {
    /// Puts waiting URLs back at the end of the list, site by site. They are accepted again from there, so their
    /// history is lost. Jobs that a list cannot represent (with a key, a deadline, a lane or a payload) stay.
    ///
    /// With `only_when_alone`, does nothing if another instance is alive.
    pub fn unparking(&self, only_when_alone: bool) -> Unparking {
        let at_work = HashSet::new();
        Unparking { queue: self.clone(), only_when_alone, urls: 0, seen: None, at_work }
    }

    async fn unpark_now(&self, only_when_alone: bool) -> Result<u64, StoreError> {
        self.rescue().await?;
        self.file_the_unfiled().await?;
        let asked = json!({ "most": MOST_PER_SCRIPT, "only_when_alone": only_when_alone });
        let mut from = b"-".to_vec();
        let mut unparked = 0;
        while !from.is_empty() {
            let step: (Vec<u8>, u64) =
                self.scripts.run_with(script!("unpark.lua"), &asked, &from).await?;
            from = step.0;
            unparked += step.1;
        }
        Ok(unparked)
    }

    /// Requeues the leases of expired instances.
    async fn rescue(&self) -> Result<(), StoreError> {
        let asked = json!({ "most": MOST_PER_SCRIPT });
        while self.scripts.run::<usize>(script!("rescue.lua"), &asked).await? == MOST_PER_SCRIPT {}
        Ok(())
    }
}

impl Unparking {
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

    /// Puts back what can be put back now, and returns whether there may be more.
    pub async fn step(&mut self) -> Result<UnparkStep, StoreError> {
        let scripts = &self.queue.scripts;
        // Read before anything is put back: an instance that is gone by then holds nothing that this step would miss.
        let (instances, in_no_hands): (Vec<Instance>, i64) =
            scripts.run(script!("instances.lua"), &json!({})).await?;
        self.recognize(&instances);
        self.urls += self.queue.unpark_now(self.only_when_alone).await?;
        let is_at_work = |(epoch, ..): &&Instance| self.at_work.contains(epoch);
        let undecided = instances.iter().filter(|one| !is_at_work(one));
        let undecided: Vec<&Instance> = match self.only_when_alone {
            // A live instance does it when it leaves; and if no URL waits or is held, there is nothing to put back.
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
