//! The contract of every inbox: [`Inbox`](fetchwell_engine::ports::inbox::Inbox), and how its messages are settled.
//!
//! Every operation of every case goes through `Trial`, which checks the ledger after it.

pub mod access;
pub mod batches;
pub mod bodies;
pub mod deliveries;
pub mod instances;
pub mod intervening;
pub mod results;
pub mod retention;
pub mod sent;
pub mod sharing;
pub mod submitting;
mod trial;
pub mod watching;

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::retriever_store::RetrieverStore;

/// An instance that has not renewed for this long is dead.
pub const LEASE_TTL: Duration = Duration::from_secs(20);

/// A store with one inbox, empty at first.
#[async_trait]
pub trait InboxStore: Send + Sync {
    /// Opens it as a process does at startup. Opened twice, it is the same inbox.
    async fn open(&self, clock: Clock) -> RetrieverStore;

    /// Runs an SQL statement beside the adapter, as a program of another release may. `{}` stands for the prefix of
    /// the tables' names.
    async fn execute(&self, statement: &str);
}

/// Tests of the contract: `inbox_conformance!(Some(SqliteStore::new()))`.
#[macro_export]
macro_rules! inbox_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            inbox,
            $store,
            submitting: [
                a_message_is_read_back_as_it_was_sent,
                anothers_message_is_as_unknown_as_one_that_never_was,
                a_batch_goes_in_whole_or_not_at_all,
                a_bad_submission_harms_no_other,
                a_message_has_a_name_of_its_own,
                what_is_sent_again_is_not_accepted_again,
                of_many_at_once_with_one_name_one_wins,
                of_two_bodies_at_once_with_one_name_one_is_accepted,
                many_at_once_all_go_in,
            ],
            results: [
                a_result_is_read_back_as_it_was_stored,
                a_message_shows_where_it_stands,
                a_page_of_the_outbox_is_bounded,
                a_cursor_beyond_the_newest_result_is_gone,
                the_newest_cursor_is_the_end_of_the_outbox,
                cursors_have_no_gaps_when_two_processes_write,
                a_reader_that_follows_misses_nothing,
                a_strange_result_harms_no_other,
                a_new_result_rings_for_its_caller,
            ],
            sharing: [
                a_stored_page_answers_at_once,
                the_newest_page_of_a_kind_is_found_with_its_age,
                a_failure_answers_nobody_else,
                a_follower_has_its_leaders_result,
                a_follower_of_a_leader_that_fails_fails_with_it,
                a_follower_whose_deadline_passes_goes_its_own_way,
                of_equal_ones_in_one_batch_the_first_leads,
                a_follower_outlives_a_leader_that_is_given_up,
                no_follower_is_left_behind_when_its_leader_ends_meanwhile,
            ],
            bodies: [
                a_body_is_read_back_as_it_was_stored,
                a_body_that_is_the_content_is_read_from_it,
                those_who_share_a_result_share_its_body,
                a_body_expires,
                the_oldest_bodies_make_room,
                a_quota_holds_when_two_processes_write,
                a_body_is_stored_with_its_result_only,
            ],
            batches: [
                a_batch_counts_its_messages_as_they_end,
                a_batch_ends_once_whoever_ends_its_messages,
                ended_batches_are_read_in_their_order,
                the_end_of_a_batch_is_delivered_once,
                the_results_of_a_batch_come_in_order_and_no_others,
                the_messages_in_flight_are_counted_for_each_batch,
                the_unanswered_pages_of_a_batch_are_told_apart,
                anothers_batch_is_as_unknown_as_one_that_never_was,
                a_cancelled_batch_ends,
                a_large_batch_is_cancelled_in_parts,
                a_retried_message_reopens_no_batch,
                shared_results_count_in_their_batches,
                a_batch_goes_with_its_results,
                what_an_earlier_release_ended_is_counted_in_the_end,
                a_batch_goes_when_an_earlier_release_deleted_its_results,
                open_batches_are_found_in_parts,
                a_repeated_batch_is_the_same_batch,
            ],
            sent: [
                a_caller_lists_its_own_messages,
                a_list_has_only_what_was_asked_for,
                a_list_follows_what_becomes_of_messages,
                a_list_of_a_batch_has_all_of_its_messages_and_no_others,
            ],
            deliveries: [
                a_callback_is_delivered_once,
                those_who_share_a_result_are_each_told,
                a_delivery_is_listed_with_its_attempts_for_its_caller_alone,
                a_delivery_that_ended_is_replayed_with_its_id,
                several_attempts_of_one_delivery_end_at_once,
                a_late_attempt_leaves_a_delivery_ended,
                attempts_and_replays_at_the_same_time_do_no_harm,
                a_time_range_is_replayed_in_bounded_parts,
            ],
            instances: [
                a_message_ends_once,
                the_dead_write_nothing,
                what_a_killed_process_held_ends_once,
                what_is_handed_back_or_tried_again_has_no_result_yet,
                a_batch_is_answered_in_order,
            ],
            access: [
                a_token_names_its_caller_until_it_is_revoked,
                a_caller_has_several_tokens_and_each_ends_alone,
                a_token_expires_and_says_when_it_was_used,
                a_webhook_key_is_replaced_with_an_overlap,
                a_caller_that_comes_back_finds_its_results,
                a_change_of_callers_is_committed_with_its_entry,
                a_change_of_callers_fails_with_its_entry,
                the_audit_tells_what_happened,
                an_inbox_that_works_says_so,
            ],
            retention: [
                what_is_old_goes_in_order,
                a_young_result_keeps_those_after_it,
                a_name_is_forgotten_with_its_messages,
                a_lane_that_was_empty_is_used_again,
                the_audit_of_submissions_goes_with_them,
                the_log_of_deliveries_goes_with_its_results,
                a_message_without_a_result_goes_too,
            ],
            watching: [
                a_list_has_what_matches,
                a_moment_shows_nothing_that_came_later,
                failures_are_grouped_by_reason_and_site,
                a_message_has_its_story,
                a_follower_says_whom_it_follows,
                the_store_says_who_is_at_work,
            ],
            intervening: [
                what_has_ended_is_tried_anew_as_a_message_of_its_own,
                a_new_try_expires_like_any_message,
                what_waits_for_a_time_is_due_at_once,
                what_waits_is_cancelled_once,
                what_is_in_flight_is_left_alone,
                a_cancelled_leader_leaves_its_followers,
                an_act_by_filter_hits_what_was_seen,
                an_act_by_filter_goes_on_to_the_end,
                what_is_asked_for_twice_is_done_once,
            ],
        );
    };
}
