//! Who may come in.

use std::sync::Arc;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{Caller, Inbox, Role, TokenHash};

/// Whose word is asked for.
pub enum Doorkeeper {
    /// That of a store with callers.
    Callers(Arc<dyn Inbox>),
    /// There is one token, an operator's.
    OneToken(TokenHash),
    /// Nobody's: everybody may look, and nobody act.
    Nobody,
}

/// The name of whoever has the one token.
const BEARER: &str = "operator";
/// The name of those who just look.
pub(super) const ONLOOKER: &str = "onlooker";

impl Doorkeeper {
    /// Whose token this is, unless it was revoked.
    pub(super) async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreError> {
        match self {
            Doorkeeper::Callers(inbox) => inbox.caller_of(token).await,
            // Both are hashes of random bits: how long a comparison takes tells nothing of the token.
            Doorkeeper::OneToken(known) => {
                Ok((known == token)
                    .then(|| Caller { name: BEARER.to_owned(), role: Role::Operator }))
            }
            Doorkeeper::Nobody => Ok(None),
        }
    }

    /// The account that a login tries to open; `None`: none that is known. Callers' tokens are random, so one that
    /// is wrong is nobody's. The one token may have been chosen by a person: each try is a guess at it.
    pub(super) fn account<'a>(&self, caller: Option<&'a Caller>) -> Option<&'a str> {
        match self {
            Doorkeeper::Callers(_) => caller.map(|caller| caller.name.as_str()),
            Doorkeeper::OneToken(_) => Some(BEARER),
            Doorkeeper::Nobody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_token_is_a_guess_where_there_is_only_one() {
        let one = Doorkeeper::OneToken([1; 32]);
        assert_eq!(one.account(None), Some(BEARER));
        assert_eq!(Doorkeeper::Nobody.account(None), None);
    }
}
