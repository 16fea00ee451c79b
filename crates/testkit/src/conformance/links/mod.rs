//! The contract of every store of links: [`CategoryLinks`].

pub mod adding;

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::links::CategoryLinks;

use super::hand_clock::Ageing;

/// A store of links, empty at first.
#[async_trait]
pub trait LinksStore: Ageing {
    /// Opens it as a process does at startup. Opened twice, it is the same store.
    async fn open_links(&self) -> Arc<dyn CategoryLinks>;
}

/// Tests of the contract: `links_conformance!(Some(AgeingSqlite::new()))`.
#[macro_export]
macro_rules! links_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            links,
            $store,
            adding: [
                links_are_kept_as_they_are_each_once,
                a_link_may_stand_in_several_categories,
                nothing_is_added_by_adding_nothing,
                more_than_fit_in_one_step_go_in_and_come_out,
                a_category_lives_for_48_hours_after_the_last_add,
                a_category_that_was_forgotten_begins_anew,
                several_that_add_at_once_count_each_link_once,
            ],
        );
    };
}
