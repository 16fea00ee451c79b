//! `/crawl` and `/crawls`: pages that are found by following links.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request, State};
use fetchwell_engine::ports::crawls::{
    CRAWLS_PER_PAGE, CrawlStarted, Crawls, MAX_OPEN_CRAWLS, MessageCrawl, NewCrawl,
};
use fetchwell_engine::ports::frontier::Discoveries;
use fetchwell_engine::ports::inbox::{
    AuditEntry, CrawlId, Idempotency, OutboxMessage, OutboxMost, OutboxPage,
};
use fetchwell_policy::crawl::{ScopeKind, Sitemaps};
use serde::Serialize;
use utoipa::ToSchema;

use super::accept::idempotency;
use super::batches::AskedResults;
use super::identity::Identity;
use super::memory::Held;
use super::new_crawl::{CrawlJudge, CrawlRequest, NewCrawlBody};
use super::outbox::MAX_PAGE_BYTES;
use super::parameters::limit;
use super::problems::{
    BodyProblems, CallerProblems, CrawlProblems, NoCrawlProblems, QueryProblems, SenderProblems,
    SizeProblems, StoreProblems,
};
use super::respond::json;
use super::waiting::Waiting;
use super::{Api, ApiResult, PathName, body, parameters};
use crate::problem::{PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::server::until_sent;
use crate::views::crawls::CrawlView;
use crate::views::messages::OutboxView;

const MAX_BODY_BYTES: u64 = 64 << 10;
const DEFAULT_CRAWLS: u32 = 50;
/// The maximum number of entries about links that were not followed.
const MAX_CUT_OFF: u32 = 100;
/// When to try again to start a crawl while too many are open.
const TOO_MANY_RETRY_SECONDS: u64 = 60;
/// The maximum number of steps in which one request cancels a crawl. What is left is cancelled in the background.
const MAX_CANCEL_STEPS: u32 = 100;

/// The crawls of a store, and how one begins.
#[derive(Clone)]
pub struct CrawlApi {
    pub store: Arc<dyn Crawls>,
    pub starts: CrawlStarts,
}

/// What a crawl of these start pages begins with. The switch says whether it reads sitemaps.
pub type CrawlStarts = Arc<dyn Fn(&[String], bool) -> Discoveries + Send + Sync>;

/// A page of a caller's crawls, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Crawls)]
pub(super) struct CrawlPage {
    /// The crawls.
    crawls: Vec<CrawlView>,
    /// The id after which to continue; null at the end.
    #[schema(required)]
    next: Option<String>,
}

/// A page of the results of a crawl.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CrawlResults {
    /// The results after the cursor, in the order in which they were stored.
    messages: Vec<OutboxView>,
    /// The cursor after which to continue.
    #[schema(example = "42", pattern = "^[0-9]+$")]
    next: String,
    /// Whether the crawl has ended and no results follow.
    done: bool,
}

