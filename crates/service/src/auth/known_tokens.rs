//! A cache of valid tokens, so that not every request queries the store.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_engine::ports::inbox::{Caller, TokenHash};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a valid token is trusted without asking the store. `callers revoke` waits this long before it reports
/// success.
pub const TOKEN_CACHE: Duration = Duration::from_secs(1);

/// A cache of valid tokens. Invalid tokens are not cached, so each use queries the store.
///
/// The key is a hash of 256 random bits, so the time of a comparison reveals nothing about the token.
#[derive(Default)]
pub(crate) struct KnownTokens(Mutex<HashMap<TokenHash, (Caller, Instant)>>);

impl KnownTokens {
    pub(crate) fn get(&self, token: &TokenHash) -> Option<Caller> {
        let known = self.0.lock();
        let (caller, asked_at) = known.get(token)?;
        (asked_at.elapsed() < TOKEN_CACHE).then(|| caller.clone())
    }

    /// `asked_at` is when the store was asked, not when it answered.
    pub(crate) fn put(&self, token: &TokenHash, caller: &Caller, asked_at: Instant) {
        let mut known = self.0.lock();
        known.retain(|_, (_, asked_at)| asked_at.elapsed() < TOKEN_CACHE);
        known.insert(*token, (caller.clone(), asked_at));
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::Role;

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
        assert_eq!(known.0.lock().len(), 1);
    }
}
