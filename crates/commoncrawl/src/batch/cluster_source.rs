//! The lines of `cluster.idx` as leases, read on demand and never all at once.
//!
//! Waiting and retried blocks are on a queue in memory. A crash loses nothing: the checkpoint records from where to
//! read the lines again.

use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_archive::cluster_idx::Lines;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::memory::{MemoryInstance, MemoryQueue};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{LeaseId, NewJob};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_policy::url::WebUrl;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::ahead::Ahead;
use super::block;

/// How soon to check again for room.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct ClusterSource {
    queue: MemoryQueue,
    /// Settles the leases.
    pub(super) instance: Arc<MemoryInstance>,
    clock: Clock,
    indexes: WebUrl,
    ahead: Arc<Ahead>,
    reading: Mutex<Reading>,
}

struct Reading {
    lines: Lines<BufReader<File>>,
    read: u64,
    is_over: bool,
}

impl ClusterSource {
    /// Reads the lines of a file from this offset on.
    pub(super) fn open(
        path: &Path,
        from: u64,
        indexes: WebUrl,
        ahead: Arc<Ahead>,
        clock: Clock,
    ) -> io::Result<ClusterSource> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let lines = Lines::after(BufReader::new(file), from);
        let queue = MemoryQueue::private(clock.clone(), true);
        let instance = Arc::new(queue.instance());
        let reading = Mutex::new(Reading { lines, read: 0, is_over: false });
        Ok(ClusterSource { queue, instance, clock, indexes, ahead, reading })
    }

    /// Reads lines while there is room. Returns true when none are left.
    fn read_on(&self) -> Result<bool, StoreError> {
        const UNREADABLE: &str = "cannot read cluster.idx";
        let mut reading = self.reading.lock();
        let mut jobs = Vec::new();
        while !reading.is_over && self.ahead.has_room(reading.read) {
            match reading.lines.next() {
                None => reading.is_over = true,
                Some(line) => {
                    let line =
                        line.map_err(|error| StoreError::transient(UNREADABLE).with_source(error))?;
                    let job = block::job(&self.indexes, reading.read, &line);
                    let job =
                        job.map_err(|fault| StoreError::corrupt(UNREADABLE).with_source(fault))?;
                    jobs.push(NewJob::now(job));
                    reading.read += 1;
                }
            }
        }
        self.queue.enqueue(jobs);
        Ok(reading.is_over)
    }
}

#[async_trait]
impl Source for ClusterSource {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let is_over = self.read_on()?;
        match self.instance.take(demand).await? {
            Taken::Exhausted if !is_over => {
                Ok(Taken::Idle { until: self.clock.now() + LOOK_AGAIN })
            }
            taken => Ok(taken),
        }
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        self.instance.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        self.instance.renew().await
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(self.ahead.news.clone())
    }
}
