//! One run: take a snapshot of all links, keep the new ones, and fetch them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fetchwell_engine::gate::GateRules;
use fetchwell_engine::pipeline::{self, Door, Runtime};
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{Job, NewJob};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::wrapped_source::WrappedSource;
use fetchwell_policy::time::Time;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::ArticlePorts;
use super::finish::{KeepThenSettle, Tally};
use super::plan::{ArticleLink, LinkRules, give_up_record, plan};
use super::record::{ArticleRecord, uid};
use super::unattempted::Unattempted;

/// Links enqueued per transaction.
const CLAIMS_AT_ONCE: usize = 10_000;

#[derive(Clone, Copy, Debug)]
pub struct ArticleRules {
    pub link: LinkRules,
    /// The longest wait for slow sites and open circuits.
    pub max_wait: Duration,
}

/// The gate rules of this door: a URL fails if the robots.txt of its site cannot be fetched.
pub fn gate_rules(mut rules: GateRules) -> GateRules {
    rules.robots.pages_fail_with_it = true;
    rules
}

/// A run and its new links.
pub struct ArticleRun {
    articles: Arc<dyn Articles>,
    /// Start of the run, by the store's clock.
    began: Time,
    new: Vec<NewJob>,
}

impl ArticleRun {
    /// Finds the new links. Returns `None`, and logs nothing, if there are none.
    pub async fn begin(ports: &ArticlePorts) -> Result<Option<ArticleRun>, StoreError> {
        let began = ports.articles.now().await?;
        ports.articles.trim().await?;
        let new = new_links(ports, began).await?;
        if new.is_empty() {
            return Ok(None);
        }
        info!("[canon] {} new links", new.len());
        let new = new.into_iter().map(|(url, link)| job(url, &link)).collect();
        Ok(Some(ArticleRun { articles: ports.articles.clone(), began, new }))
    }

    /// Enqueues the new links, except those that are already queued.
    pub async fn claim(&mut self, claims: &dyn Queue) -> Result<(), StoreError> {
        let mut jobs = std::mem::take(&mut self.new);
        while !jobs.is_empty() {
            let rest = jobs.split_off(jobs.len().min(CLAIMS_AT_ONCE));
            claims.enqueue(jobs).await?;
            jobs = rest;
        }
        Ok(())
    }

    /// Fetches the queued links. Returns when all are done, when `max_wait` has passed, or on `stop`.
    pub async fn fetch(
        self,
        claims: &dyn Queue,
        rules: ArticleRules,
        runtime: Runtime,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let tally = Arc::new(Tally::default());
        self.flow(claims, rules, runtime, &tally, stop).await?;
        let stored = tally.stored.load(Ordering::Relaxed);
        let failed = tally.failed.load(Ordering::Relaxed);
        let ledger = claims.ledger().await?;
        match ledger.unfinished() {
            0 => info!("[canon] {stored} stored, {failed} failed"),
            left => info!("[canon] {stored} stored, {failed} failed, {left} left for the next run"),
        }
        Ok(())
    }

    /// Runs the pipeline for at most `max_wait`.
    async fn flow(
        self,
        claims: &dyn Queue,
        rules: ArticleRules,
        runtime: Runtime,
        tally: &Arc<Tally>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let ArticleRun { articles, began: run, .. } = self;
        let ends = claims.instance();
        let clock = runtime.clock.clone();
        let wall = runtime.clock.clone();
        let unattempted =
            Unattempted { ends: ends.clone(), articles: articles.clone(), run, clock };
        let source = Arc::new(WrappedSource::new(ends.clone(), Arc::new(unattempted)));
        let door = Door {
            source: source.clone(),
            planner: planner(rules.link),
            finish: Arc::new(KeepThenSettle { articles, run, ends, tally: tally.clone() }),
            give_up_record: Arc::new(move |lease, cause, reason| {
                give_up_record(lease, cause, reason, wall.wall())
            }),
        };
        let enough = stop.child_token();
        let waiting = cancel_after(rules.max_wait, &enough);
        let running = async {
            let ended = pipeline::run(door, runtime, enough.clone()).await;
            enough.cancel();
            ended
        };
        let (ended, ()) = tokio::join!(running, waiting);
        if let Err(fault) = source.leave().await {
            warn!(
                "could not hand back leases; other processes take over the links when the leases \
                 expire: {fault}"
            );
        }
        ended.map(|_| ())
    }
}

/// The snapshot without the attempted links. The categories of a link are sorted by name.
async fn new_links(
    ports: &ArticlePorts,
    run: Time,
) -> Result<Vec<(String, ArticleLink)>, StoreError> {
    let mut links: BTreeMap<String, ArticleLink> = BTreeMap::new();
    for set in ports.links.snapshot().await? {
        for url in set.urls {
            let link = links.entry(url).or_insert_with(|| ArticleLink { categories: Vec::new() });
            link.categories.push(set.category.clone());
        }
    }
    let uids: Vec<String> = links.keys().map(|url| uid(url)).collect();
    let pending = ports.articles.pending(&uids, run).await?;
    Ok(links.into_iter().zip(pending).filter(|(_, new)| *new).map(|(link, _)| link).collect())
}

fn job(url: String, link: &ArticleLink) -> NewJob {
    NewJob::keyed(Job::new(url, serde_json::to_vec(link).unwrap_or_default()))
}

fn planner(rules: LinkRules) -> pipeline::Planner<ArticleRecord> {
    Arc::new(move |lease| {
        info!("[canon] 🌐 Fetching → {}", lease.job.url);
        plan(lease, rules)
    })
}

async fn cancel_after(span: Duration, token: &CancellationToken) {
    if tokio::time::timeout(span, token.cancelled()).await.is_err() {
        info!(
            "[canon] gave up waiting for slow and closed sites: the rest is left for the next run"
        );
        token.cancel();
    }
}
