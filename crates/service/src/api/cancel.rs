//! `DELETE /messages/{id}`: a caller cancels its own message.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use fetchwell_engine::ports::oversight::{Acted, Action, ActionResult};

use super::identity::Identity;
use super::messages::message_id;
use super::parameters::refuse_any;
use super::problems::{
    CallerProblems, InFlightProblems, MessageProblems, QueryProblems, SenderProblems, StoreProblems,
};
use super::{Api, ApiResult, PathName};
use crate::problem::{Problem, ProblemKind};
use crate::views::messages::MessageView;

/// Cancel a message
///
/// A message that waits ends at once, with a result with the status `cancelled`; nothing is fetched for it any more. A
/// message that has ended stays as it is, so it does no harm to cancel a message twice: look at the `status` of its
/// result. A message that is being fetched at this moment is not cancelled, and the response is a 409.
#[utoipa::path(
    delete,
    path = "/messages/{id}",
    operation_id = "cancel",
    tag = "Messages",
    params(("id" = String, Path, description = "the message_id that /fetch returned", example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the message, which has ended now or had ended before", body = MessageView),
        CallerProblems, SenderProblems, MessageProblems, InFlightProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    identity.check_may_send()?;
    api.charge(&identity.caller, 1)?;
    refuse_any(query.as_deref())?;
    let id = message_id(id)?;
    let not_found = || Problem::new(ProblemKind::NOT_FOUND);
    let held = api.message(id, identity.sees()).await?.ok_or_else(not_found)?;
    if held.message.outbox.is_some() {
        return Ok(held.into_response());
    }
    let found = held.message;
    let acted = api.on.oversight.act_on(Action::Cancel, &[id], None).await;
    let result = api.stored(acted)?.pop().unwrap_or(ActionResult::Unknown);
    // The result of one's own message says that it was cancelled; only an act on another's needs an entry.
    if found.caller != identity.caller.name {
        let mut acted = Acted::default();
        acted.enter(id, result);
        let text = id.to_string();
        let name = &identity.caller.name;
        let noted = api.on.audit.note_act(name, Action::Cancel, &acted, &text, &identity.from);
        api.stored(noted.await)?;
    }
    if result == ActionResult::InFlight {
        return Err(
            Problem::new(ProblemKind::IN_FLIGHT).about(Some(found.url), Some(found.correlation_id))
        );
    }
    let ended = api.message(id, identity.sees()).await?.ok_or_else(not_found)?;
    Ok(ended.into_response())
}
