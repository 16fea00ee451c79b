//! Actions of operators on messages: `POST /operator/messages/…`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use fetchwell_engine::ports::oversight::{Acted, Action};
use serde::Deserialize;

use super::asked_acts::{Matching, Named};
use crate::api::identity::Identity;
use crate::api::problems::{
    BodyProblems, CallerProblems, InvalidFieldProblems, OperatorProblems, PartlyDoneProblems,
    SizeProblems, StoreProblems,
};
use crate::api::routes::json;
use crate::api::{Api, body};
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
pub(super) async fn retry(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_named(&identity, Action::Retry, request).await
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
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_named(&identity, Action::Cancel, request).await
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
pub(super) async fn retry_matching(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_matching(&identity, Action::Retry, request).await
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
pub(super) async fn cancel_matching(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_matching(&identity, Action::Cancel, request).await
}

impl Api {
    async fn act_on_named(
        &self,
        identity: &Identity,
        act: Action,
        request: Request,
    ) -> Result<Response, Problem> {
        let named: Named = self.read_act(identity, request).await?;
        let ids = named.messages()?;
        let deeds = self.stored(self.oversight.act_on(act, &ids, None).await)?;
        let mut acted = Acted::default();
        for (id, deed) in ids.into_iter().zip(deeds) {
            acted.enter(id, deed);
        }
        self.audit_act(identity, act, &acted, &named.ids.join(" ")).await?;
        Ok(json(&ActedView::from(&acted)))
    }

    async fn act_on_matching(
        &self,
        identity: &Identity,
        act: Action,
        request: Request,
    ) -> Result<Response, Problem> {
        let matching: Matching = self.read_act(identity, request).await?;
        let filter = matching.filter()?;
        let most = matching.most.map_or(usize::MAX, |most| most as usize);
        let acted = self.stored(self.oversight.act(act, &filter, most).await)?;
        let what = format!("messages that match {:?} as of {}", matching.filter, matching.as_of);
        self.audit_act(identity, act, &acted, &what).await?;
        Ok(json(&ActedView::from(&acted)))
    }

    /// Reads the body of an action, after checking that the caller may act.
    async fn read_act<T: for<'de> Deserialize<'de>>(
        &self,
        identity: &Identity,
        request: Request,
    ) -> Result<T, Problem> {
        identity.check_may_act()?;
        let (parts, body) = request.into_parts();
        let whole = body::read(&self.memory, &parts.headers, body, MAX_BODY_BYTES).await?;
        body::json(&whole.bytes)?; // Refuses duplicate keys.
        self.charge(&identity.caller, 1)?;
        serde_json::from_slice(&whole.bytes)
            .map_err(|fault| Problem::invalid(vec![FieldError::at("", fault.to_string())]))
    }

    async fn audit_act(
        &self,
        identity: &Identity,
        act: Action,
        acted: &Acted,
        what: &str,
    ) -> Result<(), Problem> {
        let Identity { caller, from, .. } = identity;
        self.stored(self.audit.note_act(&caller.name, act, acted, what, from).await)
    }
}
