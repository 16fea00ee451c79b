//! When tokens were last used, collected in memory and written in the background, so that no request waits for it.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_engine::ports::inbox::{Inbox, TokenHash};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// The use of a token is written at most this often.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);

/// How often uses are written.
const FLUSHED_EVERY: Duration = Duration::from_secs(5);

/// A token that was used.
struct Use {
    /// Whether it was used since it was last written.
    is_new: bool,
    written_at: Option<Instant>,
}

/// The uses of valid tokens in the last minute.
#[derive(Default)]
pub(crate) struct TokenUses(Mutex<HashMap<TokenHash, Use>>);

impl TokenUses {
    /// Notes that a valid token was used.
    pub(crate) fn note(&self, token: &TokenHash) {
        let mut uses = self.0.lock();
        uses.entry(*token).or_insert(Use { is_new: true, written_at: None }).is_new = true;
    }

    /// The tokens whose use is to be written now. Those that were not used for a minute are forgotten.
    fn due(&self) -> Vec<TokenHash> {
        let mut due = Vec::new();
        self.0.lock().retain(|token, one| {
            let is_recent = one.written_at.is_some_and(|at| at.elapsed() < WRITTEN_EVERY);
            if is_recent {
                return true;
            }
            if one.is_new {
                due.push(*token);
                *one = Use { is_new: false, written_at: Some(Instant::now()) };
                return true;
            }
            false
        });
        due
    }

    /// Writes the uses until `stop`.
    pub(crate) async fn write_to(&self, inbox: &dyn Inbox, stop: &CancellationToken) {
        loop {
            let stopped = tokio::time::timeout(FLUSHED_EVERY, stop.cancelled()).await.is_ok();
            let due = self.due();
            if !due.is_empty()
                && let Err(fault) = inbox.tokens_used(&due).await
            {
                // Not worth a retry: the next use is written in a minute.
                debug!("could not write when tokens were last used: {fault}");
            }
            if stopped {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_use_is_written_at_most_once_a_minute() {
        let uses = TokenUses::default();
        uses.note(&[1; 32]);
        uses.note(&[1; 32]);
        assert_eq!(uses.due(), [[1; 32]]);
        uses.note(&[1; 32]);
        tokio::time::advance(WRITTEN_EVERY / 2).await;
        assert!(uses.due().is_empty());
        tokio::time::advance(WRITTEN_EVERY).await;
        assert_eq!(uses.due(), [[1; 32]]);
        tokio::time::advance(WRITTEN_EVERY).await;
        assert!(uses.due().is_empty() && uses.0.lock().is_empty(), "it was not used again");
    }
}
