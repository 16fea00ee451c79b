//! `fetchwell feeds`: reads feeds and stores their links by category, for `articles` to fetch.
//!
//! `round` reads all feeds that are due, through the engine's flow; each of them is `in_hand` until its last link is
//! resolved. `trial` reads one feed and stores nothing. `subscribed` merges the subscriptions, `plan` fetches a feed or
//! resolves a link, `links` sorts the links of a feed, and `memory` decides what is stored about a feed and when it is
//! due again.

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

pub use plan::{FeedReading, Validators};
pub use round::{FeedRound, Ingested};
pub use subscribed::Subscribed;
pub use trial::FeedTrial;

/// The longest wait for a site that is down: its feeds are left for a later round. Sites that are slow or sent
/// Retry-After are waited for until the deadline.
const DOWN_FOR_AT_MOST: Duration = Duration::from_secs(30);

pub struct FeedPorts {
    /// Subscriptions and the stored state of feeds.
    pub feeds: Arc<dyn Feeds>,
    /// Where links are stored, by category.
    pub links: Arc<dyn CategoryLinks>,
}

/// The rules for reading feeds.
#[derive(Clone, Copy, Debug)]
pub struct FeedRules {
    /// The deadline of a job, counted from when it is queued.
    pub max_wait: Duration,
    pub max_redirects: u32,
}

/// The gate rules of this door: a URL fails if the robots.txt of its site cannot be fetched or its site stays down.
pub fn gate_rules(rules: GateRules) -> GateRules {
    let mut rules = GateRules { give_up_after: Some(DOWN_FOR_AT_MOST), ..rules };
    rules.robots.pages_fail_with_it = true;
    rules
}
