//! One conformance suite per port, run against each adapter.
//!
//! A case is a named async function that takes a store and panics if the store breaks the contract of the port. The
//! macros [`queue_conformance!`](crate::queue_conformance), [`inbox_conformance!`](crate::inbox_conformance),
//! [`dead_letters_conformance!`](crate::dead_letters_conformance), [`rounds_conformance!`](crate::rounds_conformance),
//! [`feeds_conformance!`](crate::feeds_conformance), [`links_conformance!`](crate::links_conformance),
//! [`articles_conformance!`](crate::articles_conformance), [`batches_conformance!`](crate::batches_conformance),
//! [`events_conformance!`](crate::events_conformance) and [`politeness_conformance!`](crate::politeness_conformance)
//! make each case a separate test, so that a failure names the adapter and the case. A new adapter implements
//! [`queue::QueueStore`], [`inbox::InboxStore`], [`dead_letters::LettersStore`], [`rounds::RoundsStore`],
//! [`feeds::FeedsStore`], [`links::LinksStore`], [`articles::ArticlesStore`], [`batches::BatchStore`],
//! [`events::EventStore`] and [`politeness::PolitenessStore`], and calls the macros.
//!
//! Tests set the time: nothing here sleeps, whatever threads an adapter has.

#![expect(
    clippy::expect_used,
    reason = "a case that cannot go on must fail; in a test that is a panic"
)]

pub mod adapters;
pub mod ageing;
pub mod articles;
pub mod batches;
pub mod dead_letters;
pub mod events;
pub mod feeds;
mod hand_clock;
pub mod inbox;
pub mod kafka;
pub mod links;
pub mod politeness;
pub mod queue;
pub mod rabbitmq;
mod replay;
pub mod rounds;
pub mod servers;

pub use hand_clock::HandClock;

/// Generates a test for each case: `case_tests!(queue, Some(Store::new()), taking: [one, another], …)`.
#[doc(hidden)]
#[macro_export]
macro_rules! case_tests {
    ($port:ident, $store:expr, $($group:ident: [$($case:ident),+ $(,)?]),+ $(,)?) => {
        $(mod $group {
            #[allow(unused_imports, reason = "the expression may use outer names")]
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    // The store itself has reported the missing server.
                    let Some(store) = $store else { return };
                    $crate::conformance::$port::$group::$case(&store).await;
                }
            )+
        })+
    };
}
