//! `GET /messages/{id}`.

use std::sync::Arc;

use axum::extract::{Path, State};
use fetchwell_engine::ports::inbox::MessageId;

use super::identity::Identity;
use super::problems::{CallerProblems, MessageProblems, StoreProblems};
use super::respond::json;
use super::{Api, ApiResult, PathName};
use crate::problem::{Problem, ProblemKind};
use crate::views::messages::MessageView;

/// Get a message and its result
///
/// A caller sees its own messages; a viewer and an operator see all. The response is the same for
/// messages that do not exist and for those of other callers.
#[utoipa::path(
    get,
    path = "/messages/{id}",
    tag = "Messages",
    params(("id" = String, Path, description = "the message_id that /fetch returned", example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the message, with its result when there is one", body = MessageView),
        CallerProblems, MessageProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn message(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    let found = api.message(message_id(id)?, identity.sees()).await?;
    let message = found.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))?;
    Ok(json(&MessageView::from(message)))
}

/// Parses the message in the path. A path that is not valid UTF-8 is not an id, either.
pub(super) fn message_id(name: PathName) -> Result<MessageId, Problem> {
    let id = name.ok().and_then(|Path(text)| text.parse().ok());
    id.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))
}