/// Start a crawl
///
/// Fetches the start pages, follows their links within the scope, and stores one result per page in your outbox. Every
/// page obeys robots.txt and the pace of its site. A result has the place of its page in `crawl`, and the id of the
/// crawl as `correlation_id`, unless you set another. With an `Idempotency-Key`, a repeated request gets the crawl of
/// the first one, as it is now.
#[utoipa::path(
    post,
    path = "/crawl",
    operation_id = "start_crawl",
    tag = "Crawls",
    params(("Idempotency-Key" = Option<String>, Header, description = "a key of your choice for this request: 1 to 255 visible ASCII characters", pattern = "^[!-~]{1,255}$")),
    request_body = NewCrawlBody,
    responses(
        (status = 200, description = "the crawl, which has begun", body = CrawlView,
            links(
                ("the crawl" = (operation_id = "crawl_state", parameters(("id" = "$response.body#/id")))),
                ("its results" = (operation_id = "crawl_results", parameters(("id" = "$response.body#/id"))))
            )
        ),
        (status = 422, description = "a field is missing or invalid, a URL is refused, or the key was used for another request", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, SenderProblems, BodyProblems, SizeProblems, NoCrawlProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn start_crawl(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> ApiResult {
    identity.check_may_send()?;
    let (parts, body) = request.into_parts();
    let whole = body::read(&api.memory, &parts.headers, body, MAX_BODY_BYTES).await?;
    let posted = body::json(&whole.bytes)?;
    api.charge(&identity.caller, 1)?;
    let idempotency = idempotency(&parts.headers, "/crawl", &whole.bytes)?;
    let judge = CrawlJudge { guard: &api.on.guard, max_pages: api.rules.max_crawl_pages };
    let request = CrawlRequest::read(&posted, &judge).map_err(Problem::invalid)?;
    let id = api.start_crawl(&identity, request, idempotency).await?;
    let crawl = api.crawl(id, &identity).await?;
    Ok(json(&CrawlView::of(&crawl)))
}

/// List your crawls
///
/// The newest comes first. Continue with `after` = `next` of the last response.
#[utoipa::path(
    get,
    path = "/crawls",
    operation_id = "crawls",
    tag = "Crawls",
    params(
        ("after" = Option<String>, Query, description = "return crawls that were started before this one", example = "crawl_ffffffffffffffffffffffffffffffff", pattern = "^crawl_[0-9a-f]{32}$"),
        ("limit" = Option<u32>, Query, description = "maximum number of crawls, 1 to 200 (default 50)", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "your crawls", body = CrawlPage),
        CallerProblems, QueryProblems, NoCrawlProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn crawls(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> ApiResult {
    const AFTER: &str = "must be the id of a crawl: `next` of an earlier response";
    api.charge(&identity.caller, 1)?;
    let query = query.unwrap_or_default();
    let mut after: Option<CrawlId> = None;
    let mut most = DEFAULT_CRAWLS;
    parameters::read_known(&query, &["after", "limit"], |name, value| {
        match name {
            "after" => after = Some(value.parse().map_err(|_| ("after", AFTER))?),
            _ => most = limit(value, CRAWLS_PER_PAGE).ok_or(("limit", "must be 1 to 200"))?,
        }
        Ok(())
    })?;
    let caller = &identity.caller.name;
    // Each has up to 100 start pages.
    let mut share = api.memory.take(u64::from(most) * MAX_BODY_BYTES).await?;
    let found = api.stored(api.crawl_store()?.store.crawls(caller, after, most).await)?;
    let urls = found.iter().flat_map(|crawl| &crawl.spec.urls);
    share.shrink_to(urls.map(|url| url.len() as u64).sum());
    let is_full = found.len() >= usize::try_from(most).unwrap_or(usize::MAX);
    let next = found.last().filter(|_| is_full).map(|last| last.id.to_string());
    let page = CrawlPage { crawls: found.iter().map(CrawlView::of).collect(), next };
    Ok(until_sent(json(&page), share))
}

/// Get a crawl: its pages by status, and which links were not followed
///
/// A caller sees its own crawls; a viewer and an operator see all. The response is the same for crawls that do not exist
/// and for those of other callers.
#[utoipa::path(
    get,
    path = "/crawl/{id}",
    operation_id = "crawl_state",
    tag = "Crawls",
    params(("id" = String, Path, description = "the id that POST /crawl returned", example = "crawl_018bcfe56800ffffffffffffffffffff", pattern = "^crawl_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the crawl", body = CrawlView),
        CallerProblems, CrawlProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn crawl(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    parameters::refuse_any(query.as_deref())?;
    api.respond_with_crawl(crawl_id(id)?, &identity).await
}

/// Read the results of a crawl
///
/// They come in the order in which they were stored. Continue with `after` = `next` of the last response until `done` is
/// true: no result is skipped or returned twice. The cursors are those of `/outbox`, which has these results, too.
#[utoipa::path(
    get,
    path = "/crawl/{id}/results",
    operation_id = "crawl_results",
    tag = "Crawls",
    params(
        ("id" = String, Path, description = "the id that POST /crawl returned", example = "crawl_018bcfe56800ffffffffffffffffffff", pattern = "^crawl_[0-9a-f]{32}$"),
        ("after" = Option<String>, Query, description = "return results after this cursor (default: from the oldest result)", example = "0", pattern = "^[0-9]+$"),
        ("limit" = Option<u32>, Query, description = "maximum number of results, 1 to 1000 (default 100)", minimum = 1, maximum = 1000),
        ("wait" = Option<u32>, Query, description = "seconds to wait for a result, 0 to 60 (default 0)", minimum = 0, maximum = 60),
    ),
    responses(
        (status = 200, description = "results, or none yet", body = CrawlResults),
        (status = 410, description = "results after the cursor were deleted, or the cursor is beyond the newest result; continue after the cursor in `oldest`", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, CrawlProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn crawl_results(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    let id = crawl_id(id)?;
    let asked = AskedResults::read(query.as_deref().unwrap_or_default())?;
    let owner = api.crawl(id, &identity).await?.caller;
    let mut waiting = Waiting::begin(&api, &owner, asked.wait);
    loop {
        // Read before the results: if it has ended by then, all of them are there.
        let crawl = api.crawl(id, &identity).await?;
        let (results, next, share) =
            api.crawl_page(id, &identity, asked.after, asked.limit).await?;
        let nothing_follows = |end: i64| results.is_empty() || next >= end;
        let done = crawl.completion.is_some_and(|completion| nothing_follows(completion.cursor));
        if !results.is_empty() || done || !waiting.next().await {
            identity.check_again(&api).await?;
            let messages = results.into_iter().map(OutboxView::from).collect();
            let answer = CrawlResults { messages, next: next.to_string(), done };
            return Ok(until_sent(json(&answer), share));
        }
    }
}

/// Cancel a crawl
///
/// No further pages are queued, and those that wait are not fetched; they have no result. Requests in flight are not
/// interrupted. A few pages per site that were already scheduled are still fetched. Existing results are kept. A crawl
/// that has ended is not changed.
#[utoipa::path(
    delete,
    path = "/crawl/{id}",
    operation_id = "cancel_crawl",
    tag = "Crawls",
    params(("id" = String, Path, description = "the id that POST /crawl returned", example = "crawl_018bcfe56800ffffffffffffffffffff", pattern = "^crawl_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the crawl as it is now", body = CrawlView),
        CallerProblems, SenderProblems, CrawlProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn cancel_crawl(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    identity.check_may_send()?;
    api.charge(&identity.caller, 1)?;
    parameters::refuse_any(query.as_deref())?;
    let id = crawl_id(id)?;
    api.cancel_crawl(id, &identity).await?;
    api.respond_with_crawl(id, &identity).await
}

/// Parses the crawl in the path. A path that is not valid UTF-8 is not an id, either.
fn crawl_id(name: PathName) -> Result<CrawlId, Problem> {
    let id = name.ok().and_then(|Path(text)| text.parse().ok());
    id.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))
}

impl Api {
    /// The crawls of the store; a problem if it cannot hold any.
    pub(super) fn crawl_store(&self) -> Result<&CrawlApi, Problem> {
        self.on.crawls.as_ref().ok_or_else(|| Problem::new(ProblemKind::NOT_SUPPORTED))
    }

    pub(super) async fn start_crawl(
        &self,
        identity: &Identity,
        request: CrawlRequest,
        idempotency: Option<Idempotency>,
    ) -> Result<CrawlId, Problem> {
        let CrawlApi { store, starts } = self.crawl_store()?;
        let CrawlRequest { spec, callback_url } = request;
        let id = self.new_ids(1)?.first().copied().map(CrawlId::from);
        let id = id.ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?;
        let reads_sitemaps = spec.sitemaps != Sitemaps::Off && spec.scope != ScopeKind::Page;
        let caller = identity.caller.name.clone();
        let audit = AuditEntry {
            at: self.on.clock.wall(),
            caller: Some(caller.clone()),
            action: "start_crawl".to_owned(),
            detail: id.to_string(),
            from: identity.from.clone(),
        };
        let new = NewCrawl {
            id,
            caller,
            starts: starts(&spec.urls, reads_sitemaps),
            spec,
            callback_url,
            idempotency,
            max_open: self.rules.max_crawls,
            audit,
        };
        match self.stored(store.start(new).await)? {
            CrawlStarted::Started(id) => Ok(id),
            CrawlStarted::KeyUsedOtherwise => Err(Problem::new(ProblemKind::KEY_REUSED)),
            CrawlStarted::TooManyOpen => {
                Err(Problem::new(ProblemKind::TOO_MANY_CRAWLS).retry_after(TOO_MANY_RETRY_SECONDS))
            }
            CrawlStarted::StoreFull => {
                let detail = format!(
                    "All callers together have {MAX_OPEN_CRAWLS} unfinished crawls. Start this one when another has \
                     ended."
                );
                let problem = Problem::new(ProblemKind::BUSY).saying(detail);
                Err(problem.retry_after(TOO_MANY_RETRY_SECONDS))
            }
        }
    }

    pub(super) async fn crawl(
        &self,
        id: CrawlId,
        identity: &Identity,
    ) -> Result<MessageCrawl, Problem> {
        let found = self.stored(self.crawl_store()?.store.crawl(id, identity.sees()).await)?;
        found.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))
    }

    async fn respond_with_crawl(&self, id: CrawlId, identity: &Identity) -> ApiResult {
        let crawl = self.crawl(id, identity).await?;
        let cut_off = self.stored(self.crawl_store()?.store.cut_off(id, MAX_CUT_OFF).await)?;
        Ok(json(&CrawlView::of(&crawl).with_cut_off(cut_off)))
    }

    /// Cancels a crawl, and removes its waiting pages.
    pub(super) async fn cancel_crawl(
        &self,
        id: CrawlId,
        identity: &Identity,
    ) -> Result<(), Problem> {
        let store = &self.crawl_store()?.store;
        if !self.stored(store.cancel(id, identity.sees()).await)? {
            return Err(Problem::new(ProblemKind::NOT_FOUND));
        }
        let caller = &identity.caller.name;
        let noted = self.on.audit.note(caller, "cancel_crawl", id.to_string(), &identity.from);
        self.stored(noted.await)?;
        for _ in 0..MAX_CANCEL_STEPS {
            if self.stored(store.stop_some(id).await)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Results of a crawl, the cursor after which to continue, and the memory reserved for them.
    pub(super) async fn crawl_page(
        &self,
        id: CrawlId,
        identity: &Identity,
        after: Option<i64>,
        limit: u32,
    ) -> Result<(Vec<OutboxMessage>, i64, Held), Problem> {
        let store = &self.crawl_store()?.store;
        let mut share = self.memory.take(MAX_PAGE_BYTES).await?;
        let most = OutboxMost { results: limit, bytes: MAX_PAGE_BYTES };
        let page = store.results(id, identity.sees(), after, most).await;
        match self.stored(page)? {
            Some(OutboxPage::Results { results, next }) => {
                share.shrink_to(results.iter().map(|one| one.result.text_bytes()).sum());
                Ok((results, next, share))
            }
            Some(OutboxPage::Gone { oldest }) => Err(Problem::gone(oldest)),
            None => Err(Problem::new(ProblemKind::NOT_FOUND)),
        }
    }
}
