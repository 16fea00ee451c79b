//! `fetchwell feeds`: what feeds list becomes links by category, which `articles` makes articles of.
//!
//! `round` is one pass over all that are due, by the one flow, each of them `in_hand` until its last link is; `trial`
//! is the same for one feed, of which nothing is kept. `subscribed` says which feeds there are, `plan` what is asked of
//! one and what came back, `links` what its links are, `memory` what is remembered of it and when it is due again.

mod in_hand;
mod links;
mod memory;
mod plan;
mod round;
mod subscribed;
mod trial;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::gate::GateRules;
use fetchwell_engine::ports::feeds::Feeds;
use fetchwell_engine::ports::links::CategoryLinks;

pub use plan::{Reading, Validators};
pub use round::{FeedRound, Ingested};
pub use subscribed::Subscribed;
pub use trial::Trial;

/// A site that stays down is waited for no longer: what is there is for a later reading. Sites that are slow,
/// or ask for a rest, are waited for until the deadline.
const DOWN_FOR_AT_MOST: Duration = Duration::from_secs(30);

pub struct FeedPorts {
    /// Subscriptions, and what is remembered of feeds.
    pub feeds: Arc<dyn Feeds>,
    /// Where links go.
    pub links: Arc<dyn CategoryLinks>,
}

/// What reading goes by.
#[derive(Clone, Copy, Debug)]
pub struct FeedRules {
    /// No site is waited for any longer.
    pub max_wait: Duration,
    /// Redirects that are followed.
    pub max_redirects: u32,
}

/// The rules of the gate for this door: a site that can't be asked for its robots.txt has failed, and is not waited
/// for.
pub fn gate_rules(rules: GateRules) -> GateRules {
    let mut rules = GateRules { give_up_after: Some(DOWN_FOR_AT_MOST), ..rules };
    rules.robots.pages_fail_with_it = true;
    rules
}
