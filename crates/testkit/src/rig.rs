//! The whole flow on a simulated clock: scripted sites, stores in memory, a simple door.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules, RobotsRules};
use fetchwell_engine::memory::{MemoryPoliteness, MemoryQueue};
use fetchwell_engine::pipeline::{self, Door, EventSink, RunEnd, RunLimits, Runtime};
use fetchwell_engine::plan::redirect_chain::{Patience, RedirectChain, Stage};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settle, Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::politeness::SiteAsk;
use fetchwell_engine::web::{Outcome, Web};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use fetchwell_simweb::{SiteScript, World};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::simulated_web::SimulatedWeb;
use crate::watched_politeness::{Watch, WatchedPoliteness};

/// The result of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The URL, as queued.
    pub url: String,
    /// The final outcome.
    pub happened: FetchOutcome,
    /// The number of attempts, including the first.
    pub attempts: u32,
    /// What delayed it until its deadline passed.
    pub held_up_by: Option<String>,
}

/// A simulated web with the whole system on it. Create it inside a paused tokio runtime.
pub struct Rig {
    pub world: Arc<World>,
    pub queue: MemoryQueue,
    pub politeness: Arc<MemoryPoliteness>,
    /// The clock of tokio.
    pub clock: Clock,
    /// The rules of the gate, which can be changed before [`Rig::run`].
    pub rules: GateRules,
    /// The limits of the pipeline, likewise.
    pub limits: RunLimits,
    /// The retry rule, likewise.
    pub retry: RetryRule,
    /// How long to wait for a site, likewise; `None` means for ever.
    pub patience: Option<Patience>,
    /// How long a failing turn of the politeness store takes, likewise.
    pub failing_turns_take: Duration,
    rows: Arc<Mutex<Vec<Row>>>,
    web: Arc<dyn Web>,
    watch: Watch,
    event_sink: EventSink,
}

impl Rig {
    /// A web of these sites, at 1 request per second per site, without jitter.
    pub fn new(sites: impl IntoIterator<Item = SiteScript>) -> Rig {
        let clock = Clock::simulated(Time::from_secs(1_800_000_000));
        let world = Arc::new(World::new(sites));
        let rule = BreakerRule { jitter_share: 0.0, ..BreakerRule::default() };
        Rig {
            web: Arc::new(SimulatedWeb::new(world.clone(), "TestBot/1.0")),
            world,
            queue: MemoryQueue::new(clock.clone(), Duration::from_secs(20), true),
            politeness: Arc::new(MemoryPoliteness::new(clock.clone(), rule, 7)),
            clock,
            rules: GateRules {
                pace: PaceRules {
                    default_interval: Duration::from_secs(1),
                    sites: HashMap::new(),
                    concurrency: HashMap::new(),
                    groups: GroupPace::default(),
                },
                robots: RobotsRules {
                    product_token: "TestBot".to_owned(),
                    when_unreachable: WhenUnreachable::Defer,
                    fresh_for: Duration::from_secs(86_400),
                    stale_for: Duration::from_secs(30 * 86_400),
                    max_crawl_delay: None,
                    pages_fail_with_it: false,
                },
                give_up_after: None,
                site_attempts: None,
                missing_hosts_fail: false,
            },
            limits: RunLimits::default(),
            retry: RetryRule::PAGES,
            patience: None,
            failing_turns_take: Duration::ZERO,
            rows: Arc::default(),
            watch: Arc::new(|_| Ok(Duration::ZERO)),
            event_sink: Arc::new(|_| {}),
        }
    }

    /// Uses another web than the simulated one.
    pub fn with_web(mut self, web: Arc<dyn Web>) -> Rig {
        self.web = web;
        self
    }

    /// Adds a function that sees the questions of each turn and decides how long the turn takes or why it fails.
    pub fn with_watch(
        mut self,
        watch: impl Fn(&[SiteAsk]) -> Result<Duration, StoreError> + Send + Sync + 'static,
    ) -> Rig {
        self.watch = Arc::new(watch);
        self
    }

    /// Adds a receiver of events.
    pub fn with_event_sink(mut self, event_sink: EventSink) -> Rig {
        self.event_sink = event_sink;
        self
    }

