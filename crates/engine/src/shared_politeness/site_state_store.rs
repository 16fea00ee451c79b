//! The operations that a server must support to keep politeness state for many processes.

use crate::ports::error::StoreError;
use crate::ports::politeness::RobotsRecord;
use async_trait::async_trait;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use super::Texts;

/// The stored state of sites.
#[derive(Clone, Debug)]
pub struct SiteStates {
    /// The server's time when it read them.
    pub now: Time,
    /// The server restarted at this time, so it may have lost what happened before.
    pub lost_until: Time,
    /// The stored texts of each site, in the order of the request.
    pub sites: Vec<Texts>,
}

/// A new state for a site, to be written only if the site has not changed since it was read.
#[derive(Clone, Debug)]
pub struct Change {
    /// The site to change.
    pub site: Site,
    /// The state that was read.
    pub before: Texts,
    /// The new state.
    pub after: Texts,
    /// When the state may be deleted; `None` for never.
    pub forgettable_at: Option<Time>,
    /// The server's time that the decision was based on.
    pub now: Time,
    /// Whether more than a slot changes (a penalty, the breaker or an order), so that the change must survive a crash.
    pub must_last: bool,
    /// Whether the site is listed as notable: there is more to report than its pace.
    pub is_notable: bool,
    /// Whether an order is in effect. Such a state is never deleted, even if the site is not used for a long time.
    pub has_orders: bool,
}

/// A server that stores the state of sites.
#[async_trait]
pub trait SiteStateStore: Send + Sync + 'static {
    /// Reads the state of these sites.
    async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError>;

    /// Applies each change whose site has not changed since it was read, and returns which were applied.
    async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError>;

    /// Makes the server count as restarted now, so that its record of the past is not trusted.
    async fn distrust_the_past(&self) -> Result<(), StoreError>;

    /// Up to `most` names of stored sites after `after`, in byte order. With `notable`, only sites that were notable at
    /// their last change.
    async fn names(
        &self,
        after: &str,
        notable: bool,
        most: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Records that an order was given to a site, and deletes such records from before `forget_before`.
    async fn note_order(
        &self,
        site: &Site,
        at: Time,
        forget_before: Time,
    ) -> Result<(), StoreError>;

    /// Up to `most` sites that were given orders at `since` or later, with the times, earliest first.
    async fn ordered(&self, since: Time, most: usize) -> Result<Vec<(String, Time)>, StoreError>;

    /// The robots.txt records of these origins, in order.
    async fn robots(&self, origins: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError>;

    /// Deletes the robots.txt records of these origins.
    async fn forget_robots(&self, origins: &[Origin]) -> Result<(), StoreError>;

    /// Stores the robots.txt record of an origin.
    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError>;

    /// Deletes what may be deleted at `now`, unless the server expires it by itself.
    async fn sweep(&self, now: Time) -> Result<u64, StoreError>;
}
