//! One run: a snapshot of all links, what of it is new, and that fetched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fetchwell_engine::gate::Gate;
use fetchwell_engine::pipeline::{self, Door};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{Job, Lane, NewJob, job_key};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::web::Timeouts;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::{Settings, Values};
use fetchwell_telemetry::metrics::DoorName;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::finish::{KeepThenSettle, Tally};
use super::plan::{Link, LinkRules, obituary, plan};
use super::record::ArticleRecord;
use super::unattempted::Unattempted;
use super::{ArticlePorts, uid};
use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;
use crate::doors::read_limits::ReadLimits;
use crate::wiring::{Parts, Told, gate_rules, open_articles, open_claims};

/// Links put into the queue in one transaction.
const CLAIMS_AT_ONCE: usize = 10_000;

/// `fetchwell articles run`.
pub(super) async fn once(settings: &Settings) -> Result<Exit, Exit> {
    let stop = stop_on_signal();
    let ports = open_articles(settings).await?;
    run(settings, &ports, &Told::default(), &stop).await?;
    Ok(Exit::Ok)
}

/// Fetches what is new, and returns when that is done, when it has waited long enough for slow and closed
/// sites, or when it is stopped. Where nothing is new, nothing is asked for and nothing is said.
pub(super) async fn run(
    settings: &Settings,
    ports: &ArticlePorts,
    told: &Told,
    stop: &CancellationToken,
) -> Result<(), Exit> {
    let began = ports.articles.now().await?;
    ports.articles.trim().await?;
    let new = new_links(ports, began).await?;
    if new.is_empty() {
        return Ok(());
    }
    info!("[canon] {} new links", new.len());
    let claims: Arc<dyn Queue> = open_claims(settings).await?;
    claim(&*claims, new.into_iter().map(|(url, link)| job(url, &link)).collect()).await?;
    let parts = Parts::open_for_cycle(settings, told).await?;
    let tally = Arc::new(Tally::default());
    fetch(settings, ports, &*claims, &parts, began, &tally, stop).await?;
    let stored = tally.stored.load(Ordering::Relaxed);
    let failed = tally.failed.load(Ordering::Relaxed);
    let ledger = claims.ledger().await?;
    match ledger.queued + ledger.delayed + ledger.in_flight {
        0 => info!("[canon] {stored} stored, {failed} failed"),
        left => info!("[canon] {stored} stored, {failed} failed, {left} left for the next run"),
    }
    Ok(())
}

/// The snapshot minus what was attempted. A link's categories are in the order of their names.
async fn new_links(ports: &ArticlePorts, run: Time) -> Result<Vec<(String, Link)>, StoreError> {
    let mut links: BTreeMap<String, Link> = BTreeMap::new();
    for set in ports.links.snapshot().await? {
        for url in set.urls {
            let link = links.entry(url).or_insert_with(|| Link { categories: Vec::new() });
            link.categories.push(set.category.clone());
        }
    }
    let uids: Vec<String> = links.keys().map(|url| uid(url)).collect();
    let pending = ports.articles.pending(&uids, run).await?;
    Ok(links.into_iter().zip(pending).filter(|(_, new)| *new).map(|(link, _)| link).collect())
}

fn job(url: String, link: &Link) -> NewJob {
    let site = WebUrl::parse(&url).ok().map(|url| url.site());
    let key = job_key(site.as_ref(), &url);
    let payload = serde_json::to_vec(link).unwrap_or_default();
    let job = Job { url, site, lane: Lane::default(), payload, deadline: None };
    NewJob { key: Some(key), ..NewJob::now(job) }
}

/// Puts links on the queue, each unless it is there.
async fn claim(claims: &dyn Queue, mut jobs: Vec<NewJob>) -> Result<(), StoreError> {
    while !jobs.is_empty() {
        let rest = jobs.split_off(jobs.len().min(CLAIMS_AT_ONCE));
        claims.enqueue(jobs).await?;
        jobs = rest;
    }
    Ok(())
}

/// The flow, for as long as a run may take.
async fn fetch(
    settings: &Settings,
    ports: &ArticlePorts,
    claims: &dyn Queue,
    parts: &Parts,
    run: Time,
    tally: &Arc<Tally>,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    let ends = claims.instance();
    let articles = ports.articles.clone();
    let clock = parts.clock.clone();
    let source = Arc::new(Unattempted::new(ends.clone(), articles.clone(), run, clock));
    let door = Door {
        source: source.clone(),
        planner: planner(&settings.values),
        finish: Arc::new(KeepThenSettle { articles, run, ends, tally: tally.clone() }),
        obituary: Arc::new(obituary),
    };
    let mut rules = gate_rules(settings, None);
    rules.robots.pages_fail_with_it = true;
    let gate = Gate::new(parts.politeness.clone(), rules, parts.clock.clone());
    let plant = parts.plant(settings, gate, DoorName::Articles, Arc::new(|_| {}));
    let enough = stop.child_token();
    let waiting = cancel_after(settings.values.articles_max_wait, &enough);
    let running = async {
        let ended = pipeline::run(door, plant, enough.clone()).await;
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

fn planner(values: &Values) -> pipeline::Planner<ArticleRecord> {
    let request = Some(values.articles_request_timeout);
    let timeouts = Timeouts { connect: None, request };
    let reading = ReadLimits::of(values);
    let rules = LinkRules { timeouts, max_redirects: values.http_max_redirects, reading };
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
