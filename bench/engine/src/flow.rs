//! The whole flow on real sockets, with robots.txt, pace, breaker and guard on, and pacing off.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use clap::Args;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules, RobotsRules};
use fetchwell_engine::http::{Client, DnsSettings, HttpLimits, HttpSettings, OwnListeners};
use fetchwell_engine::memory::{MemoryPoliteness, MemoryQueue};
use fetchwell_engine::pipeline::{self, Door, RunEnd, RunLimits, Runtime};
use fetchwell_engine::plan::redirect_chain::{RedirectChain, Stage};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Settlement, Sink};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::web::{Outcome, Web};
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::url::{Site, WebUrl};
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::sqlite::{self, FileFinish, SqlitePoliteness, SqliteQueue};
use tokio_util::sync::CancellationToken;

use crate::origin::PAGE_BYTES;

/// How long a lease lives: longer than any run here.
pub const LEASE_TTL: Duration = Duration::from_secs(600);

/// URLs put in at once, as `fetchwell fetch` does.
const CHUNK: usize = 10_000;

/// What is fetched.
#[derive(Args, Clone, Copy, Debug)]
pub struct Load {
    /// The port of the origin.
    pub port: u16,
    /// Pages in all.
    pub pages: usize,
    /// Sites that they are of; each is an address of its own.
    pub sites: usize,
    /// Requests at once.
    pub connections: usize,
}

impl Load {
    /// The URL of a page.
    pub fn url(&self, number: usize) -> String {
        let site = 1 + number % self.sites;
        format!("http://127.0.0.{site}:{}/articles/2024/some-page-title-{number}.html", self.port)
    }
}

/// What is kept of a page.
pub struct Row {
    url: String,
    status: Option<u16>,
    bytes: usize,
}

/// Fetches one page.
struct PagePlan(RedirectChain);

impl Plan<Row> for PagePlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<Row> {
        let Some(outcome) = last else { return Step::Fetch(vec![self.0.request()]) };
        match self.0.step(outcome, moment) {
            Stage::Fetch(request) => Step::Fetch(vec![request]),
            Stage::Retry { at, history } => {
                Step::Finish(Vec::new(), Settlement::retry(at, history))
            }
            Stage::Over(fetch_end) => {
                let row = Row {
                    url: fetch_end.final_url.as_str().to_owned(),
                    status: fetch_end.happened.status(),
                    bytes: fetch_end.answer.map_or(0, |answer| answer.body.len()),
                };
                Step::Finish(vec![row], Settlement::Done)
            }
        }
    }
}

/// Counts the pages that came whole.
struct Counter(Arc<AtomicUsize>);

#[async_trait]
impl Sink<Row> for Counter {
    async fn write(&self, records: &[&Row]) -> Result<(), StoreError> {
        let whole = records.iter().filter(|row| row.status == Some(200) && row.bytes == PAGE_BYTES);
        self.0.fetch_add(whole.count(), Ordering::Relaxed);
        Ok(())
    }
}

/// Fetches all pages of a load, with queue and politeness in memory.
pub async fn in_memory(load: Load) -> Result<()> {
    let clock = Clock::system();
    let queue = MemoryQueue::new(clock.clone(), LEASE_TTL, true);
    queue.enqueue((0..load.pages).map(|number| NewJob::now(job(load.url(number)))).collect());
    let politeness = Arc::new(MemoryPoliteness::new(clock.clone(), BreakerRule::default(), 7));
    let instance = Arc::new(queue.instance());
    let whole = Arc::new(AtomicUsize::new(0));
    let finish = SinkThenSettle { sink: Counter(whole.clone()), source: instance.clone() };
    run(load, instance, finish, politeness, clock).await?;
    ensure!(whole.load(Ordering::Relaxed) == load.pages, "{whole:?} pages came whole");
    Ok(())
}

/// Fetches all pages of a load as `fetchwell fetch @list --output FILE` does, but for the extraction:
/// the queue is on the disk, each URL has its key, and a row of JSON is in a file before it is settled.
pub async fn durable(load: Load, folder: &Path) -> Result<()> {
    let clock = Clock::system();
    let store = folder.join("bench.db");
    let queue = sqlite::open(&store, Durability::Disk)?;
    let queue = SqliteQueue::open(queue, "bench", clock.clone(), LEASE_TTL, true).await?;
    let urls: Vec<String> = (0..load.pages).map(|number| load.url(number)).collect();
    for chunk in urls.chunks(CHUNK) {
        queue.enqueue(chunk.iter().map(|url| keyed(url)).collect()).await?;
    }
    let politeness = sqlite::open(&store, Durability::Process)?;
    let politeness = SqlitePoliteness::new(politeness, clock.clone(), BreakerRule::default(), 7);
    let instance = Arc::new(queue.instance());
    let rows = folder.join("rows.jsonl");
    let finish = FileFinish::open(instance.clone(), &rows, render)?;
    run(load, instance, finish, Arc::new(politeness), clock).await?;
    let rows = std::fs::read_to_string(rows)?.lines().count();
    ensure!(rows == load.pages, "there are {rows} rows");
    Ok(())
}

