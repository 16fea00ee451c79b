//! The contract of every queue: [`Queue`], and a ledger that always balances.
//!
//! Every operation of every case goes through `Trial` and `Worker`, which check the ledger after it.

pub mod deadlines;
pub mod durable;
pub mod instances;
pub mod lanes;
mod model;
pub mod random;
pub mod settling;
pub mod taking;
mod trial;
pub mod turns;

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::queue::{Ledger, Queue};

/// An instance that has not renewed for this long is dead.
pub const LEASE_TTL: Duration = Duration::from_secs(20);

/// A store with one queue, empty at first.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Opens the queue as a process does at startup. Opened twice, it is the same queue.
    async fn open(&self, clock: Clock, run_once: bool) -> Box<dyn QueueOnTrial>;

    /// Another empty store of the same kind.
    fn fresh(&self) -> Box<dyn QueueStore>;
}

/// A queue, as seen by one process.
#[async_trait]
pub trait QueueOnTrial: Queue {
    /// The dead jobs with their reasons, oldest first.
    async fn dead(&self) -> Vec<(String, String)>;
}

/// The number of jobs in each state.
///
/// # Panics
///
/// If the counters and the jobs differ.
pub async fn audited(queue: &dyn Queue) -> Ledger {
    let audit = queue.audit().await.expect("the queue can be read");
    audit.unwrap_or_else(|difference| panic!("{difference}"))
}

/// Tests of the contract: `queue_conformance!(Some(MemoryStore::default()))`.
#[macro_export]
macro_rules! queue_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            queue,
            $store,
            taking: [
                nothing_before_the_first_renewal,
                first_come_first_served_within_a_site,
                no_more_than_asked_for,
                no_more_of_a_site_than_asked_for,
                a_job_comes_out_as_it_went_in,
                equal_urls_stay_apart,
                a_long_queue_of_one_site_does_not_hold_up_another,
                a_closed_site_gives_nothing_before_its_time,
                news_do_not_open_a_closed_site,
                the_last_word_on_a_closed_site_holds,
                a_due_time_ahead_is_delayed_and_comes_at_its_time,
                idle_says_when_something_is_due,
                exhausted_only_when_nobody_has_anything_left,
                a_queue_that_goes_on_is_never_exhausted,
                what_is_overdue_comes_although_its_site_is_closed,
                the_oldest_that_waits_counts_however_long_it_is_delayed,
                the_oldest_waiting_job_is_found_across_processes,
            ],
            deadlines: [
                each_comes_when_its_own_deadline_passes,
                many_that_are_overdue_come_in_turn,
                what_comes_back_late_is_overdue,
                jobs_requeued_after_their_shared_deadline_are_all_overdue,
                jobs_with_several_expired_deadlines_are_leased_once,
                idle_until_the_first_deadline_of_what_waits,
            ],
            lanes: [
                a_closed_site_is_closed_for_every_lane,
                a_job_stays_in_its_lane,
                what_is_overdue_comes_in_whatever_lane,
            ],
            settling: [
                done_and_skipped_are_counted_and_gone,
                a_key_goes_in_once,
                a_retry_keeps_its_history_and_waits,
                what_is_handed_back_is_untouched,
                the_dead_keep_their_reason_and_never_come_back,
                a_second_settlement_is_stale,
                a_batch_is_answered_in_order,
            ],
            instances: [
                two_instances_never_get_the_same_job,
                two_processes_share_one_queue,
                what_another_holds_is_not_ours_to_settle,
                an_instance_that_renews_keeps_its_leases,
                a_dead_instance_loses_its_leases_to_another,
                a_leaving_instance_releases_its_leases,
                settlements_of_the_dead_are_stale_before_any_rescue,
                a_dead_instance_comes_back_under_a_new_epoch,
                interruptions_count_only_what_was_started,
                what_was_handed_back_is_not_started_any_more,
                every_interruption_is_counted,
            ],
            random: [a_random_history_follows_the_model],
        );
    };
}

/// Additional tests of a queue whose lanes take turns. A queue that is fed by a list of URLs has only one lane.
#[macro_export]
macro_rules! turns_queue_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            queue,
            $store,
            turns: [
                lanes_take_turns,
                a_flood_over_many_sites_does_not_hold_up_another_lane,
                groups_that_rest_give_nothing_this_time,
                no_more_of_a_group_than_asked_for,
                each_lane_of_a_site_gives_so_many,
                a_random_history_in_lanes_follows_the_model,
            ],
        );
    };
}

/// Additional tests of a queue that outlives its process.
#[macro_export]
macro_rules! durable_queue_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            queue,
            $store,
            durable: [everything_is_there_after_reopening, a_process_that_died_is_rescued_after_reopening],
        );
    };
}
