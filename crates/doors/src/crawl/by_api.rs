//! The door of crawls by API: the pages of many crawls, each with its own rules.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::Observed;
use fetchwell_engine::pipeline::{Door, GiveUp};
use fetchwell_engine::plan::immediate::ImmediatePlan;
use fetchwell_engine::ports::crawls::{CrawlSpec, Crawls, MAX_OPEN_CRAWLS, crawl_of};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::frontier::{CrawlRecord, PagePlace};
use fetchwell_engine::ports::inbox::{CrawlId, FetchResult};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan};
use fetchwell_engine::ports::retriever_store::CrawlStore;
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
use fetchwell_engine::wrapped_source::{LeaseHooks, WrappedSource};
use fetchwell_policy::crawl::{Scope, UrlPattern};
use fetchwell_policy::url::WebUrl;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::message_rows::MessageRows;
use super::rows::KnownRows;
use super::rules::CrawlRules;
use super::run::{CrawlContext, given_up_page, plan};
use crate::fetch::FetchRules;
use crate::retriever::{BodyRules, OnResult, give_up_record};

/// The pages of one crawl that are remembered, in each of two generations. A redirect to one of them is not followed.
const MAX_REMEMBERED: usize = 1_000;
/// The maximum number of crawls in memory: those that are open, and some that have ended.
const MAX_CONTEXTS: usize = 2 * MAX_OPEN_CRAWLS as usize;
/// How often crawls are checked that are cancelled, have reached their maximum time or have ended.
const LOOK_AFTER_EVERY: Duration = Duration::from_secs(5);

/// The rules that all crawls by API share.
#[derive(Clone, Debug)]
pub struct CrawlsRules {
    /// The rules for one page.
    pub fetch: FetchRules,
    /// The limits for keeping bodies.
    pub bodies: BodyRules,
    /// The name of the bot in robots.txt and in directives of pages.
    pub bot: String,
}

impl CrawlsRules {
    fn of_crawl(&self, spec: &CrawlSpec) -> CrawlRules {
        let starts: Vec<WebUrl> =
            spec.urls.iter().filter_map(|start| WebUrl::parse(start).ok()).collect();
        // The API has checked them.
        let patterns = |patterns: &[String]| -> Vec<UrlPattern> {
            patterns.iter().filter_map(|pattern| pattern.parse().ok()).collect()
        };
        CrawlRules {
            fetch: self.fetch,
            scope: Scope::new(spec.scope, &starts),
            include: patterns(&spec.include),
            exclude: patterns(&spec.exclude),
            max_depth: spec.depth,
            sitemaps: spec.sitemaps,
            sitemap_depth: spec.sitemap_depth,
            since: None,
            with_downloads: spec.downloads,
            bot: self.bot.clone(),
        }
    }
}

type Context = Arc<CrawlContext<MessageRows>>;

/// The crawls whose pages this process fetches.
struct Contexts {
    crawls: Arc<dyn Crawls>,
    rules: CrawlsRules,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// `None` for crawls that have ended.
    contexts: HashMap<CrawlId, Option<Context>>,
    /// The oldest first.
    order: VecDeque<CrawlId>,
}

impl Contexts {
    fn has(&self, id: CrawlId) -> bool {
        self.known.lock().contexts.contains_key(&id)
    }

    /// `None` if the crawl is not known; `Some(None)` if it has ended.
    fn get(&self, lease: &Lease) -> Option<Option<Context>> {
        let id = crawl_of(&lease.job.lane)?;
        self.known.lock().contexts.get(&id).cloned()
    }

