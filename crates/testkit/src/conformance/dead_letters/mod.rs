//! The contract of every queue for the handling of dead letters: [`DeadLetters`].

pub mod popping;
pub mod reading;
pub mod revising;
mod trial;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::dead_letters::DeadLetters;
use fetchwell_engine::ports::url_queue::UrlQueue;

/// A store with one queue, empty at first.
#[async_trait]
pub trait LettersStore: Send + Sync {
    /// Opens the queue as a process does at startup. Opened twice, it is the same queue.
    async fn open_letters(&self, clock: Clock) -> Box<dyn UrlQueue>;

    /// Removes one letter of this URL, as another client does. If the letters are not on a list that others can change,
    /// another process drops it.
    async fn pop_letter(&self, url: &str);
}

/// The dead letters with their reasons, oldest first.
pub(super) async fn the_dead(queue: &dyn DeadLetters) -> Vec<(String, String)> {
    let page = queue.dead_letters(None, usize::MAX).await.expect("the dead can be read");
    assert!(page.next.is_none(), "there are more than one page holds");
    let mut letters = page.letters;
    letters.sort_by_key(|letter| letter.id);
    letters.into_iter().map(|letter| (letter.url, letter.group.reason)).collect()
}

/// Tests of the contract for dead letters: `dead_letters_conformance!(Some(SqliteStore::new()))`.
#[macro_export]
macro_rules! dead_letters_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            dead_letters,
            $store,
            reading: [
                a_letter_tells_all_that_is_known,
                what_is_stale_leaves_no_letter,
                pages_name_each_letter_once,
                equal_urls_are_letters_apart,
                groups_are_counted_with_a_sample,
            ],
            revising: [
                a_retry_starts_with_a_clean_record_and_can_die_again,
                what_is_retried_waits_in_the_order_it_came_in,
                a_retried_dead_letter_keeps_its_deadline,
                a_url_takes_all_its_letters_with_it,
                canaries_go_before_the_rest_of_their_group,
                a_group_is_exactly_its_reason_and_site,
                what_is_dropped_is_skipped_and_frees_its_key,
                more_than_a_page_is_revised,
                two_that_revise_at_once_take_each_letter_once,
            ],
            popping: [
                what_another_client_takes_off_is_no_dead_letter_any_more,
                what_another_client_took_off_can_not_be_tried_anew,
                a_letter_that_goes_while_it_is_read_is_not_revised,
                of_equal_letters_as_many_stay_as_are_left,
                what_dies_again_is_a_letter_with_nothing_of_the_old_one,
                what_is_taken_off_frees_its_key,
            ],
        );
    };
}
