//! Callers and their tokens, for operators: `/operator/callers`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use fetchwell_engine::ports::inbox::{Caller, Role};
use fetchwell_policy::units::parse_duration;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::identity::{ActingOperator, Identity, Viewer};
use super::problems::{
    BodyProblems, CallerProblems, ConflictProblems, InvalidFieldProblems, NamedCallerProblems,
    OperatorProblems, SizeProblems, StoreProblems, ViewerProblems,
};
use super::respond::json;
use super::{Api, ApiResult, PathName, fields_of_body};
use crate::callers::{
    CallersError, CallersView, DEFAULT_OVERLAP, MAX_EXPIRY, MAX_OVERLAP, Manager, NAME_RULE,
    NewCallerView, NewSecretView, NewTokenView, is_name,
};
use crate::problem::{FieldError, Problem, ProblemKind};

/// The routes for callers.
pub(super) fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(callers, add))
        .routes(routes!(revoke))
        .routes(routes!(add_token))
        .routes(routes!(revoke_token))
        .routes(routes!(rotate_secret))
}

/// A caller to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CallerToAdd {
    /// Its name.
    #[schema(example = "catalogue", pattern = "^[a-z0-9_-]{1,32}$")]
    name: String,
    /// `caller` (the default), `viewer` or `operator`; not above your own role.
    #[schema(example = "caller", pattern = "^(caller|viewer|operator)$")]
    role: Option<String>,
}

/// A token to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TokenToAdd {
    /// Its name, unique among the tokens of the caller.
    #[schema(example = "ci", pattern = "^[a-z0-9_-]{1,32}$")]
    name: String,
    /// How long it is valid, such as `30d`; at most ten years. Without it, it is valid until it is revoked.
    #[schema(example = "30d")]
    expires_in: Option<String>,
}

/// How to rotate a webhook secret.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotation {
    /// How long deliveries are also signed with the earlier secret, up to `30d`; `24h` by default, `0s` for not at all.
    #[schema(example = "24h")]
    overlap: Option<String>,
}

/// What was revoked.
#[derive(Debug, Serialize, ToSchema)]
struct Revoked {
    /// The caller.
    caller: String,
    /// The name of its token; null if all tokens were revoked.
    #[schema(required)]
    token: Option<String>,
}

/// List callers and their tokens
///
/// All callers, with the names, the expiry and the last use of their tokens. A token itself is never shown again.
#[utoipa::path(
    get,
    path = "/operator/callers",
    operation_id = "operator_callers",
    tag = "Callers",
    responses(
        (status = 200, description = "all callers", body = CallersView),
        CallerProblems, ViewerProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn callers(Viewer(api): Viewer) -> ApiResult {
    let callers = api.stored(api.on.callers.list().await)?;
    Ok(json(&CallersView { callers }))
}

/// Add a caller
///
/// The response has its first token and its webhook secret, which are shown only once. You can add a revoked caller
/// again.
#[utoipa::path(
    post,
    path = "/operator/callers",
    operation_id = "operator_add_caller",
    tag = "Callers",
    request_body = CallerToAdd,
    responses(
        (status = 200, description = "the new caller, with its secrets", body = NewCallerView),
        CallerProblems, OperatorProblems, ConflictProblems, BodyProblems, SizeProblems, InvalidFieldProblems,
        StoreProblems,
    ),
    security(("token" = []))
)]
async fn add(operator: ActingOperator, request: Request) -> ApiResult {
    let ActingOperator { api, identity } = &operator;
    let asked: CallerToAdd = fields_of_body::read(api, request).await?;
    api.charge(&identity.caller, 1)?;
    let role = match asked.role.as_deref() {
        None => Some(Role::Caller),
        Some(word) => Role::parse(word),
    };
    let role = role.ok_or_else(|| invalid("/role", "must be caller, viewer or operator"))?;
    let caller = Caller { name: checked_name(asked.name)?, role };
    api.changed(api.on.callers.add(&manager(identity), &caller).await)
}

