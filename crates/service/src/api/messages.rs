//! `GET /messages/{id}`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use fetchwell_engine::ports::inbox::MessageId;

use super::identity::Identity;
use super::parameters::{WAIT, seconds_to_wait};
use super::problems::{CallerProblems, MessageProblems, QueryProblems, StoreProblems};
use super::{Api, ApiResult, PathName, parameters, waiting};
use crate::problem::{Problem, ProblemKind};
use crate::views::messages::MessageView;

/// Get a message and its result
///
/// A caller sees its own messages; a viewer and an operator see all. The response is the same for
/// messages that do not exist and for those of other callers. With `wait=N` (at most 60 seconds) the response waits for
/// the result; if there is none in time, `outbox` is null.
#[utoipa::path(
    get,
    path = "/messages/{id}",
    tag = "Messages",
    params(
        ("id" = String, Path, description = "the message_id that /fetch returned", example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$"),
        ("wait" = Option<u32>, Query, description = "seconds to wait for the result, 0 to 60 (default 0)", minimum = 0, maximum = 60),
    ),
    responses(
        (status = 200, description = "the message, with its result when there is one", body = MessageView),
        CallerProblems, MessageProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn message(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    let wait = wait_in(query.as_deref().unwrap_or_default())?;
    let id = message_id(id)?;
    let not_found = || Problem::new(ProblemKind::NOT_FOUND);
    let mut held = api.message(id, identity.sees()).await?.ok_or_else(not_found)?;
    if held.message.outbox.is_none() && !wait.is_zero() {
        // A viewer may wait for the message of any caller, whose results ring for that caller.
        let caller = held.message.caller;
        held = waiting::result_of(&api, &caller, id, wait).await?.ok_or_else(not_found)?;
        identity.check_again(&api).await?;
    }
    Ok(held.into_response())
}

fn wait_in(query: &str) -> Result<Duration, Problem> {
    let mut wait = Duration::ZERO;
    parameters::read_known(query, &["wait"], |_, value| {
        wait = seconds_to_wait(value).ok_or(("wait", WAIT))?;
        Ok(())
    })?;
    Ok(wait)
}

/// Parses the message in the path. A path that is not valid UTF-8 is not an id, either.
pub(super) fn message_id(name: PathName) -> Result<MessageId, Problem> {
    let id = name.ok().and_then(|Path(text)| text.parse().ok());
    id.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))
}
