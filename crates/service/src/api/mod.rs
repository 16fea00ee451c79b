//! The HTTP API of `fetchwell serve`.
//!
//! | file | |
//! |---|---|
//! | `routes` | the routing table |
//! | `submit`, `send_batch`, `messages`, `message_body`, `sent`, `cancel`, `batches`, `crawls`, `outbox`, `events`, `reader`, `public` | the handlers |
//! | `oversight` | handlers for viewers and operators: `/operator/…` |
//! | `sites` | the state of sites and orders for them: `/sites/…` |
//! | `callers` | callers and their tokens, for operators: `/operator/callers` |
//! | `webhooks` | deliveries to webhooks: `/webhooks/…` |
//! | `identity` | the caller and its permissions |
//! | `body`, `fields_of_body`, `batch`, `new_crawl`, `fields`, `values`, `times`, `prefer`, `parameters` | parsing of requests |
//! | `firecrawl` | the endpoints of Firecrawl: `/v1/…` and `/v2/…` |
//! | `result_fields`, `compression` | smaller responses: fewer fields, compressed JSON |
//! | `estimate` | when a batch is likely to end |
//! | `accept`, `waiting`, `pages`, `site_map` | committing messages, waiting for results, reading one page, listing the pages of a site |
//! | `memory`, `held_message` | the memory budget for bodies and results; limits on connections are in [`crate::server`] |
//! | `mcp` | the tools of the Model Context Protocol |
//! | `openapi`, `notifications`, `problems`, `docs`, `metrics` | documentation and metrics of the API |
//!
//! The JSON of responses is in [`crate::views`] and `problem`, tokens are in [`crate::auth`].

mod accept;
mod batch;
mod batches;
mod body;
mod callers;
mod cancel;
mod compression;
mod crawls;
mod docs;
mod estimate;
mod events;
mod fields;
mod fields_of_body;
mod firecrawl;
mod held_message;
mod identity;
mod json;
pub mod mcp;
mod memory;
mod message_body;
mod messages;
mod metrics;
mod new_crawl;
mod notifications;
mod openapi;
mod outbox;
mod oversight;
mod pages;
mod parameters;
mod prefer;
mod problems;
mod public;
mod reader;
mod respond;
mod result_fields;
mod routes;
mod send_batch;
mod sent;
mod site_map;
mod sites;
mod submit;
mod times;
mod values;
mod waiting;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::GateRules;
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::inbox::{Caller, Inbox, ResultNotifier, TokenHash};
use fetchwell_engine::ports::message_batches::MessageBatches;
use fetchwell_engine::ports::oversight::Oversight;
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
use fetchwell_policy::address::AddressGuard;
use fetchwell_telemetry::metrics::Metrics;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::audit::{AuditLog, AuthFailures, CachedReads};
use crate::auth::{Allowances, KnownTokens, TokenUses};
use crate::callers::CallerService;
use crate::problem::{Problem, ProblemKind};
use crate::sites::SiteService;
use mcp::Lookups;
use memory::Memory;

pub use crawls::{CrawlApi, CrawlStarts};
pub use metrics::ApiMetrics;
pub(crate) use routes::router;

/// The response of a handler.
type ApiResult = Result<Response, Problem>;

/// The name of a message or a site in the path; an error if it is not valid UTF-8.
type PathName = Result<Path<String>, PathRejection>;

/// How long callers are asked to wait for a store that is down.
const STORE_RETRY_SECONDS: u64 = 5;

/// The settings of the API.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The deadline of messages that do not set one.
    pub default_deadline: Duration,
    /// The maximum size of the body of a batch.
    pub max_batch_body_bytes: u64,
    /// The maximum size of a page that is fetched.
    pub max_page_bytes: u64,
    /// Whether `/metrics` needs no token.
    pub public_metrics: bool,
    /// Messages and other requests of one caller per second; 0 means no limit.
    pub caller_rate: f64,
    /// How many of these may arrive at once.
    pub caller_burst: u32,
    /// How long results are kept.
    pub retention: Duration,
    /// The maximum number of pages of a crawl.
    pub max_crawl_pages: u64,
    /// The maximum number of unfinished crawls of one caller.
    pub max_crawls: u32,
    /// The URL under which callers reach the API, without a slash at its end; `None`: the one of the request.
    pub public_url: Option<String>,
    /// Names of this server, besides its addresses, under which `/mcp` is reached.
    pub mcp_allowed_hosts: Vec<String>,
}

