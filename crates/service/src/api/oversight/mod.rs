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
use super::identity::Identity;
use crate::problem::Problem;

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

impl Api {
    /// Checks that the caller may see the messages of all callers, and charges the request.
    pub(super) fn admit(&self, identity: &Identity) -> Result<(), Problem> {
        identity.check_may_look()?;
        self.charge(&identity.caller, 1)
    }
}
