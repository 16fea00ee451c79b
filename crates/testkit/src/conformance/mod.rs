//! One conformance suite a port, run against each adapter.
//!
//! A case is a named async function that takes a store and panics when the store breaks the port's
//! promise. The macros [`queue_conformance!`](crate::queue_conformance),
//! [`inbox_conformance!`](crate::inbox_conformance),
//! [`dead_letters_conformance!`](crate::dead_letters_conformance),
//! [`rounds_conformance!`](crate::rounds_conformance), [`feeds_conformance!`](crate::feeds_conformance),
//! [`links_conformance!`](crate::links_conformance),
//! [`articles_conformance!`](crate::articles_conformance),
//! [`batches_conformance!`](crate::batches_conformance),
//! [`events_conformance!`](crate::events_conformance) and
//! [`politeness_conformance!`](crate::politeness_conformance) make each case a test of its own, so
//! that a failure names the adapter and the case. A new adapter implements [`queue::QueueStore`],
//! [`inbox::InboxStore`], [`dead_letters::LettersStore`], [`rounds::RoundsStore`], [`feeds::FeedsStore`],
//! [`links::LinksStore`], [`articles::ArticlesStore`], [`batches::BatchStore`], [`events::EventStore`] and
//! [`politeness::PolitenessStore`], and calls the macros.
//!
//! Time is moved by hand: nothing here sleeps, whatever threads an adapter has.

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

/// Makes a test of each case: `case_tests!(queue, Some(Store::new()), taking: [one, another], …)`.
#[doc(hidden)]
#[macro_export]
macro_rules! case_tests {
    ($port:ident, $store:expr, $($group:ident: [$($case:ident),+ $(,)?]),+ $(,)?) => {
        $(mod $group {
            #[allow(unused_imports, reason = "the expression may name what stands outside")]
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    // A server that is not there was named as missing by the store itself.
                    let Some(store) = $store else { return };
                    $crate::conformance::$port::$group::$case(&store).await;
                }
            )+
        })+
    };
}
