//! The contract of every store of articles: [`Articles`].

pub mod attempting;
pub mod expiring;
pub mod keeping;
mod trial;

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::articles::Articles;

use super::hand_clock::Ageing;

/// A store of articles, empty at first.
#[async_trait]
pub trait ArticlesStore: Ageing {
    /// Opens it as a process does at startup. Opened twice, it is the same store.
    async fn open_articles(&self) -> Arc<dyn Articles>;

    /// Deletes the record that a link was attempted, as another program might.
    async fn forget_attempt(&self, uid: &str);
}

/// Tests of the contract: `articles_conformance!(Some(AgeingSqlite::new()))`.
#[macro_export]
macro_rules! articles_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            articles,
            $store,
            keeping: [
                an_article_is_read_as_it_was_kept,
                an_article_stands_in_all_its_categories,
                a_failure_stands_in_no_index_of_articles,
                what_is_kept_again_is_there_once,
                a_failure_gives_way_to_an_article_and_leaves_no_field,
                a_failure_that_comes_late_replaces_no_article,
                the_newest_are_listed_first,
                a_text_is_found_in_titles_and_urls_in_any_case,
                many_that_keep_at_once_keep_all,
            ],
            attempting: [
                what_was_kept_is_not_pending,
                a_link_that_has_an_article_is_not_pending_though_no_attempt_is_noted,
                an_attempt_counts_for_30_days,
                a_failure_of_the_site_counts_after_three_runs,
                runs_at_one_time_count_as_one,
                what_comes_again_counts_once,
                an_article_ends_the_count_of_failures,
                a_failure_of_the_link_counts_at_once_whatever_came_before,
                failures_long_ago_count_no_more,
            ],
            expiring: [
                articles_and_failures_are_kept_for_7_days,
                what_is_over_leaves_every_index_but_that_of_failures,
                what_is_alive_stays_when_what_is_over_goes,
                more_than_fit_in_one_step_are_taken_out,
                attempts_that_are_over_are_forgotten,
            ],
        );
    };
}
