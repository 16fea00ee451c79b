//! The door of crawls through the API: the pages of many crawls, each with its own rules.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::Observed;
use fetchwell_engine::pipeline::{Door, GiveUp};
use fetchwell_engine::plan::immediate::ImmediatePlan;
use fetchwell_engine::ports::crawls::{CrawlSpec, Crawls, MAX_OPEN_CRAWLS, crawl_of};
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
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
use tracing::{debug, warn};

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
/// When the pages of a crawl are tried again whose settings this version cannot read.
const UNREADABLE_RETRY: Duration = Duration::from_secs(60);
/// How often crawls are checked that are cancelled, have reached their maximum time or have ended.
const LOOK_AFTER_EVERY: Duration = Duration::from_secs(5);

/// The rules that all crawls through the API share.
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

/// A crawl in memory.
#[derive(Clone)]
enum KnownCrawl {
    Open(Context),
    Ended,
    /// A newer version may have written its settings. Its pages wait for a version that can read them.
    Unreadable,
}

#[derive(Default)]
struct Known {
    contexts: HashMap<CrawlId, KnownCrawl>,
    /// The oldest first.
    order: VecDeque<CrawlId>,
}

impl Contexts {
    fn has(&self, id: CrawlId) -> bool {
        self.known.lock().contexts.contains_key(&id)
    }

    fn get(&self, lease: &Lease) -> Option<KnownCrawl> {
        let id = crawl_of(&lease.job.lane)?;
        self.known.lock().contexts.get(&id).cloned()
    }

    fn open(&self, id: CrawlId, spec: &CrawlSpec) -> KnownCrawl {
        let CrawlsRules { fetch, bodies, .. } = self.rules;
        KnownCrawl::Open(Arc::new(CrawlContext {
            rules: self.rules.of_crawl(spec),
            kind: MessageRows::new(id, &spec.options, fetch.reading, bodies),
            known_rows: KnownRows::remembering(MAX_REMEMBERED),
        }))
    }

    fn add(&self, id: CrawlId, crawl: KnownCrawl) {
        let mut known = self.known.lock();
        if known.contexts.insert(id, crawl).is_some() {
            return;
        }
        known.order.push_back(id);
        if known.order.len() > MAX_CONTEXTS
            && let Some(oldest) = known.order.pop_front()
        {
            known.contexts.remove(&oldest);
        }
    }

    /// Reads a crawl. One that is known and still open is not replaced.
    async fn look_up(&self, id: CrawlId) -> Result<(), StoreError> {
        let crawl = match self.crawls.open_spec(id).await {
            Ok(Some(_)) if self.has(id) => return Ok(()),
            Ok(Some(spec)) => self.open(id, &spec),
            Ok(None) => KnownCrawl::Ended,
            // The other leases of the batch belong to other crawls.
            Err(error) if error.kind() == StoreErrorKind::Incompatible => {
                warn!(crawl = %id, %error, "the pages of a crawl wait");
                KnownCrawl::Unreadable
            }
            Err(error) => return Err(error),
        };
        self.add(id, crawl);
        Ok(())
    }

