//! Who may come in.

use std::sync::Arc;

use fetchwell_engine::inbox::{Caller, Inbox, Role, TokenHash};
use fetchwell_engine::ports::StoreFault;

/// Whose word is asked for.
pub(crate) enum Doorkeeper {
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
    pub(super) async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreFault> {
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
}
