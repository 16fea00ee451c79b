//! `GET /messages/{id}`.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use fetchwell_engine::ports::inbox::MessageId;

use super::Api;
use super::identity::Identity;
use super::problems::{CallerProblems, MessageProblems, StoreProblems};
use super::routes::json;
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
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    api.charge(&identity.caller, 1)?;
    // A path that is not valid UTF-8 is not an id, either.
    let id = id.ok().and_then(|Path(text)| text.parse::<MessageId>().ok());
    let found = match id {
        Some(id) => api.message(id, identity.sees()).await?,
        None => None,
    };
    let message = found.ok_or_else(|| Problem::new(ProblemKind::NotFound))?;
    Ok(json(&MessageView::from(message)))
}
