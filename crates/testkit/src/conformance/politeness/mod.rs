//! The contract of every politeness store: the pure rules of [`SiteState`], in atomic steps that all handles on the
//! store share.
//!
//! [`SiteState`]: fetchwell_policy::site::SiteState

pub mod breaker;
pub mod durable;
pub mod keeping;
pub mod listing;
pub mod orders;
pub mod pace;
pub mod random;
pub mod sweeping;
mod trial;

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::sites::Sites;
use fetchwell_policy::breaker::BreakerRule;

/// A place with one politeness store, empty at first.
pub trait PolitenessStore: Send + Sync {
    /// Opens the store as a process does at startup. Opened twice, it is the same store.
    fn open(&self, clock: Clock, rule: BreakerRule) -> Arc<dyn Sites>;

    /// Another empty place of the same kind.
    fn fresh(&self) -> Box<dyn PolitenessStore>;

    /// Whether sites expire by themselves, so that a sweep finds none.
    fn forgets_by_itself(&self) -> bool {
        false
    }
}

/// Tests of the contract: `politeness_conformance!(Some(MemoryStore::default()))`.
#[macro_export]
macro_rules! politeness_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            politeness,
            $store,
            pace: [
                the_first_request_goes_at_once_and_the_second_after_the_interval,
                sites_are_paced_apart,
                the_page_may_follow_its_robots_txt_at_once,
                what_lies_beyond_the_horizon_is_not_reserved,
                a_slot_in_time_is_good,
                a_slot_slept_past_delays_the_next,
                a_clock_that_jumps_back_does_not_close_a_site,
                two_processes_share_one_pace,
                ten_thousand_sites_in_one_turn,
            ],
            breaker: [
                a_429_rests_the_site_and_voids_what_was_reserved,
                a_503_with_retry_after_rests_the_site_and_counts,
                five_failures_open_it,
                open_times_are_shortened_by_chance,
                exactly_one_of_many_askers_probes,
                failures_that_are_told_at_once_all_count,
                a_lost_probe_is_given_again,
                an_answered_probe_closes_it,
                a_failed_probe_doubles_the_time,
                failed_probes_and_recoveries_are_kept,
                results_of_an_old_generation_say_nothing,
                reports_come_before_questions,
            ],
            keeping: [
                robots_records_are_kept_and_replaced,
                a_look_changes_nothing,
            ],
            orders: [
                a_paused_site_gives_nothing_until_it_is_resumed,
                a_paused_site_is_not_probed,
                an_order_that_changes_nothing_says_so,
                an_ordered_pace_overrides_what_is_asked_for,
                an_ordered_pace_never_undercuts_a_crawl_delay,
                a_reset_breaker_is_closed_and_a_rest_stays,
                what_is_known_of_robots_txt_is_forgotten,
                orders_are_told_of_by_their_time,
            ],
            listing: [
                sites_are_listed_by_name_page_by_page,
                a_site_is_shown_with_its_state_and_its_robots_txt,
                sites_are_found_by_name_and_by_condition,
                sites_are_ranked_worst_first_and_the_rest_follow_by_name,
                what_is_no_site_of_the_web_is_not_listed,
            ],
            random: [a_random_history_follows_the_pure_rules],
        );
    };
}

/// Tests of a politeness store whose sites are removed by sweeping and do not expire by themselves.
#[macro_export]
macro_rules! swept_politeness_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            politeness,
            $store,
            sweeping: [
                a_sweep_forgets_sites_at_rest,
                a_sweep_keeps_sites_in_penalty,
                a_sweep_keeps_sites_with_orders,
                a_sweep_goes_through_all_sites,
            ],
        );
    };
}

/// Additional tests of a politeness store that outlives its process.
#[macro_export]
macro_rules! durable_politeness_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            politeness,
            $store,
            durable: [
                a_penalty_outlives_the_process,
                an_order_outlives_the_process,
                all_else_outlives_the_process,
            ],
        );
    };
}
