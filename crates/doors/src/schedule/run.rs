//! Runs a plan: once, or until it is stopped.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::{self, Runtime};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_policy::time::Time;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::entry::ScheduleEntry;
use super::scheduler::RoundScheduler;
use super::sitemaps::Sitemaps;

#[derive(Clone, Copy, Debug)]
pub struct ScheduleRules {
    /// Nothing is queued while this many URLs wait; 0 means no limit.
    pub max_waiting: u64,
    /// Whether it ends after the last sitemap that is due.
    pub ends: bool,
}

/// The entries of a plan and the sitemaps in progress.
pub struct Schedule {
    scheduler: RoundScheduler,
    sitemaps: Arc<Sitemaps>,
    clock: Clock,
}

impl Schedule {
    pub fn new(
        entries: Vec<ScheduleEntry>,
        rounds: Arc<dyn Rounds>,
        clock: Clock,
        rules: ScheduleRules,
    ) -> Schedule {
        let ScheduleRules { max_waiting, ends } = rules;
        let sitemaps = Sitemaps::new(rounds.clone(), clock.clone(), ends, max_waiting);
        let scheduler = RoundScheduler::new(entries, rounds, sitemaps.clone(), max_waiting);
        Schedule { scheduler, sitemaps, clock }
    }

    /// The entries that are due, each with its round. Queues nothing.
    pub async fn due(&mut self) -> Result<Vec<(&ScheduleEntry, Time)>, StoreError> {
        self.scheduler.due_entries(self.clock.wall()).await
    }

    /// Queues what is due, and returns how many sitemaps could not be read.
    pub async fn once(
        mut self,
        runtime: Runtime,
        stop: CancellationToken,
    ) -> Result<usize, StoreError> {
        self.scheduler.pass(self.clock.wall()).await?;
        pipeline::run(self.sitemaps.door(), runtime, stop).await?;
        self.scheduler.note_ended().await?;
        Ok(self.sitemaps.failed())
    }

    /// Queues what is due, repeatedly, until `stop`.
    pub async fn watch(
        mut self,
        runtime: Runtime,
        interval: Duration,
        stop: CancellationToken,
    ) -> Result<(), StoreError> {
        let door = self.sitemaps.door();
        let looking = async {
            while !stop.is_cancelled() {
                match self.scheduler.pass(self.clock.wall()).await {
                    Ok(()) => {}
                    Err(fault) if fault.is_transient() => warn!("due entries are delayed: {fault}"),
                    Err(fault) => {
                        stop.cancel();
                        return Err(fault);
                    }
                }
                timeout(interval, stop.cancelled()).await.ok();
            }
            // Sitemaps that finished meanwhile need not be fetched again.
            self.scheduler.note_ended().await
        };
        let fetching = async {
            let ended = pipeline::run(door, runtime, stop.clone()).await;
            stop.cancel();
            ended
        };
        let (noted, ended) = tokio::join!(looking, fetching);
        ended?;
        noted?;
        info!("stopped; entries that are not on the list yet are due at the next start");
        Ok(())
    }
}
