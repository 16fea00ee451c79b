//! The HTTP API of `fetchwell serve`.
//!
//! | file | |
//! |---|---|
//! | `routes` | which path leads where |
//! | `submit`, `messages`, `outbox`, `events`, `public` | what each path does |
//! | `oversight` | what viewers see and operators do: `/operator/…` |
//! | `sites` | how sites stand, and orders to them: `/sites/…` |
//! | `identity` | who calls, and what they may do |
//! | `body`, `batch`, `fields`, `values`, `times`, `prefer`, `parameters` | what a request says |
//! | `accept`, `waiting` | what comes of it: a commit, and a result |
//! | `openapi`, `problems`, `docs`, `metrics` | what is told of the API itself |
//! | `memory` | what requests and answers may hold; connections are in [`crate::server`] |
//!
//! What an answer says is in [`crate::views`] and `problem`, which tokens there are in [`crate::auth`].

mod accept;
mod batch;
mod body;
mod docs;
mod events;
mod fields;
mod identity;
mod json;
mod memory;
mod messages;
mod metrics;
mod openapi;
mod outbox;
mod oversight;
mod parameters;
mod prefer;
mod problems;
mod public;
mod routes;
mod sites;
mod submit;
mod times;
mod values;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::inbox::{Bell, Caller, Inbox, Message, MessageId, TokenHash};
use fetchwell_engine::ports::oversight::Oversight;
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
use fetchwell_policy::address::AddressGuard;
use fetchwell_telemetry::metrics::Measures;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::audit::{AuditLog, AuthFailures};
use crate::auth::{Allowances, KnownTokens};
use crate::problem::{Kind, Problem};
use crate::sites::SiteDesk;
use memory::Memory;

pub use metrics::Metrics;
pub(crate) use routes::router;

/// How long callers are asked to wait for a store that is down.
const STORE_RETRY_SECONDS: u64 = 5;

/// What the API goes by.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How long a message is worth having that does not say so itself.
    pub default_deadline: Duration,
    /// The largest body of a batch.
    pub max_batch_body_bytes: u64,
    /// Whether metrics are for everybody.
    pub public_metrics: bool,
    /// Messages and questions of one caller per second; 0: any number.
    pub caller_rate: f64,
    /// How many may come at once.
    pub caller_burst: u32,
}

/// All that the handlers share.
pub struct Api {
    inbox: Arc<dyn Inbox>,
    oversight: Arc<dyn Oversight>,
    sites: Arc<SiteDesk>,
    results: Bell,
    clock: Clock,
    guard: AddressGuard,
    rules: Rules,
    metrics: Arc<Metrics>,
    measures: Arc<Measures>,
    audit: AuditLog,
    auth_failures: Arc<AuthFailures>,
    known_tokens: KnownTokens,
    allowances: Allowances,
    memory: Memory,
    readiness: public::Readiness,
    health: Arc<StoreHealth>,
    /// Ends whatever waits.
    stop: CancellationToken,
}

/// What an [`Api`] is made of.
pub struct Foundation {
    pub inbox: Arc<dyn Inbox>,
    pub oversight: Arc<dyn Oversight>,
    pub sites: Arc<SiteDesk>,
    pub results: Bell,
    pub clock: Clock,
    pub guard: AddressGuard,
    pub metrics: Arc<Metrics>,
    /// What the flows do.
    pub measures: Arc<Measures>,
    pub audit: AuditLog,
    /// Where failed authentications go.
    pub auth_failures: Arc<AuthFailures>,
    /// Which calls to the store fail.
    pub health: Arc<StoreHealth>,
    pub stop: CancellationToken,
}

impl Api {
    /// An API on this foundation.
    pub fn new(on: Foundation, rules: Rules) -> Arc<Api> {
        Arc::new(Api {
            inbox: on.inbox,
            oversight: on.oversight,
            sites: on.sites,
            results: on.results,
            clock: on.clock,
            guard: on.guard,
            metrics: on.metrics,
            measures: on.measures,
            audit: on.audit,
            auth_failures: on.auth_failures,
            known_tokens: KnownTokens::default(),
            allowances: Allowances::new(rules.caller_rate, rules.caller_burst),
            memory: Memory::default(),
            readiness: public::Readiness::default(),
            health: on.health,
            stop: on.stop,
            rules,
        })
    }

    /// Counts `count` messages or questions against a caller's own limit.
    fn charge(&self, caller: &Caller, count: usize) -> Result<(), Problem> {
        self.allowances.take(&caller.name, count).map_err(|wait| {
            Problem::new(Kind::TooManyRequests).retry_after(wait.as_secs_f64().ceil() as u64)
        })
    }

    async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, Problem> {
        if let Some(caller) = self.known_tokens.get(token) {
            return Ok(Some(caller));
        }
        let asked_at = Instant::now();
        let caller = self.stored(self.inbox.caller_of(token).await)?;
        if let Some(caller) = &caller {
            self.known_tokens.put(token, caller, asked_at);
        }
        Ok(caller)
    }

    async fn message(&self, id: MessageId, of: Option<&str>) -> Result<Option<Message>, Problem> {
        self.stored(self.inbox.message(id, of).await)
    }

    /// What the store said. Its errors are for the log: callers learn whether it is worth trying again.
    fn stored<T>(&self, answer: Result<T, StoreError>) -> Result<T, Problem> {
        answer.map_err(|fault| {
            self.health.failed_once(StoreCall::Answer, &fault);
            match fault.kind() {
                StoreErrorKind::Bug => Problem::new(Kind::Internal),
                StoreErrorKind::TooLarge => Problem::new(Kind::TooLarge)
                    .saying("The store cannot hold a message of this size."),
                StoreErrorKind::Transient
                | StoreErrorKind::Corrupt
                | StoreErrorKind::Incompatible => {
                    Problem::new(Kind::StoreUnavailable).retry_after(STORE_RETRY_SECONDS)
                }
            }
        })
    }
}
