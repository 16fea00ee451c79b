//! The running instances, the audit log, and the ledger of every queue.

use axum::extract::RawQuery;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::Asked;
use crate::api::ApiResult;
use crate::api::identity::Viewer;
use crate::api::problems::{CallerProblems, QueryProblems, StoreProblems, ViewerProblems};
use crate::api::respond::json;
use crate::views::standing::{AuditLine, InstanceDetails, QueueView};

/// The running instances.
#[derive(Debug, Serialize, ToSchema)]
struct InstancesView {
    /// Each instance of each queue.
    instances: Vec<InstanceDetails>,
}

/// List the running instances
#[utoipa::path(
    get,
    path = "/operator/instances",
    operation_id = "operator_instances",
    tag = "Oversight",
    responses(
        (status = 200, description = "each instance of each queue", body = InstancesView),
        CallerProblems, ViewerProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn instances(Viewer(api): Viewer) -> ApiResult {
    let instances = api.stored(api.on.oversight.instances().await)?;
    let instances = instances.into_iter().map(InstanceDetails::from).collect();
    Ok(json(&InstancesView { instances }))
}

/// The audit log: who did what.
#[derive(Debug, Serialize, ToSchema)]
struct AuditView {
    /// The entries, newest first.
    entries: Vec<AuditLine>,
}

/// List the audit log
#[utoipa::path(
    get,
    path = "/operator/audit",
    operation_id = "operator_audit",
    tag = "Oversight",
    params(("limit" = Option<u32>, Query, description = "maximum number of results, 1 to 200 (default 50)", minimum = 1, maximum = 200)),
    responses(
        (status = 200, description = "newest first", body = AuditView),
        CallerProblems, ViewerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn audit(Viewer(api): Viewer, RawQuery(query): RawQuery) -> ApiResult {
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let entries = api.stored(api.on.audit.latest(asked.limit).await)?;
    let entries = entries.into_iter().map(AuditLine::from).collect();
    Ok(json(&AuditView { entries }))
}

/// The jobs of every queue.
#[derive(Debug, Serialize, ToSchema)]
struct LedgerView {
    /// The queues, sorted by name.
    queues: Vec<QueueView>,
}

/// Count the jobs of every queue by state
#[utoipa::path(
    get,
    path = "/operator/ledger",
    operation_id = "operator_ledger",
    tag = "Oversight",
    responses(
        (status = 200, description = "accepted = done + skipped + queued + in_flight + delayed + dead", body = LedgerView),
        CallerProblems, ViewerProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn ledger(Viewer(api): Viewer) -> ApiResult {
    let ledgers = api.stored(api.on.oversight.ledgers().await)?;
    Ok(json(&LedgerView { queues: ledgers.into_iter().map(QueueView::from).collect() }))
}
