//! Who is at work on the store, what was done by whom, and how every queue stands.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_engine::ports::oversight::{InstanceView, QueueLedger};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::Asked;
use crate::api::Api;
use crate::api::identity::Identity;
use crate::api::problem::{Problem, ProblemBody};
use crate::api::routes::json;

/// Who is at work.
#[derive(Debug, Serialize, ToSchema)]
struct InstancesView {
    /// Each instance of each queue.
    instances: Vec<InstanceDetails>,
}

/// Who is at work on the store
#[utoipa::path(
    get,
    path = "/operator/instances",
    operation_id = "operator_instances",
    tag = "Oversight",
    responses(
        (status = 200, description = "each instance of each queue", body = InstancesView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for viewers and operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn instances(
    State(api): State<Arc<Api>>,
    identity: Identity,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let instances = api.stored(api.oversight.instances().await)?;
    let instances = instances.into_iter().map(InstanceDetails::from).collect();
    Ok(json(&InstancesView { instances }))
}

/// What was done by whom.
#[derive(Debug, Serialize, ToSchema)]
struct AuditView {
    /// The newest first.
    entries: Vec<AuditLine>,
}

/// What was done by whom
#[utoipa::path(
    get,
    path = "/operator/audit",
    operation_id = "operator_audit",
    tag = "Oversight",
    params(("limit" = Option<u32>, Query, description = "at most so many: 1 to 200, without it 50", minimum = 1, maximum = 200)),
    responses(
        (status = 200, description = "the newest first", body = AuditView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for viewers and operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn audit(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let entries = api.stored(api.inbox.audit_trail(asked.limit).await)?;
    let entries = entries.into_iter().map(AuditLine::from).collect();
    Ok(json(&AuditView { entries }))
}

/// How every queue stands.
#[derive(Debug, Serialize, ToSchema)]
struct LedgerView {
    /// By name.
    queues: Vec<QueueView>,
}

/// How many jobs stand where, in every queue of the store
#[utoipa::path(
    get,
    path = "/operator/ledger",
    operation_id = "operator_ledger",
    tag = "Oversight",
    responses(
        (status = 200, description = "accepted = done + skipped + queued + in_flight + delayed + dead", body = LedgerView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for viewers and operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn ledger(
    State(api): State<Arc<Api>>,
    identity: Identity,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let ledgers = api.stored(api.oversight.ledgers().await)?;
    Ok(json(&LedgerView { queues: ledgers.into_iter().map(QueueView::from).collect() }))
}

/// A process at work on a queue.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Instance)]
pub(crate) struct InstanceDetails {
    /// Its number: no two instances ever have the same.
    pub(crate) epoch: i64,
    /// The queue.
    pub(crate) queue: String,
    /// The machine, and the number of the process.
    #[schema(required)]
    pub(crate) who: Option<String>,
    /// Since when.
    #[schema(required, format = DateTime)]
    pub(crate) since: Option<String>,
    /// When it last said that it is there.
    #[schema(required, format = DateTime)]
    pub(crate) last_heartbeat: Option<String>,
    /// When it is taken for dead if it says so no more.
    #[schema(format = DateTime)]
    pub(crate) expires_at: String,
    /// How many jobs it holds.
    pub(crate) in_flight: u64,
}

impl From<InstanceView> for InstanceDetails {
    fn from(instance: InstanceView) -> InstanceDetails {
        InstanceDetails {
            epoch: instance.epoch,
            queue: instance.queue,
            who: instance.who,
            since: instance.since.map(rfc3339),
            last_heartbeat: instance.last_heartbeat.map(rfc3339),
            expires_at: rfc3339(instance.expires_at),
            in_flight: instance.in_flight,
        }
    }
}

/// A queue: accepted = done + skipped + queued + in_flight + delayed + dead.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QueueLedger)]
pub(crate) struct QueueView {
    /// Its name.
    pub(crate) queue: String,
    /// All that ever came in.
    pub(crate) accepted: i64,
    /// With a result.
    pub(crate) done: i64,
    /// Not to be fetched, or taken away.
    pub(crate) skipped: i64,
    /// Waiting.
    pub(crate) queued: i64,
    /// An instance has it.
    pub(crate) in_flight: i64,
    /// Waiting for a time.
    pub(crate) delayed: i64,
    /// Given up.
    pub(crate) dead: i64,
    /// Whether the sum is right.
    pub(crate) balances: bool,
}

impl From<QueueLedger> for QueueView {
    fn from(QueueLedger { queue, ledger }: QueueLedger) -> QueueView {
        QueueView {
            queue,
            accepted: ledger.accepted,
            done: ledger.done,
            skipped: ledger.skipped,
            queued: ledger.queued,
            in_flight: ledger.in_flight,
            delayed: ledger.delayed,
            dead: ledger.dead,
            balances: ledger.balances(),
        }
    }
}

/// Something that was done.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditLine {
    /// When.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// By whom; null: nobody knows.
    #[schema(required)]
    pub(crate) caller: Option<String>,
    /// What, in one word.
    pub(crate) action: String,
    /// On what, in words.
    pub(crate) detail: String,
    /// From which address.
    pub(crate) from: String,
}

impl From<AuditEntry> for AuditLine {
    fn from(entry: AuditEntry) -> AuditLine {
        let AuditEntry { at, caller, action, detail, from } = entry;
        AuditLine { at: rfc3339(at), caller, action, detail, from }
    }
}
