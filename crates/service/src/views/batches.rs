//! Batches as callers see them.

use std::time::Duration;

use fetchwell_engine::ports::message_batches::MessageBatch;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use serde::Serialize;
use utoipa::ToSchema;

/// The part of a batch after which its own speed says more than the estimate of its submission: one in this many.
const TELLING_PART: u64 = 10;

/// Messages that were sent together.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = BatchState)]
pub struct BatchView {
    /// The id of the batch.
    #[schema(example = "batch_018bcfe56800ffffffffffffffffffff", pattern = "^batch_[0-9a-f]{32}$")]
    pub id: String,
    /// The caller that sent it.
    pub caller_id: String,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Whether all of its messages have ended.
    pub done: bool,
    /// Its messages by status.
    pub counts: CountsView,
    /// The number of invalid messages that were left out.
    pub skipped: u32,
    /// When it is expected to end, or ended. While it runs, this is an estimate from the pace of its sites; once a
    /// tenth of its messages has ended, from the speed so far.
    #[schema(format = DateTime)]
    pub estimated_end: String,
    /// When it was cancelled; null if it was not.
    #[schema(required, format = DateTime)]
    pub cancelled_at: Option<String>,
    /// When its last message ended; null until then.
    #[schema(required, format = DateTime)]
    pub ended_at: Option<String>,
}

/// The messages of a batch by status.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = BatchCounts)]
pub struct CountsView {
    /// All messages of the batch.
    pub total: u32,
    /// Messages that wait.
    pub queued: u32,
    /// Messages that are being fetched.
    pub processing: u32,
    /// Messages whose result has a page.
    pub completed: u32,
    /// Messages that ended without a page.
    pub failed: u32,
    /// Those of `failed` that were cancelled.
    pub cancelled: u32,
}

impl BatchView {
    /// The batch as of now, by the wall clock.
    pub fn of(batch: &MessageBatch, now: Time) -> BatchView {
        let counts = batch.counts;
        BatchView {
            id: batch.id.to_string(),
            caller_id: batch.caller.clone(),
            created_at: rfc3339(batch.created_at),
            done: batch.ended_at.is_some(),
            counts: CountsView {
                total: counts.total,
                queued: counts.queued(),
                processing: counts.processing,
                completed: counts.completed,
                failed: counts.failed,
                cancelled: counts.cancelled,
            },
            skipped: batch.skipped,
            estimated_end: rfc3339(estimated_end(batch, now)),
            cancelled_at: batch.cancelled_at.map(rfc3339),
            ended_at: batch.ended_at.map(rfc3339),
        }
    }
}

/// When the batch ended, or is expected to.
fn estimated_end(batch: &MessageBatch, now: Time) -> Time {
    if let Some(ended_at) = batch.ended_at {
        return ended_at;
    }
    // What is left of a cancelled batch is in flight.
    if batch.cancelled_at.is_some() {
        return now;
    }
    let total = u64::from(batch.counts.total);
    let ended = u64::from(batch.counts.ended());
    if ended == 0 || ended * TELLING_PART < total {
        return batch.expected_at.max(now);
    }
    let so_far = now.since(batch.created_at).as_secs_f64();
    let left = so_far * (total.saturating_sub(ended)) as f64 / ended as f64;
    now + Duration::try_from_secs_f64(left).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::BatchId;
    use fetchwell_engine::ports::message_batches::BatchCounts;

    use super::*;

    fn batch(total: u32, completed: u32) -> MessageBatch {
        MessageBatch {
            id: BatchId([1; 16]),
            caller: "me".to_owned(),
            created_at: Time::from_secs(1_000),
            expected_at: Time::from_secs(1_500),
            cancelled_at: None,
            ended_at: None,
            callback_url: None,
            skipped: 0,
            counts: BatchCounts { total, completed, ..BatchCounts::default() },
            completion: None,
        }
    }

    #[test]
    fn the_estimate_follows_the_speed_once_a_tenth_has_ended() {
        let secs = Time::from_secs;
        for (batch, now, expected) in [
            (batch(100, 0), 1_100, 1_500),
            (batch(100, 9), 1_100, 1_500),
            (batch(100, 0), 1_700, 1_700),
            (batch(100, 10), 1_100, 2_000),
            (batch(100, 50), 1_100, 1_200),
            (MessageBatch { ended_at: Some(secs(1_234)), ..batch(100, 100) }, 9_000, 1_234),
            (MessageBatch { cancelled_at: Some(secs(1_010)), ..batch(100, 1) }, 1_020, 1_020),
        ] {
            assert_eq!(estimated_end(&batch, secs(now)), secs(expected), "{batch:?} at {now}");
        }
    }

    #[test]
    fn messages_that_neither_ended_nor_are_in_flight_are_queued() {
        let mut some = batch(10, 3);
        some.counts.failed = 2;
        some.counts.processing = 4;
        let view = BatchView::of(&some, Time::from_secs(1_001));
        assert_eq!((view.counts.queued, view.done), (1, false));
    }
}