    fn add(&self, id: CrawlId, spec: Option<CrawlSpec>) {
        let context = spec.map(|spec| {
            let CrawlsRules { fetch, bodies, .. } = self.rules;
            Arc::new(CrawlContext {
                rules: self.rules.of_crawl(&spec),
                kind: MessageRows::new(id, &spec.options, fetch.reading, bodies),
                known_rows: KnownRows::remembering(MAX_REMEMBERED),
            })
        });
        let mut known = self.known.lock();
        if known.order.len() >= MAX_CONTEXTS
            && let Some(oldest) = known.order.pop_front()
        {
            known.contexts.remove(&oldest);
        }
        known.contexts.insert(id, context);
        known.order.push_back(id);
    }

    fn plan(&self, lease: &Lease) -> Box<dyn Plan<CrawlRecord<FetchResult>>> {
        match self.get(lease) {
            Some(Some(crawl)) => plan(lease, &crawl),
            // Only sitemaps are left of a crawl that has ended.
            Some(None) => Box::new(ImmediatePlan(|_: Moment| (Vec::new(), Settlement::Skipped))),
            // It was forgotten meanwhile. The next take reads it again.
            None => Box::new(ImmediatePlan(|moment: Moment| {
                (Vec::new(), Settlement::HandBack { at: moment.now })
            })),
        }
    }

    fn give_up(
        &self,
        lease: &Lease,
        cause: GiveUp,
        reason: &str,
        clock: &Clock,
    ) -> Vec<CrawlRecord<FetchResult>> {
        match self.get(lease).flatten() {
            Some(crawl) => given_up_page(lease, cause, reason, &crawl.kind, clock.wall()),
            None if PagePlace::is_of(&lease.job) => {
                vec![CrawlRecord::of_row(give_up_record(lease, cause, reason))]
            }
            None => Vec::new(),
        }
    }
}

#[async_trait]
impl LeaseHooks for Contexts {
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError> {
        for id in leases.iter().filter_map(|lease| crawl_of(&lease.job.lane)) {
            if !self.has(id) {
                self.add(id, self.crawls.open_spec(id).await?);
            }
        }
        Ok(())
    }
}

/// The door that turns the pages of all crawls into results, and queues the pages that they link to.
pub fn crawls(
    store: &CrawlStore,
    rules: CrawlsRules,
    on_result: OnResult,
    clock: Clock,
) -> Door<CrawlRecord<FetchResult>> {
    let crawls = store.crawls.clone();
    let contexts = Arc::new(Contexts { crawls, rules, known: Mutex::default() });
    let planned = contexts.clone();
    let given_up = contexts.clone();
    Door {
        source: Arc::new(WrappedSource::new(store.pages.source.clone(), contexts)),
        planner: Arc::new(move |lease| planned.plan(lease)),
        finish: Arc::new(Observed {
            inner: store.pages.finish.clone(),
            on_settled: Box::new(move |finished, settled| report(finished, settled, &on_result)),
        }),
        give_up_record: Arc::new(move |lease, cause, reason| {
            given_up.give_up(lease, cause, reason, &clock)
        }),
    }
}

/// Reports the result of a page, once it is stored.
fn report(finished: &Finished<CrawlRecord<FetchResult>>, settled: Settled, on_result: &OnResult) {
    if settled != Settled::Confirmed {
        return;
    }
    for record in &finished.records {
        record.row().into_iter().for_each(|result| on_result(&result.status));
        record.failure.iter().for_each(|failure| debug!("{failure}"));
    }
}

/// Ends crawls that are cancelled or have reached their maximum time, and removes what the store no longer needs of
/// those that have ended, until `stop`.
pub async fn look_after(crawls: &dyn Crawls, health: &StoreHealth, stop: &CancellationToken) {
    loop {
        if let Err(fault) = tidy_all(crawls, stop).await {
            health.failed_once(StoreCall::Prune, &fault);
        }
        if tokio::time::timeout(LOOK_AFTER_EVERY, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

async fn tidy_all(crawls: &dyn Crawls, stop: &CancellationToken) -> Result<(), StoreError> {
    for id in crawls.untidy().await? {
        while !stop.is_cancelled() && crawls.tidy(id).await? {}
    }
    Ok(())
}