async fn run(
    load: Load,
    source: Arc<dyn Source>,
    finish: impl Finish<Row> + 'static,
    politeness: Arc<dyn Politeness>,
    clock: Clock,
) -> Result<()> {
    let door = Door {
        source,
        planner: Arc::new(plan),
        finish: Arc::new(finish),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    let limits = RunLimits { max_in_flight: load.connections, ..RunLimits::default() };
    let gate = Gate::new(politeness, rules(Duration::ZERO), clock.clone());
    let runtime = runtime(gate, Arc::new(client()?), limits, clock);
    let ended = pipeline::run(door, runtime, CancellationToken::new()).await?;
    ensure!(ended == RunEnd::Exhausted, "the run ended early: {ended:?}");
    Ok(())
}

/// The plan of a lease: one page.
#[expect(clippy::expect_used, reason = "all URLs are made here")]
pub fn plan(lease: &Lease) -> Box<dyn Plan<Row>> {
    let url = WebUrl::parse(&lease.job.url).expect("a URL");
    Box::new(PagePlan(RedirectChain::new(url, RetryRule::FETCH, 5, lease.history)))
}

/// All that a pipeline needs besides a door.
pub fn runtime(gate: Gate, web: Arc<dyn Web>, limits: RunLimits, clock: Clock) -> Runtime {
    Runtime { gate, web, limits, clock, seed: 11, event_sink: Arc::new(|_| {}) }
}

/// The gate's rules: as they are by default, but for the pace.
pub fn rules(default_interval: Duration) -> GateRules {
    GateRules {
        pace: PaceRules {
            default_interval,
            sites: HashMap::new(),
            concurrency: HashMap::new(),
            groups: GroupPace::default(),
        },
        robots: RobotsRules {
            product_token: "FetchwellBench".to_owned(),
            when_unreachable: WhenUnreachable::Defer,
            fresh_for: Duration::from_secs(86_400),
            stale_for: Duration::from_secs(30 * 86_400),
            max_crawl_delay: None,
            pages_fail_with_it: false,
        },
        give_up_after: None,
        site_attempts: None,
        missing_hosts_fail: false,
    }
}

/// A job for a URL.
pub fn job(url: String) -> Job {
    let site = WebUrl::parse(&url).ok().map(|url| url.site());
    Job { url, site, lane: Lane::default(), payload: Vec::new(), deadline: None }
}

/// A job that goes in once, as those of `fetchwell fetch`: two bytes of its key are its site's. A hash
/// that spreads as well as theirs is enough here.
pub fn keyed(url: &str) -> NewJob {
    let job = job(url.to_owned());
    let site = job.site.as_ref().map_or("", Site::as_str);
    let [of_site, low, high] = [
        hash(site, 0x9e37_79b9_7f4a_7c15),
        hash(url, 0x9e37_79b9_7f4a_7c15),
        hash(url, 0xc2b2_ae3d_27d4_eb4f),
    ];
    let mut key = [0; 16];
    key[..2].copy_from_slice(&of_site[..2]);
    key[2..8].copy_from_slice(&low[2..]);
    key[8..].copy_from_slice(&high);
    NewJob { job, key: Some(key), due: None }
}

fn hash(text: &str, seed: u64) -> [u8; 8] {
    let mixed = text.bytes().fold(seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
    });
    mixed.wrapping_mul(0xff51_afd7_ed55_8ccd).to_be_bytes()
}

fn render(row: &Row) -> Vec<u8> {
    let Row { url, status, bytes } = row;
    format!("{{\"url\":\"{url}\",\"status\":{},\"bytes\":{bytes}}}\n", status.unwrap_or(0)).into()
}

fn client() -> Result<Client> {
    Ok(Client::new(HttpSettings {
        user_agent: "FetchwellBench/1.0".to_owned(),
        limits: HttpLimits::default(),
        guard: AddressGuard::new(vec!["127.0.0.0/8".parse()?]),
        resolve: Vec::new(),
        dns: DnsSettings::default(),
        own_listeners: OwnListeners::default(),
        private_only: Arc::new(|_| true),
        extra_ca_file: None,
    })?)
}
