//! Who is calling: the token identifies the caller, and every query is filtered by caller.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use fetchwell_engine::ports::inbox::{Caller, Role, TokenHash};
use http::header::AUTHORIZATION;
use http::request::Parts;

use super::Api;
use crate::auth::ApiToken;
use crate::problem::{Problem, ProblemKind};
use crate::server::Peer;

/// A viewer or an operator, whose request is charged.
pub(super) struct Viewer(pub(super) Arc<Api>);

/// An operator. The handler charges the request.
pub(super) struct ActingOperator {
    pub(super) api: Arc<Api>,
    pub(super) identity: Identity,
}

/// A caller with a valid token.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) caller: Caller,
    /// The address that the request came from.
    pub(super) from: String,
    /// `None` for this process itself.
    token: Option<TokenHash>,
}

impl Identity {
    /// This process, which needs no token.
    pub(super) fn of_process(caller: Caller, from: &str) -> Identity {
        Identity { caller, from: from.to_owned(), token: None }
    }

    /// The caller whose messages this caller may see; `None` for those of all callers.
    pub(super) fn sees(&self) -> Option<&str> {
        match self.caller.role {
            Role::Caller => Some(&self.caller.name),
            Role::Viewer | Role::Operator => None,
        }
    }

    /// Whether this caller may send messages.
    pub(super) fn check_may_send(&self) -> Result<(), Problem> {
        match self.caller.role {
            Role::Caller | Role::Operator => Ok(()),
            Role::Viewer => Err(Problem::new(ProblemKind::FORBIDDEN)),
        }
    }

    /// Whether this caller may see the messages of all callers.
    fn check_may_look(&self) -> Result<(), Problem> {
        match self.caller.role {
            Role::Viewer | Role::Operator => Ok(()),
            Role::Caller => Err(Problem::new(ProblemKind::FORBIDDEN).saying(
                "A caller sees only its own messages; use the token of a viewer or an operator.",
            )),
        }
    }

    /// Whether this caller may act on messages of others and on sites.
    fn check_may_act(&self) -> Result<(), Problem> {
        match self.caller.role {
            Role::Operator => Ok(()),
            Role::Viewer | Role::Caller => Err(Problem::new(ProblemKind::FORBIDDEN).saying(
                "This needs the role operator; `fetchwell callers add NAME --role operator` \
                 creates a token.",
            )),
        }
    }

    /// Whether the token is still valid, for responses that waited for a result.
    pub(super) async fn check_again(&self, api: &Api) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        match api.caller_of(token).await? {
            Some(_) => Ok(()),
            None => Err(Problem::new(ProblemKind::UNAUTHORIZED)),
        }
    }
}

impl FromRequestParts<Arc<Api>> for Identity {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Identity, Problem> {
        let address = Peer::of(parts).address;
        let refused = |what| {
            api.on.auth_failures.note(address, what);
            api.on.metrics.authentication_failed();
            // The response is the same whatever is wrong, so that guessing reveals nothing.
            Problem::new(ProblemKind::UNAUTHORIZED)
        };
        let mut values = parts.headers.get_all(AUTHORIZATION).iter();
        let value = values.next();
        let another = values.next();
        let value = value.ok_or_else(|| refused("no token"))?;
        let token = value.to_str().ok().and_then(ApiToken::of_header).filter(|_| another.is_none());
        let token = token.ok_or_else(|| refused("not a token"))?.hash();
        let caller = api.caller_of(&token).await?;
        let caller = caller.ok_or_else(|| refused("an unknown or revoked token"))?;
        api.token_uses.note(&token);
        Ok(Identity { caller, from: address.to_string(), token: Some(token) })
    }
}

impl FromRequestParts<Arc<Api>> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Viewer, Problem> {
        let identity = Identity::from_request_parts(parts, api).await?;
        identity.check_may_look()?;
        api.charge(&identity.caller, 1)?;
        Ok(Viewer(api.clone()))
    }
}

impl FromRequestParts<Arc<Api>> for ActingOperator {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &Arc<Api>,
    ) -> Result<ActingOperator, Problem> {
        let identity = Identity::from_request_parts(parts, api).await?;
        identity.check_may_act()?;
        Ok(ActingOperator { api: api.clone(), identity })
    }
}
