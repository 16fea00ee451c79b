//! Waits for results without holding a lock or a connection to the store.

use std::time::Duration;

use fetchwell_engine::ports::inbox::MessageId;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Api;
use super::held_message::HeldMessage;
use crate::problem::Problem;

/// The store is polled at least this often, since another process may have stored the result.
const POLL: Duration = Duration::from_millis(500);

/// The delay between a notification and the next query, which grows by this much each time. Otherwise, if a caller has
/// many waiting requests and many results, each request would query the store for each result.
const GAP: Duration = Duration::from_millis(10);

/// Waits for results of one caller, until a time.
pub(super) struct Waiting<'a> {
    api: &'a Api,
    new_results: watch::Receiver<()>,
    gap: Duration,
    until: Instant,
}

impl<'a> Waiting<'a> {
    /// Subscribes to notifications. Call it before the first query, so that no result is missed.
    pub(super) fn begin(api: &'a Api, caller: &str, at_most: Duration) -> Waiting<'a> {
        let until = Instant::now() + at_most;
        Waiting { api, new_results: api.on.results.listen(caller), gap: GAP, until }
    }

    /// Returns when it is worth querying again; `false` if the time is over or the server is stopping.
    pub(super) async fn next(&mut self) -> bool {
        if Instant::now() >= self.until || self.api.on.stop.is_cancelled() {
            return false;
        }
        let gap = self.gap;
        let rung = async {
            // An error means that the sender is gone; then only polling is left.
            if self.new_results.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(gap).await;
        };
        tokio::select! {
            () = rung => self.gap = (self.gap + GAP).min(POLL),
            () = tokio::time::sleep(POLL) => {}
            () = tokio::time::sleep_until(self.until) => {}
            () = self.api.on.stop.cancelled() => return false,
        }
        true
    }
}

/// The message of this caller, once it has its result or the time is over; `None` if it has no such message.
pub(super) async fn result_of(
    api: &Api,
    caller: &str,
    id: MessageId,
    at_most: Duration,
) -> Result<Option<HeldMessage>, Problem> {
    let mut waiting = Waiting::begin(api, caller, at_most);
    loop {
        let found = api.message(id, Some(caller)).await?;
        let may_end = found.as_ref().is_some_and(|held| held.message.outbox.is_none());
        if !may_end || !waiting.next().await {
            return Ok(found);
        }
    }
}
