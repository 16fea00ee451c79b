//! Endpoints for viewers and operators: `/operator/…`.
//!
//! `messages` shows the messages of all callers, `standing` the instances, the audit log and the ledgers of the queues.
//! `acts` holds the actions of operators, `asked_acts` their request bodies. `query` reads filters.

mod acts;
mod asked_acts;
mod messages;
mod query;
mod standing;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;

/// The routes for viewers and operators.
pub(super) fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(messages::messages))
        .routes(routes!(messages::count))
        .routes(routes!(messages::message))
        .routes(routes!(messages::failures))
        .routes(routes!(standing::instances))
        .routes(routes!(standing::audit))
        .routes(routes!(standing::ledger))
        .routes(routes!(acts::retry))
        .routes(routes!(acts::cancel))
        .routes(routes!(acts::retry_matching))
        .routes(routes!(acts::cancel_matching))
}