    fn plan(&self, lease: &Lease) -> Box<dyn Plan<CrawlRecord<FetchResult>>> {
        match self.get(lease) {
            Some(KnownCrawl::Open(crawl)) => plan(lease, &crawl),
            // An ended crawl can only have sitemap jobs left.
            Some(KnownCrawl::Ended) => {
                Box::new(ImmediatePlan(|_: Moment| (Vec::new(), Settlement::Skipped)))
            }
            Some(KnownCrawl::Unreadable) => Box::new(ImmediatePlan(|moment: Moment| {
                (Vec::new(), Settlement::HandBack { at: moment.now + UNREADABLE_RETRY })
            })),
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
        match self.get(lease) {
            Some(KnownCrawl::Open(crawl)) => {
                given_up_page(lease, cause, reason, &crawl.kind, clock.wall())
            }
            _ if PagePlace::is_of(&lease.job) => {
                vec![CrawlRecord::of_row(give_up_record(lease, cause, reason))]
            }
            _ => Vec::new(),
        }
    }
}

#[async_trait]
impl LeaseHooks for Contexts {
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError> {
        let mut checked = HashSet::new();
        for lease in leases.iter() {
            let Some(id) = crawl_of(&lease.job.lane) else { continue };
            // While a crawl has a page left, it does not end. With only sitemaps left, it may have ended.
            let is_current = self.has(id) && PagePlace::is_of(&lease.job);
            if !is_current && checked.insert(id) {
                self.look_up(id).await?;
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

/// One step per crawl and round: a large crawl does not hold up the others.
async fn tidy_all(crawls: &dyn Crawls, stop: &CancellationToken) -> Result<(), StoreError> {
    let mut left = crawls.untidy().await?;
    while !left.is_empty() {
        let mut unfinished = Vec::new();
        for id in left {
            if stop.is_cancelled() {
                return Ok(());
            }
            match crawls.tidy(id).await {
                Ok(true) => unfinished.push(id),
                Ok(false) => {}
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => warn!(crawl = %id, %error, "could not clean up after a crawl"),
            }
        }
        left = unfinished;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::plan::redirect_chain::Patience;
    use fetchwell_engine::ports::crawls::{
        CrawlStarted, MessageCrawl, NewCrawl, lane_of_pages, lane_of_sitemaps,
    };
    use fetchwell_engine::ports::frontier::CutOff;
    use fetchwell_engine::ports::inbox::options::Options;
    use fetchwell_engine::ports::inbox::{OutboxMost, OutboxPage};
    use fetchwell_engine::ports::job::{Job, Lane};
    use fetchwell_engine::ports::message_batches::ReadUpTo;
    use fetchwell_policy::crawl::{ScopeKind, Sitemaps};
    use fetchwell_policy::retry::History;
    use fetchwell_policy::time::Time;

    use super::*;
    use crate::fetch::OutputFormat;
    use crate::read_limits::READING;

    const OPEN: CrawlId = CrawlId([1; 16]);
    const NEWER: CrawlId = CrawlId([2; 16]);

    /// Crawls that end when the test says so. `tidy` takes as many steps as the first byte of the ID says.
    #[derive(Default)]
    struct Scripted {
        has_ended: Mutex<bool>,
        steps: Mutex<Vec<CrawlId>>,
    }

    #[async_trait]
    impl Crawls for Scripted {
        async fn open_spec(&self, id: CrawlId) -> Result<Option<CrawlSpec>, StoreError> {
            if id == NEWER {
                return Err(StoreError::incompatible("written by a newer version"));
            }
            Ok((!*self.has_ended.lock()).then(spec))
        }

        async fn untidy(&self) -> Result<Vec<CrawlId>, StoreError> {
            Ok([3, 0, 1].map(|steps| CrawlId([steps; 16])).to_vec())
        }

        async fn tidy(&self, id: CrawlId) -> Result<bool, StoreError> {
            if id.0[0] == 0 {
                return Err(StoreError::corrupt("unreadable"));
            }
            let mut steps = self.steps.lock();
            steps.push(id);
            Ok(steps.iter().filter(|step| **step == id).count() < usize::from(id.0[0]))
        }

        async fn start(&self, _: NewCrawl) -> Result<CrawlStarted, StoreError> {
            unreachable!("no test calls it")
        }

        async fn crawl(
            &self,
            _: CrawlId,
            _: Option<&str>,
        ) -> Result<Option<MessageCrawl>, StoreError> {
            unreachable!("no test calls it")
        }

        async fn crawls(
            &self,
            _: &str,
            _: Option<CrawlId>,
            _: u32,
        ) -> Result<Vec<MessageCrawl>, StoreError> {
            unreachable!("no test calls it")
        }

        async fn results(
            &self,
            _: CrawlId,
            _: Option<&str>,
            _: Option<i64>,
            _: OutboxMost,
        ) -> Result<Option<OutboxPage>, StoreError> {
            unreachable!("no test calls it")
        }

        async fn cut_off(&self, _: CrawlId, _: u32) -> Result<Vec<CutOff>, StoreError> {
            unreachable!("no test calls it")
        }

        async fn ended_crawls(
            &self,
            _: &str,
            _: ReadUpTo,
            _: i64,
            _: u32,
        ) -> Result<Vec<MessageCrawl>, StoreError> {
            unreachable!("no test calls it")
        }

        async fn cancel(&self, _: CrawlId, _: Option<&str>) -> Result<bool, StoreError> {
            unreachable!("no test calls it")
        }

        async fn stop_some(&self, _: CrawlId) -> Result<u32, StoreError> {
            unreachable!("no test calls it")
        }
    }

    fn spec() -> CrawlSpec {
        CrawlSpec {
            urls: vec!["http://a.test/".to_owned()],
            scope: ScopeKind::Host,
            include: Vec::new(),
            exclude: Vec::new(),
            depth: None,
            limit: 10,
            limit_per_site: None,
            max_time: Duration::from_secs(60),
            sitemaps: Sitemaps::Auto,
            sitemap_depth: 1,
            downloads: false,
            retailer: "shop".to_owned(),
            correlation_id: None,
            options: Options::default(),
        }
    }

    fn contexts() -> (Arc<Scripted>, Contexts) {
        let crawls = Arc::new(Scripted::default());
        let fetch = FetchRules {
            format: OutputFormat::Json,
            links: false,
            reading: READING,
            max_redirects: 5,
            patience: Patience { since: Time::EPOCH, lasts: Duration::ZERO },
        };
        let bodies = BodyRules { max_bytes: 0, keep: Duration::ZERO, quota_bytes: 0 };
        let rules = CrawlsRules { fetch, bodies, bot: "Fetchwell".to_owned() };
        (crawls.clone(), Contexts { crawls, rules, known: Mutex::default() })
    }

    fn lease(lane: Lane) -> Lease {
        let job = Job { lane, ..Job::new("http://a.test/sitemap.xml".to_owned(), Vec::new()) };
        let history = History::default();
        Lease { id: 1, job, history, interruptions: 0, accepted_at: Time::EPOCH }
    }

    /// A crawl may end while sitemaps are left: its limit excludes what they name.
    #[tokio::test]
    async fn sitemaps_of_a_crawl_that_has_ended_are_not_read() {
        let (crawls, contexts) = contexts();
        let mut leases =
            vec![lease(lane_of_pages(OPEN, "shop")), lease(lane_of_sitemaps(OPEN, "shop"))];
        contexts.prepare(&mut leases).await.unwrap();
        assert!(matches!(contexts.get(&leases[1]), Some(KnownCrawl::Open(_))));
        *crawls.has_ended.lock() = true;
        contexts.prepare(&mut leases[..1].to_vec()).await.unwrap();
        assert!(matches!(contexts.get(&leases[1]), Some(KnownCrawl::Open(_))), "it has a page");
        contexts.prepare(&mut leases).await.unwrap();
        assert!(matches!(contexts.get(&leases[1]), Some(KnownCrawl::Ended)));
        assert_eq!(contexts.known.lock().order.len(), 1);
    }

    #[tokio::test]
    async fn an_unreadable_crawl_waits_and_the_others_go_on() {
        let (_, contexts) = contexts();
        let mut leases =
            vec![lease(lane_of_pages(NEWER, "shop")), lease(lane_of_pages(OPEN, "shop"))];
        contexts.prepare(&mut leases).await.unwrap();
        assert!(matches!(contexts.get(&leases[0]), Some(KnownCrawl::Unreadable)));
        assert!(matches!(contexts.get(&leases[1]), Some(KnownCrawl::Open(_))));
    }

    #[tokio::test]
    async fn crawls_take_turns_and_a_failing_one_is_passed_over() {
        let crawls = Scripted::default();
        tidy_all(&crawls, &CancellationToken::new()).await.unwrap();
        let steps: Vec<u8> = crawls.steps.lock().iter().map(|id| id.0[0]).collect();
        assert_eq!(steps, [3, 1, 3, 3]);
    }
}
