//! The contract of every store of feeds: [`Feeds`].

pub mod claiming;
pub mod subscribing;

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::feeds::Feeds;

/// A store of feeds, empty at first.
#[async_trait]
pub trait FeedsStore: Send + Sync {
    /// Opens it as a process does at startup. Opened twice, it is the same store.
    async fn open_feeds(&self) -> Arc<dyn Feeds>;
}

/// Tests of the contract: `feeds_conformance!(Some(SqliteStore::new()))`.
#[macro_export]
macro_rules! feeds_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            feeds,
            $store,
            subscribing: [
                a_subscription_is_there_once_and_the_last_word_counts,
                one_feed_may_be_subscribed_to_for_several_categories,
                what_is_taken_out_is_gone_and_nothing_else,
                more_than_fit_in_one_step_go_in_and_come_out,
            ],
            claiming: [
                what_is_kept_is_remembered_by_all,
                of_several_that_claim_a_feed_one_gets_it,
                a_claim_ends_by_the_time_that_is_told,
                whoever_has_a_claim_may_claim_again,
                without_the_claim_nothing_is_kept,
                what_is_released_is_free_and_only_ones_own_can_be,
                what_is_forgotten_is_as_new,
            ],
        );
    };
}
