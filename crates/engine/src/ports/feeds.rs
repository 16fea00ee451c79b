//! The port of feeds: who is subscribed to what, and what is remembered of a feed from one reading to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;

/// A feed whose links go into a category. One feed may be subscribed to for several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscription {
    /// Where its links go.
    pub category: String,
    /// Where it is, exactly as it was written.
    pub url: String,
    /// How often it is read; `None`: as all are.
    pub interval: Option<Duration>,
    /// What people call it; may be empty.
    pub title: String,
}

/// What is remembered of a feed. Times are by the wall clock: they outlive processes and machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedMemory {
    /// The `ETag` of what was read last.
    pub etag: Option<String>,
    /// The `Last-Modified` of what was read last.
    pub last_modified: Option<String>,
    /// The categories that what was read last went into.
    pub read_for: BTreeSet<String>,
    /// When it was last read, or found unchanged.
    pub read_at: Option<Time>,
    /// When it is to be read next.
    pub due: Time,
    /// Failures since then.
    pub failures: u32,
    /// Why the last reading failed.
    pub problem: Option<String>,
    /// Why it is read no more.
    pub paused: Option<String>,
    /// Where it has moved for good, by its own word.
    pub moved_to: Option<String>,
    /// Where links lead that had to be asked, as long as the feed has them: nobody is asked twice.
    pub resolved: BTreeMap<String, String>,
}

/// The right to read feeds, for a while: others leave them alone until then.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Who holds it: no two do so under one name.
    pub holder: &'a str,
    /// What time it is, by the wall clock.
    pub now: Time,
    /// When it ends, unless it is claimed again.
    pub until: Time,
}

/// Subscriptions and memories.
#[async_trait]
pub trait Feeds: Send + Sync {
    /// Adds subscriptions; one that is there for the same feed and category is replaced. Returns how many
    /// were not there.
    async fn subscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError>;

    /// Takes subscriptions out, each by its feed and category. Returns how many were there.
    async fn unsubscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError>;

    /// All subscriptions, by category and feed.
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError>;

    /// What is remembered of each of these feeds.
    async fn memories(&self, urls: &[&str]) -> Result<Vec<Option<FeedMemory>>, StoreError>;

    /// Claims feeds, each unless somebody else has it. Whoever has one may claim it again.
    async fn claim(&self, urls: &[&str], claim: &Claim<'_>) -> Result<Vec<bool>, StoreError>;

    /// Keeps what is to be remembered of a feed and ends the claim, as one move. Without the claim nothing
    /// happens: somebody else has read it since. Returns whether it was kept.
    async fn keep(&self, url: &str, holder: &str, memory: &FeedMemory) -> Result<bool, StoreError>;

    /// Ends claims without a word about the feeds.
    async fn release(&self, urls: &[&str], holder: &str) -> Result<(), StoreError>;

    /// Forgets feeds: each is read as if for the first time.
    async fn forget(&self, urls: &[&str]) -> Result<(), StoreError>;
}