    pub fn enqueue<U: AsRef<str>>(&self, urls: impl IntoIterator<Item = U>) {
        let jobs = urls.into_iter().map(|url| NewJob::now(job(url.as_ref()))).collect();
        self.queue.enqueue(jobs);
    }

    /// Runs until the queue is empty.
    pub async fn run(&self) -> Result<RunEnd, StoreError> {
        self.run_until(CancellationToken::new()).await
    }

    /// Runs until the queue is empty or `stop` is cancelled.
    pub async fn run_until(&self, stop: CancellationToken) -> Result<RunEnd, StoreError> {
        let retry = self.retry;
        let patience = self.patience;
        let instance = Arc::new(self.queue.instance());
        let door = Door {
            source: instance.clone(),
            planner: Arc::new(move |lease| Box::new(PagePlan::new(lease, retry, patience))),
            finish: Arc::new(Rows { rows: self.rows.clone(), source: instance }),
            give_up_record: Arc::new(|_, _, _| Vec::new()),
        };
        self.run_door(door, stop).await
    }

    /// Runs another door on this web and queue.
    pub async fn run_door<R: Send + Sync + 'static>(
        &self,
        door: Door<R>,
        stop: CancellationToken,
    ) -> Result<RunEnd, StoreError> {
        pipeline::run(door, self.runtime(), stop).await
    }

    /// Everything that a pipeline on this web needs besides a door.
    pub fn runtime(&self) -> Runtime {
        let politeness = WatchedPoliteness {
            store: self.politeness.clone(),
            watch: self.watch.clone(),
            failing_takes: self.failing_turns_take,
        };
        Runtime {
            gate: Gate::new(Arc::new(politeness), self.rules.clone(), self.clock.clone()),
            web: self.web.clone(),
            limits: self.limits,
            clock: self.clock.clone(),
            seed: 11,
            event_sink: self.event_sink.clone(),
        }
    }

    /// The results so far.
    pub fn rows(&self) -> Vec<Row> {
        self.rows.lock().clone()
    }
}

/// A job for a URL.
pub fn job(url: &str) -> Job {
    let site = WebUrl::parse(url).ok().map(|url| url.site());
    Job { url: url.to_owned(), site, lane: Lane::default(), payload: Vec::new(), deadline: None }
}

/// Fetches one page.
struct PagePlan {
    url: String,
    chain: Option<RedirectChain>,
}

impl PagePlan {
    fn new(lease: &Lease, retry: RetryRule, patience: Option<Patience>) -> PagePlan {
        let url = lease.job.url.clone();
        let chain = WebUrl::parse(&url).ok().map(|at| {
            let chain = RedirectChain::new(at, retry, 5, lease.history);
            match patience {
                Some(patience) => chain.with_patience(patience),
                None => chain,
            }
        });
        PagePlan { url, chain }
    }
}

impl Plan<Row> for PagePlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<Row> {
        let Some(chain) = &mut self.chain else {
            return Step::Finish(Vec::new(), Settlement::Dead { reason: "no URL".to_owned() });
        };
        let Some(outcome) = last else { return Step::Fetch(vec![chain.request()]) };
        match chain.step(outcome, moment) {
            Stage::Fetch(request) => Step::Fetch(vec![request]),
            Stage::Retry { at, history } => {
                Step::Finish(Vec::new(), Settlement::retry(at, history))
            }
            Stage::Over(fetch_end) => {
                let row = Row {
                    url: self.url.clone(),
                    happened: fetch_end.happened,
                    attempts: fetch_end.attempts,
                    held_up_by: fetch_end.why.held_up_by,
                };
                Step::Finish(vec![row], Settlement::Done)
            }
        }
    }
}

/// Keeps the rows of confirmed leases only, so that a stale settlement adds none.
struct Rows<Q> {
    rows: Arc<Mutex<Vec<Row>>>,
    source: Arc<Q>,
}

#[async_trait]
impl<Q: Settle> Finish<Row> for Rows<Q> {
    async fn finish(&self, batch: &[Finished<Row>]) -> Result<Vec<Settled>, StoreError> {
        let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
        let settled = self.source.settle(&leases).await?;
        let mut rows = self.rows.lock();
        for (finished, settled) in batch.iter().zip(&settled) {
            if *settled == Settled::Confirmed {
                rows.extend(finished.records.iter().cloned());
            }
        }
        Ok(settled)
    }
}
