//! How long a request still waits.

use std::time::Duration;

use fetchwell_policy::outcome::Phase;
use tokio::time::{Instant, timeout_at};

/// For the next piece of an answer, and over all.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    idle: Duration,
    deadline: Instant,
}

/// As good as for ever. A longer wait could lie beyond what an `Instant` can say.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Patience {
    /// Begins now, and ends when so much time is over.
    pub(super) fn new(idle: Duration, total: Duration) -> Patience {
        Patience { idle: idle.min(LONGEST), deadline: Instant::now() + total.min(LONGEST) }
    }

    /// When all waiting ends.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits for the server. An error says which limit ended it.
    pub(super) async fn with_server<T>(&self, work: impl Future<Output = T>) -> Result<T, Phase> {
        let now = Instant::now();
        let (until, phase) = match now + self.idle {
            idle_end if idle_end < self.deadline => (idle_end, Phase::Read),
            _ => (self.deadline, Phase::Total),
        };
        // Pieces that are there already never wait, so a stream of them needs this look at the clock.
        if now >= self.deadline {
            return Err(Phase::Total);
        }
        timeout_at(until, work).await.map_err(|_| phase)
    }
}