/// The state that the handlers share.
pub struct Api {
    /// What it is built on.
    on: Foundation,
    rules: Rules,
    known_tokens: KnownTokens,
    token_uses: TokenUses,
    allowances: Allowances,
    memory: Memory,
    readiness: public::Readiness,
    reads: CachedReads,
    outlooks: estimate::Outlooks,
    compression: compression::Compression,
}

/// The dependencies of an [`Api`].
pub struct Foundation {
    pub inbox: Arc<dyn Inbox>,
    pub batches: Arc<dyn MessageBatches>,
    /// `None` if the store cannot hold crawls.
    pub crawls: Option<CrawlApi>,
    pub oversight: Arc<dyn Oversight>,
    pub sites: Arc<SiteService>,
    pub callers: Arc<CallerService>,
    pub results: ResultNotifier,
    pub clock: Clock,
    pub guard: AddressGuard,
    /// The rules by which messages are fetched, for estimates.
    pub gate_rules: GateRules,
    pub metrics: Arc<ApiMetrics>,
    /// The metrics of the pipelines.
    pub process_metrics: Arc<Metrics>,
    pub audit: AuditLog,
    /// Collects failed authentications for the audit log.
    pub auth_failures: Arc<AuthFailures>,
    /// Tracks which calls to the store are failing.
    pub health: Arc<StoreHealth>,
    /// What the tools of `/mcp` ask the rest of the program.
    pub lookups: Arc<dyn Lookups>,
    /// Ends all waiting requests and streams.
    pub stop: CancellationToken,
}

impl Api {
    pub fn new(on: Foundation, rules: Rules) -> Arc<Api> {
        Arc::new(Api {
            reads: CachedReads::new(on.clock.clone()),
            on,
            known_tokens: KnownTokens::default(),
            token_uses: TokenUses::default(),
            allowances: Allowances::new(rules.caller_rate, rules.caller_burst),
            memory: Memory::default(),
            readiness: public::Readiness::default(),
            outlooks: estimate::Outlooks::default(),
            compression: compression::Compression::default(),
            rules,
        })
    }

    /// Writes the reads of stored pages to the audit log until `stop`.
    pub async fn keep_audit(&self, stop: &CancellationToken) {
        let due = |all| self.reads.due(all);
        self.on.audit.write_due(due, "reads of stored pages", stop).await;
    }

    /// Writes when tokens were last used, in the background, until `stop`.
    pub async fn keep_token_uses(&self, stop: &CancellationToken) {
        self.token_uses.write_to(&*self.on.inbox, stop).await;
    }

    /// Counts `count` messages or other requests against the caller's own limit.
    fn charge(&self, caller: &Caller, count: usize) -> Result<(), Problem> {
        self.allowances.take(&caller.name, count).map_err(|wait| {
            Problem::new(ProblemKind::TOO_MANY_REQUESTS)
                .retry_after(wait.as_secs_f64().ceil() as u64)
        })
    }

    /// Counts `count` further messages or queries of a request that has been charged as one. They delay later requests
    /// instead of failing this one halfway.
    fn charge_more(&self, caller: &Caller, count: usize) {
        self.allowances.take_more(&caller.name, count);
    }

    async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, Problem> {
        if let Some(caller) = self.known_tokens.get(token) {
            return Ok(Some(caller));
        }
        let asked_at = Instant::now();
        let caller = self.stored(self.on.inbox.caller_of(token).await)?;
        if let Some(caller) = &caller {
            self.known_tokens.put(token, caller, asked_at);
        }
        Ok(caller)
    }

    /// Turns a store error into a problem. Details go to the log only; callers learn whether a retry may help.
    fn stored<T>(&self, answer: Result<T, StoreError>) -> Result<T, Problem> {
        answer.map_err(|fault| {
            self.on.health.failed_once(StoreCall::Answer, &fault);
            match fault.kind() {
                StoreErrorKind::Bug => Problem::new(ProblemKind::INTERNAL),
                StoreErrorKind::TooLarge => Problem::new(ProblemKind::TOO_LARGE)
                    .saying("The store cannot hold a message of this size."),
                StoreErrorKind::Transient
                | StoreErrorKind::Corrupt
                | StoreErrorKind::Incompatible => {
                    Problem::new(ProblemKind::STORE_UNAVAILABLE).retry_after(STORE_RETRY_SECONDS)
                }
            }
        })
    }
}
