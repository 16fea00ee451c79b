//! Who is calling: the credential names the caller, and every query is filtered by it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use fetchwell_engine::ports::inbox::{Caller, Role, TokenHash};
use http::header::AUTHORIZATION;
use http::request::Parts;
use tokio::time::Instant;

use super::Api;
use super::problem::{Kind, Problem};
use super::token::Token;
use crate::listener::Peer;

/// How long a token that was good is taken for good without asking the store. `callers revoke` waits
/// that long before it says that it is done.
pub(crate) const TOKEN_CACHE: Duration = Duration::from_secs(1);

/// A caller with a good token.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) caller: Caller,
    /// The address that the request came from.
    pub(super) from: String,
    token: TokenHash,
}

impl Identity {
    /// Whose messages this caller may see: `None` is everybody's.
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
            Role::Viewer => Err(Problem::new(Kind::Forbidden)),
        }
    }

    /// Whether this caller may see what all callers do.
    pub(super) fn check_may_look(&self) -> Result<(), Problem> {
        match self.caller.role {
            Role::Viewer | Role::Operator => Ok(()),
            Role::Caller => Err(Problem::new(Kind::Forbidden).saying(
                "A caller sees its own messages; use the token of a viewer or an operator.",
            )),
        }
    }

    /// Whether this caller may act on what others sent.
    pub(super) fn check_may_act(&self) -> Result<(), Problem> {
        match self.caller.role {
            Role::Operator => Ok(()),
            Role::Viewer | Role::Caller => Err(Problem::new(Kind::Forbidden).saying(
                "This is for operators; `fetchwell callers add NAME --role operator` makes one.",
            )),
        }
    }

    /// Whether the token is still good, for answers that took their time.
    pub(super) async fn check_again(&self, api: &Api) -> Result<(), Problem> {
        match api.caller_of(&self.token).await? {
            Some(_) => Ok(()),
            None => Err(Problem::new(Kind::Unauthorized)),
        }
    }
}

impl FromRequestParts<Arc<Api>> for Identity {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Identity, Problem> {
        let address = Peer::of(parts).address;
        let refused = |what| {
            api.auth_failures.note(address, what);
            api.metrics.authentication_failed();
            // One answer for all that can be wrong: whoever guesses learns nothing.
            Problem::new(Kind::Unauthorized)
        };
        let mut values = parts.headers.get_all(AUTHORIZATION).iter();
        let (value, another) = (values.next(), values.next());
        let value = value.ok_or_else(|| refused("no token"))?;
        let token = value.to_str().ok().and_then(Token::of_header).filter(|_| another.is_none());
        let token = token.ok_or_else(|| refused("not a token"))?.hash();
        let caller = api.caller_of(&token).await?;
        let caller = caller.ok_or_else(|| refused("an unknown or revoked token"))?;
        Ok(Identity { caller, from: address.to_string(), token })
    }
}

/// Tokens that were good a moment ago. There is no such thing for bad ones: they are asked about anew.
///
/// The key is a hash of 256 random bits, so how long a comparison takes tells nothing of the token.
#[derive(Default)]
pub(super) struct KnownTokens(Mutex<HashMap<TokenHash, (Caller, Instant)>>);

impl KnownTokens {
    pub(super) fn get(&self, token: &TokenHash) -> Option<Caller> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (caller, asked_at) = known.get(token)?;
        (asked_at.elapsed() < TOKEN_CACHE).then(|| caller.clone())
    }

    /// `asked_at`: when the store was asked, not when it answered.
    pub(super) fn put(&self, token: &TokenHash, caller: &Caller, asked_at: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (_, asked_at)| asked_at.elapsed() < TOKEN_CACHE);
        known.insert(*token, (caller.clone(), asked_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_known_for_a_second_from_the_question_on() {
        let known = KnownTokens::default();
        let caller = Caller { name: "a".to_owned(), role: Role::Caller };
        let asked_at = Instant::now();
        tokio::time::advance(TOKEN_CACHE / 2).await;
        known.put(&[1; 32], &caller, asked_at);
        assert_eq!(known.get(&[1; 32]), Some(caller.clone()));
        assert_eq!(known.get(&[2; 32]), None);
        tokio::time::advance(TOKEN_CACHE / 2).await;
        assert_eq!(known.get(&[1; 32]), None);
        known.put(&[2; 32], &caller, Instant::now());
        assert_eq!(known.0.lock().unwrap().len(), 1);
    }
}
