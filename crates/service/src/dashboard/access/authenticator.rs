//! Decides who may log in to the dashboard.

use std::sync::Arc;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{Caller, Inbox, Role, TokenHash};

/// How tokens are checked.
pub enum Authenticator {
    /// Against the callers in the store.
    Callers(Arc<dyn Inbox>),
    /// Against a single token, which gives the role operator.
    OneToken(TokenHash),
    /// Not at all: the dashboard is read-only and needs no login.
    Nobody,
}

/// The user name for the single token.
const BEARER: &str = "operator";
/// The user name if there is no login.
pub(super) const ONLOOKER: &str = "onlooker";

impl Authenticator {
    /// The caller with this token, unless it was revoked.
    pub(super) async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreError> {
        match self {
            Authenticator::Callers(inbox) => inbox.caller_of(token).await,
            // Both are hashes, so the time of the comparison reveals nothing about the token.
            Authenticator::OneToken(known) => {
                Ok((known == token)
                    .then(|| Caller { name: BEARER.to_owned(), role: Role::Operator }))
            }
            Authenticator::Nobody => Ok(None),
        }
    }

    /// The account of a login attempt; `None` if it is unknown. Tokens of callers are random, so a wrong one belongs to
    /// no account. The single token may have been chosen by a person, so each attempt counts as a guess at it.
    pub(super) fn account<'a>(&self, caller: Option<&'a Caller>) -> Option<&'a str> {
        match self {
            Authenticator::Callers(_) => caller.map(|caller| caller.name.as_str()),
            Authenticator::OneToken(_) => Some(BEARER),
            Authenticator::Nobody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_token_is_a_guess_where_there_is_only_one() {
        let one = Authenticator::OneToken([1; 32]);
        assert_eq!(one.account(None), Some(BEARER));
        assert_eq!(Authenticator::Nobody.account(None), None);
    }
}
