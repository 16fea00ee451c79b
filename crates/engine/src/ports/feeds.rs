//! The port for feeds: the subscriptions, and the state of each feed between two reads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;

/// A feed whose links go into a category. A feed may have subscriptions for several categories.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscription {
    /// The category for its links.
    pub category: String,
    /// The URL of the feed, exactly as it was entered.
    pub url: String,
    /// How often it is read; `None` for the default.
    pub interval: Option<Duration>,
    /// The display name; may be empty.
    pub title: String,
}

/// The stored state of a feed. Times are by the wall clock, because they outlive processes and machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedMemory {
    /// The `ETag` of the last response that was read.
    pub etag: Option<String>,
    /// The `Last-Modified` of the last response that was read.
    pub last_modified: Option<String>,
    /// The categories that received the links of the last read.
    pub read_for: BTreeSet<String>,
    /// When it was last read or found unchanged.
    pub read_at: Option<Time>,
    /// When to read it next.
    pub due: Time,
    /// Failures since `read_at`.
    pub failures: u32,
    /// Why the last read failed.
    pub problem: Option<String>,
    /// Why it is no longer read.
    pub paused: Option<String>,
    /// The new URL after a permanent redirect.
    pub moved_to: Option<String>,
    /// Link targets that had to be looked up with a request. They are kept as long as the feed contains the link, so
    /// that each is requested only once.
    pub resolved: BTreeMap<String, String>,
}

/// A temporary exclusive right to read feeds.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The unique name of the holder.
    pub holder: &'a str,
    /// The current time, by the wall clock.
    pub now: Time,
    /// When the claim ends unless it is renewed.
    pub until: Time,
}

/// Subscriptions and the state of feeds.
#[async_trait]
pub trait Feeds: Send + Sync {
    /// Adds subscriptions, replacing those for the same feed and category. Returns how many are new.
    async fn subscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError>;

    /// Removes subscriptions, each identified by its feed and category. Returns how many existed.
    async fn unsubscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError>;

    /// All subscriptions, ordered by category and feed.
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError>;

    /// The stored state of each of these feeds.
    async fn memories(&self, urls: &[&str]) -> Result<Vec<Option<FeedMemory>>, StoreError>;

    /// Claims feeds. Returns for each whether it succeeded: it fails if another holder has the feed. A holder may renew
    /// its own claim.
    async fn claim(&self, urls: &[&str], claim: &Claim<'_>) -> Result<Vec<bool>, StoreError>;

    /// Stores the state of a feed and ends the claim, atomically. Does nothing if `holder` no longer has the claim,
    /// because another holder may have read the feed since. Returns whether the state was stored.
    async fn keep(&self, url: &str, holder: &str, memory: &FeedMemory) -> Result<bool, StoreError>;

    /// Ends claims without changing the state of the feeds.
    async fn release(&self, urls: &[&str], holder: &str) -> Result<(), StoreError>;

    /// Deletes the state of feeds. Each is then read as if for the first time.
    async fn forget(&self, urls: &[&str]) -> Result<(), StoreError>;
}