/// Revoke a caller
///
/// Revokes all tokens of the caller. Its messages and results stay.
#[utoipa::path(
    delete,
    path = "/operator/callers/{name}",
    operation_id = "operator_revoke_caller",
    tag = "Callers",
    params(("name" = String, Path, description = "the caller", example = "catalogue", pattern = "^[a-z0-9_-]{1,32}$")),
    responses(
        (status = 200, description = "its tokens are no longer accepted", body = Revoked),
        CallerProblems, OperatorProblems, NamedCallerProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn revoke(operator: ActingOperator, name: PathName) -> ApiResult {
    let ActingOperator { api, identity } = &operator;
    api.charge(&identity.caller, 1)?;
    let caller = named(name)?;
    let revoked = api.on.callers.revoke(&manager(identity), &caller).await;
    api.changed(revoked.map(|()| Revoked { caller, token: None }))
}

/// Add a token to a caller
///
/// The response has the token, which is shown only once. A caller can have 20 tokens.
#[utoipa::path(
    post,
    path = "/operator/callers/{name}/tokens",
    operation_id = "operator_add_token",
    tag = "Callers",
    params(("name" = String, Path, description = "the caller", example = "catalogue", pattern = "^[a-z0-9_-]{1,32}$")),
    request_body = TokenToAdd,
    responses(
        (status = 200, description = "the new token", body = NewTokenView),
        CallerProblems, OperatorProblems, NamedCallerProblems, ConflictProblems, BodyProblems, SizeProblems,
        InvalidFieldProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn add_token(operator: ActingOperator, name: PathName, request: Request) -> ApiResult {
    let ActingOperator { api, identity } = &operator;
    let asked: TokenToAdd = fields_of_body::read(api, request).await?;
    api.charge(&identity.caller, 1)?;
    let caller = named(name)?;
    let expires_in = asked.expires_in.as_deref().map(|text| {
        let duration = parse_duration(text).ok();
        let duration = duration.filter(|one| !one.is_zero() && *one <= MAX_EXPIRY);
        duration
            .ok_or_else(|| invalid("/expires_in", "must be a duration up to 3650d, such as 30d"))
    });
    let expires_in = expires_in.transpose()?;
    let name = checked_name(asked.name)?;
    let added = api.on.callers.add_token(&manager(identity), &caller, &name, expires_in).await;
    api.changed(added)
}

/// Revoke a token
///
/// The other tokens of the caller remain valid. With its last token the caller is revoked.
#[utoipa::path(
    delete,
    path = "/operator/callers/{name}/tokens/{token}",
    operation_id = "operator_revoke_token",
    tag = "Callers",
    params(
        ("name" = String, Path, description = "the caller", example = "catalogue", pattern = "^[a-z0-9_-]{1,32}$"),
        ("token" = String, Path, description = "the name of the token", example = "ci", pattern = "^[a-z0-9_-]{1,32}$"),
    ),
    responses(
        (status = 200, description = "the token is no longer accepted", body = Revoked),
        CallerProblems, OperatorProblems, NamedCallerProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn revoke_token(
    operator: ActingOperator,
    names: Result<Path<(String, String)>, PathRejection>,
) -> ApiResult {
    let ActingOperator { api, identity } = &operator;
    api.charge(&identity.caller, 1)?;
    let Ok(Path((caller, token))) = names else { return Err(Problem::new(ProblemKind::NOT_FOUND)) };
    if !is_name(&caller) || !is_name(&token) {
        return Err(Problem::new(ProblemKind::NOT_FOUND));
    }
    let revoked = api.on.callers.revoke_token(&manager(identity), &caller, &token).await;
    api.changed(revoked.map(|()| Revoked { caller, token: Some(token) }))
}

/// Rotate the webhook secret of a caller
///
/// The response has the new secret, which is shown only once. During the overlap, deliveries have two signatures, so
/// that receivers can change to the new secret at any time.
#[utoipa::path(
    post,
    path = "/operator/callers/{name}/webhook-secret",
    operation_id = "operator_rotate_webhook_secret",
    tag = "Callers",
    params(("name" = String, Path, description = "the caller", example = "catalogue", pattern = "^[a-z0-9_-]{1,32}$")),
    request_body = Rotation,
    responses(
        (status = 200, description = "the new secret", body = NewSecretView),
        CallerProblems, OperatorProblems, NamedCallerProblems, ConflictProblems, BodyProblems, SizeProblems,
        InvalidFieldProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn rotate_secret(operator: ActingOperator, name: PathName, request: Request) -> ApiResult {
    let ActingOperator { api, identity } = &operator;
    let asked: Rotation = fields_of_body::read(api, request).await?;
    api.charge(&identity.caller, 1)?;
    let caller = named(name)?;
    let overlap = asked.checked_overlap()?;
    api.changed(api.on.callers.rotate_secret(&manager(identity), &caller, overlap).await)
}

impl Rotation {
    pub(super) fn checked_overlap(&self) -> Result<Duration, Problem> {
        let Some(text) = &self.overlap else { return Ok(DEFAULT_OVERLAP) };
        let overlap = parse_duration(text).ok().filter(|overlap| *overlap <= MAX_OVERLAP);
        overlap.ok_or_else(|| invalid("/overlap", "must be a duration from 0s to 30d, such as 24h"))
    }
}

impl Api {
    /// The response to a change of callers.
    pub(super) fn changed<T: Serialize>(&self, done: Result<T, CallersError>) -> ApiResult {
        let fault = match done {
            Ok(done) => return Ok(json(&done)),
            Err(fault) => fault,
        };
        let detail = format!("{fault}.");
        Err(match fault {
            CallersError::Store(fault) => self
                .stored(Err::<(), _>(fault))
                .err()
                .unwrap_or_else(|| Problem::new(ProblemKind::INTERNAL)),
            CallersError::Random(_) => Problem::new(ProblemKind::INTERNAL),
            CallersError::NoCaller(_) | CallersError::NoToken { .. } => {
                Problem::new(ProblemKind::NOT_FOUND).saying(detail)
            }
            CallersError::CallerExists(_)
            | CallersError::TokenExists { .. }
            | CallersError::TooManyTokens(_)
            | CallersError::RotationUnderWay(_) => {
                Problem::new(ProblemKind::CONFLICT).saying(detail)
            }
        })
    }
}

/// The caller as the audit log names it.
pub(super) fn manager(identity: &Identity) -> Manager {
    Manager { name: identity.caller.name.clone(), from: identity.from.clone() }
}

/// The caller in the path.
fn named(name: PathName) -> Result<String, Problem> {
    let name = name.ok().map(|Path(name)| name).filter(|name| is_name(name));
    name.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))
}

fn checked_name(name: String) -> Result<String, Problem> {
    if is_name(&name) { Ok(name) } else { Err(invalid("/name", NAME_RULE)) }
}

fn invalid(pointer: &str, detail: &str) -> Problem {
    Problem::invalid(vec![FieldError::at(pointer, detail)])
}
