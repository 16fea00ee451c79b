//! The contract of every queue of batches, for producers and consumers: [`BatchQueue`], and a source on the same queue.

pub mod publishing;
pub mod settling;
mod trial;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::BatchQueue;

/// How many batches may be taken before one is settled.
const PREFETCH: u16 = 16;

/// A store with one queue of batches, empty at first.
#[async_trait]
pub trait BatchStore: Send + Sync {
    /// Opens the queue as a process does at startup. Opened twice, it is the same queue.
    async fn open_batches(&self, clock: Clock) -> Box<dyn Batches>;
}

/// A queue of batches, as seen by one process.
#[async_trait]
pub trait Batches: BatchQueue {
    /// The ids of the batches that were given up, with the reasons.
    async fn dead(&self) -> Vec<(String, String)>;
}

/// Tests of the contract: `batches_conformance!(Some(SqliteStore::new()))`.
#[macro_export]
macro_rules! batches_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            batches,
            $store,
            publishing: [
                a_batch_is_taken_as_it_was_published,
                nothing_published_is_nothing_waiting,
                what_waits_is_counted,
                many_are_all_there_in_order,
                several_workers_share_what_is_there,
            ],
            settling: [
                what_is_done_is_gone,
                another_attempt_brings_its_history_and_what_is_left,
                another_attempt_waits_for_its_time,
                what_is_handed_back_is_taken_again,
                what_is_handed_back_for_later_waits,
                what_is_given_up_is_kept_with_its_reason,
                what_is_given_up_can_be_listed_and_put_back,
                what_a_worker_leaves_is_taken_by_another,
                a_settlement_after_leaving_is_stale,
            ],
        );
    };
}
