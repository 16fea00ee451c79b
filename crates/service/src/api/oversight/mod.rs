//! What viewers see and operators do: `/operator/…`.
//!
//! `messages` shows everybody's, `standing` who is at work and how the queues stand; `acts` is what operators do, and
//! `asked_acts` what they say for that. `query` reads filters.

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

/// All that is for viewers and operators.
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
    /// Lets in who may see everybody's messages.
    pub(super) fn admit(&self, identity: &Identity) -> Result<(), Problem> {
        identity.check_may_look()?;
        self.charge(&identity.caller, 1)
    }
}
