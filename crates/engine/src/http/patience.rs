//! The timeouts of a request while it waits for the server.

use std::time::Duration;

use fetchwell_policy::outcome::Phase;
use tokio::time::{Instant, timeout_at};

/// The timeout for the next chunk of a body, and the deadline of the whole request.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    idle: Duration,
    deadline: Instant,
}

/// Practically for ever. A longer wait could overflow an `Instant`.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Patience {
    /// Starts now. `idle` limits each wait, `total` the whole request.
    pub(super) fn new(idle: Duration, total: Duration) -> Patience {
        Patience { idle: idle.min(LONGEST), deadline: Instant::now() + total.min(LONGEST) }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits for the response head. Only the deadline of the whole request applies, because a server may be silent
    /// while it generates a page.
    pub(super) async fn with_first_byte<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Phase> {
        timeout_at(self.deadline, work).await.map_err(|_| Phase::Total)
    }

    /// Waits for the next chunk of a body. An error says which limit was reached.
    pub(super) async fn with_server<T>(&self, work: impl Future<Output = T>) -> Result<T, Phase> {
        let now = Instant::now();
        let (until, phase) = match now + self.idle {
            idle_end if idle_end < self.deadline => (idle_end, Phase::Read),
            _ => (self.deadline, Phase::Total),
        };
        // Chunks that have already arrived never time out, so check the deadline here.
        if now >= self.deadline {
            return Err(Phase::Total);
        }
        timeout_at(until, work).await.map_err(|_| phase)
    }

    /// Adds a minimum rate for the chunks of a body.
    pub(super) fn with_rate(self, least_bytes_per_second: usize) -> RatedPatience {
        let least = least_bytes_per_second as f64 * self.idle.as_secs_f64();
        RatedPatience {
            patience: self,
            least_bytes: least as usize,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }
}

/// Also times out if a body arrives too slowly. Only the time spent waiting counts, because it is not the server's
/// fault if we read slowly.
pub(super) struct RatedPatience {
    patience: Patience,
    /// How many bytes must arrive per `idle` time of waiting.
    least_bytes: usize,
    waited: Duration,
    bytes: usize,
}

impl RatedPatience {
    /// Waits for a chunk; `size` returns its size in bytes.
    pub(super) async fn with_server<T>(
        &mut self,
        work: impl Future<Output = T>,
        size: impl FnOnce(&T) -> usize,
    ) -> Result<T, Phase> {
        let began = Instant::now();
        let piece = self.patience.with_server(work).await?;
        self.waited += began.elapsed();
        self.bytes = self.bytes.saturating_add(size(&piece));
        if self.waited >= self.patience.idle {
            if self.bytes < self.least_bytes {
                return Err(Phase::Read);
            }
            (self.waited, self.bytes) = (Duration::ZERO, 0);
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Takes so many pieces of these bytes, each after a pause.
    async fn take(pieces: usize, bytes: usize, pause_ms: u64) -> Result<(), Phase> {
        let patience = Patience::new(Duration::from_secs(10), Duration::from_secs(60));
        let mut patience = patience.with_rate(100);
        for _ in 0..pieces {
            patience.with_server(sleep(Duration::from_millis(pause_ms)), |()| bytes).await?;
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_kept_or_the_wait_ends() {
        for (pieces, bytes, pause_ms, expected) in [
            (9, 1, 1_000, Ok(())),             // It ends before anyone looks.
            (11, 1, 1_000, Err(Phase::Read)),  // 1 byte a second.
            (59, 99, 1_000, Err(Phase::Read)), // Just below.
            (59, 100, 1_000, Ok(())),          // Just enough.
            (5, 1_000, 9_999, Ok(())),         // Enough on average.
            (5, 0, 2_500, Err(Phase::Read)),   // Pieces of nothing.
            (61, 1_000, 1_000, Err(Phase::Total)),
            (1, 1_000_000, 10_001, Err(Phase::Read)),
        ] {
            let taken = take(pieces, bytes, pause_ms).await;
            assert_eq!(taken, expected, "{pieces} pieces of {bytes} bytes, {pause_ms} ms apart");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_byte_is_waited_for_as_long_as_the_whole_request_may_take() {
        let patience = || Patience::new(Duration::from_secs(10), Duration::from_secs(30));
        let slow = sleep(Duration::from_secs(29));
        assert_eq!(patience().with_first_byte(slow).await, Ok(()));
        let began = Instant::now();
        let silent = std::future::pending::<()>();
        assert_eq!(patience().with_first_byte(silent).await, Err(Phase::Total));
        assert_eq!(began.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn our_own_slowness_does_not_count() {
        let patience = Patience::new(Duration::from_secs(10), Duration::from_secs(3_600));
        let mut patience = patience.with_rate(100);
        for _ in 0..100 {
            patience.with_server(async {}, |()| 1).await.unwrap();
            sleep(Duration::from_secs(30)).await;
        }
    }
}
