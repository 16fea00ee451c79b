//! The contract of every queue for schedulers, which add URLs in rounds:
//! [`Rounds`](fetchwell_engine::ports::rounds::Rounds).

pub mod putting;
pub mod waiting;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::ports::url_queue::UrlQueue;

/// A store with one queue, empty at first.
#[async_trait]
pub trait RoundsStore: Send + Sync {
    /// Opens the queue as a process does at startup. Opened twice, it is the same queue.
    async fn open_rounds(&self, clock: Clock) -> Box<dyn UrlQueue>;
}

/// Takes all waiting URLs as a new instance, in order, and settles them as done.
pub async fn take_urls(queue: &dyn Queue) -> Vec<String> {
    let worker = queue.instance();
    worker.renew().await.expect("an instance joins");
    let mut urls = Vec::new();
    let demand = Demand { most: 1_000, most_per_site: 1_000, ..Demand::default() };
    while let Taken::Jobs(leases) = worker.take(&demand).await.expect("a take is answered") {
        let ends: Vec<_> = leases.iter().map(|lease| (lease, &Settlement::Done)).collect();
        worker.settle(&ends).await.expect("a settlement is answered");
        urls.extend(leases.into_iter().map(|lease| lease.job.url));
    }
    urls
}

/// Tests of the contract for rounds: `rounds_conformance!(Some(SqliteStore::new()))`.
#[macro_export]
macro_rules! rounds_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            rounds,
            $store,
            putting: [
                a_round_is_put_once,
                rounds_of_several_entries_are_apart,
                an_earlier_round_is_over,
                a_round_without_urls_is_only_noted,
                nothing_goes_on_a_queue_that_is_too_deep,
                as_many_urls_as_there_may_be_go_in_as_one,
                several_that_put_one_round_at_once_put_it_once,
                what_is_long_over_is_forgotten,
            ],
            waiting: [
                what_is_leased_waits_until_it_is_under_way,
                what_is_put_back_or_delayed_waits,
                what_a_dead_instance_had_under_way_waits_again,
                what_waits_in_hands_counts_for_the_depth,
            ],
        );
    };
}
