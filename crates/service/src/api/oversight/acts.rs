//! Actions of operators on messages: `POST /operator/messages/…`.

use axum::extract::Request;
use fetchwell_engine::ports::oversight::{Acted, Action};
use serde::Deserialize;

use super::asked_acts::{Matching, Named};
use crate::api::identity::{ActingOperator, Identity};
use crate::api::problems::{
    BodyProblems, CallerProblems, InvalidFieldProblems, OperatorProblems, PartlyDoneProblems,
    SizeProblems, StoreProblems,
};
use crate::api::respond::json;
use crate::api::{ApiResult, body};
use crate::problem::{FieldError, Problem};
use crate::views::oversight::ActedView;

const MAX_BODY_BYTES: u64 = 64 << 10;

/// Retry messages
///
/// A finished message is sent again as a new message, with the same caller, URL, options and
/// correlation id, once; its result stays. A delayed message becomes due now.
#[utoipa::path(
    post,
    path = "/operator/messages/retry",
    operation_id = "operator_retry",
    tag = "Oversight",
    request_body = Named,
    responses(
        (status = 200, description = "the result for each message", body = ActedView),
        CallerProblems, OperatorProblems, BodyProblems, SizeProblems, InvalidFieldProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn retry(operator: ActingOperator, request: Request) -> ApiResult {
    operator.act_on_named(Action::Retry, request).await
}

/// Cancel waiting messages
///
/// Each ends with a result with the status `cancelled`. A message in flight is not changed, and the response says so.
#[utoipa::path(
    post,
    path = "/operator/messages/cancel",
    operation_id = "operator_cancel",
    tag = "Oversight",
    request_body = Named,
    responses(
        (status = 200, description = "the result for each message", body = ActedView),
        CallerProblems, OperatorProblems, BodyProblems, SizeProblems, InvalidFieldProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn cancel(operator: ActingOperator, request: Request) -> ApiResult {
    operator.act_on_named(Action::Cancel, request).await
}

/// Retry all matching messages
///
/// Applies to messages that matched at a given time, and to none that were accepted or ended later.
#[utoipa::path(
    post,
    path = "/operator/messages/retry-matching",
    operation_id = "operator_retry_matching",
    tag = "Oversight",
    request_body = Matching,
    responses(
        (status = 200, description = "the number of messages, and the result for the first ones", body = ActedView),
        CallerProblems, OperatorProblems, BodyProblems, SizeProblems, InvalidFieldProblems, PartlyDoneProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn retry_matching(operator: ActingOperator, request: Request) -> ApiResult {
    operator.act_on_matching(Action::Retry, request).await
}

/// Cancel all matching messages
///
/// Applies to waiting messages that matched at a given time, and to none that were accepted or ended later.
#[utoipa::path(
    post,
    path = "/operator/messages/cancel-matching",
    operation_id = "operator_cancel_matching",
    tag = "Oversight",
    request_body = Matching,
    responses(
        (status = 200, description = "the number of messages, and the result for the first ones", body = ActedView),
        CallerProblems, OperatorProblems, BodyProblems, SizeProblems, InvalidFieldProblems, PartlyDoneProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn cancel_matching(operator: ActingOperator, request: Request) -> ApiResult {
    operator.act_on_matching(Action::Cancel, request).await
}

impl ActingOperator {
    async fn act_on_named(&self, act: Action, request: Request) -> ApiResult {
        let api = &self.api;
        let named: Named = self.read_act(request).await?;
        let ids = named.messages()?;
        let deeds = api.stored(api.on.oversight.act_on(act, &ids, None).await)?;
        let mut acted = Acted::default();
        for (id, deed) in ids.into_iter().zip(deeds) {
            acted.enter(id, deed);
        }
        self.audited(act, &acted, &named.ids.join(" ")).await
    }

    async fn act_on_matching(&self, act: Action, request: Request) -> ApiResult {
        let api = &self.api;
        let matching: Matching = self.read_act(request).await?;
        let what = format!("messages that match {:?} as of {}", matching.filter, matching.as_of);
        let most = matching.most.map_or(usize::MAX, |most| most as usize);
        let filter = matching.checked()?;
        let acted = api.stored(api.on.oversight.act(act, &filter, most).await)?;
        self.audited(act, &acted, &what).await
    }

    /// Reads the body of an action, and charges the request.
    async fn read_act<T: for<'de> Deserialize<'de>>(&self, request: Request) -> Result<T, Problem> {
        let (parts, body) = request.into_parts();
        let whole = body::read(&self.api.memory, &parts.headers, body, MAX_BODY_BYTES).await?;
        body::json(&whole.bytes)?; // Refuses duplicate keys.
        self.api.charge(&self.identity.caller, 1)?;
        serde_json::from_slice(&whole.bytes)
            .map_err(|fault| Problem::invalid(vec![FieldError::at("", fault.to_string())]))
    }

    /// The response to an action, once it is in the audit log; `what` says which messages it was for.
    async fn audited(&self, act: Action, acted: &Acted, what: &str) -> ApiResult {
        let Identity { caller, from, .. } = &self.identity;
        let api = &self.api;
        api.stored(api.on.audit.note_act(&caller.name, act, acted, what, from).await)?;
        Ok(json(&ActedView::from(acted)))
    }
}
