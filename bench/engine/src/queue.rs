//! The durable queue: what putting in, taking and settling cost, by how much is in it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Args;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::finish::{Settle, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_policy::url::Site;
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::sqlite::{self, SqliteQueue};

use crate::flow::{LEASE_TTL, keyed};
use crate::meter::{median, own_micros, resident_bytes};
use crate::window::url;

/// URLs put in at once, as `fetchwell fetch` does.
const CHUNK: usize = 10_000;
/// URLs taken at once, and settled at once.
const A_TAKE: usize = 256;
/// Takes that are timed.
const TAKES: usize = 30;

/// What a queue is filled with.
#[derive(Args, Clone, Copy, Debug)]
pub struct Fill {
    /// URLs in it.
    pub urls: usize,
    /// Sites that they are of.
    pub sites: usize,
    /// URLs of one more site, which is closed.
    pub closed_urls: usize,
}

/// What it cost, in processor time.
pub struct Cost {
    /// Microseconds a URL to put in.
    pub enqueue_micros: f64,
    /// Microseconds a URL to put in, for the last hundredth.
    pub last_enqueue_micros: f64,
    /// Microseconds a URL to take.
    pub take_micros: f64,
    /// Microseconds a URL to settle.
    pub settle_micros: f64,
    /// Memory that the process has in use at the end.
    pub resident_bytes: u64,
    /// The size of the file.
    pub file_bytes: u64,
}

/// Fills a queue in `folder`, and works on it for a while.
pub async fn measure(fill: Fill, folder: &Path) -> Result<Cost> {
    let clock = Clock::system();
    let path = folder.join("queue.db");
    let db = sqlite::open(&path, Durability::Disk)?;
    let queue = SqliteQueue::open(db, "bench", clock.clone(), LEASE_TTL, true).await?;
    let chunks: Vec<f64> = put_in(fill, &queue).await?;
    let last = &chunks[chunks.len() - chunks.len().div_ceil(100)..];
    let instance = queue.instance();
    instance.renew().await?;
    let closed = vec![(Site::parse("closed.example")?, clock.now() + Duration::from_secs(3_600))];
    instance.take(&Demand { most: 0, most_per_site: 0, closed, ..Demand::default() }).await?;
    let mut takes = Vec::new();
    let mut settles = Vec::new();
    for _ in 0..TAKES {
        let started = own_micros()?;
        let leases = take(&instance).await?;
        takes.push(micros_each(started, leases.len())?);
        ensure!(leases.iter().all(|lease| !lease.job.url.contains("closed")), "a closed site gave");
        let started = own_micros()?;
        let batch: Vec<_> = leases.iter().map(|lease| (lease, &Settlement::Done)).collect();
        instance.settle(&batch).await?;
        settles.push(micros_each(started, leases.len())?);
    }
    Ok(Cost {
        enqueue_micros: chunks.iter().sum::<f64>() / chunks.len() as f64,
        last_enqueue_micros: last.iter().sum::<f64>() / last.len() as f64,
        take_micros: median(takes),
        settle_micros: median(settles),
        resident_bytes: resident_bytes()?,
        file_bytes: std::fs::metadata(path)?.len(),
    })
}

/// Returns the microseconds a URL, chunk by chunk.
async fn put_in(fill: Fill, queue: &SqliteQueue) -> Result<Vec<f64>> {
    let mut micros = Vec::new();
    for from in (0..fill.closed_urls).step_by(CHUNK) {
        let to = (from + CHUNK).min(fill.closed_urls);
        let page = |number| keyed(&format!("https://closed.example/some-page-title-{number}.html"));
        queue.enqueue((from..to).map(page).collect()).await?;
    }
    for from in (0..fill.urls).step_by(CHUNK) {
        let to = (from + CHUNK).min(fill.urls);
        let jobs = (from..to).map(|number| keyed(&url(number, fill.sites))).collect();
        let started = own_micros()?;
        queue.enqueue(jobs).await?;
        micros.push(micros_each(started, to - from)?);
    }
    Ok(micros)
}

async fn take(instance: &impl Source) -> Result<Vec<Lease>> {
    let demand = Demand { most: A_TAKE, most_per_site: 64, ..Demand::default() };
    match instance.take(&demand).await? {
        Taken::Jobs(leases) => Ok(leases),
        other => bail!("nothing was given: {other:?}"),
    }
}

fn micros_each(started: i64, many: usize) -> Result<f64> {
    Ok((own_micros()? - started) as f64 / many.max(1) as f64)
}
