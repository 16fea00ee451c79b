//! What a server must be able to do to keep the politeness of many processes.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::RobotsRecord;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use super::Texts;

/// Sites as they stand.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The server's time when it read them.
    pub now: Time,
    /// What happened before this the server may have forgotten: it started anew then.
    pub lost_until: Time,
    /// What is kept of each site, in the order asked for.
    pub sites: Vec<Texts>,
}

/// What is to be kept of a site from now on, if it still stands as it was read.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which site.
    pub site: Site,
    /// As it was read.
    pub before: Texts,
    /// As it shall be.
    pub after: Texts,
    /// From when on it may be forgotten; `None`: never.
    pub forgettable_at: Option<Time>,
    /// The time by which that was decided.
    pub now: Time,
    /// It is more than a slot: a penalty, the breaker or an order. It must outlive the server.
    pub must_last: bool,
    /// There is more to say of the site than its pace: it is found by that.
    pub is_notable: bool,
    /// An order stands, which is never forgotten, however long nobody asks for the site.
    pub has_orders: bool,
}

/// A server that keeps what is known of sites.
#[async_trait]
pub trait Keeper: Send + Sync + 'static {
    /// What is kept of these sites.
    async fn read(&self, sites: &[Site]) -> Result<Reading, StoreError>;

    /// Makes each change whose site still stands as it was read, and says which were made.
    async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError>;

    /// From now on the server counts as started anew: what it says of the past can't be relied on.
    async fn distrust_the_past(&self) -> Result<(), StoreError>;

    /// The names of sites that are kept, `most` at most, in the order of their bytes, after this one;
    /// `notable`: of those only that were notable when they were last changed.
    async fn names(
        &self,
        after: &str,
        notable: bool,
        most: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Notes that an order was given to a site, and forgets that orders were given before `forget_before`.
    async fn note_order(
        &self,
        site: &Site,
        at: Time,
        forget_before: Time,
    ) -> Result<(), StoreError>;

    /// The names of sites that orders were given to, at `since` or later, and when; the earliest first,
    /// `most` at most.
    async fn ordered(&self, since: Time, most: usize) -> Result<Vec<(String, Time)>, StoreError>;

    /// What is known of the robots.txt of these origins, in order.
    async fn robots(&self, origins: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError>;

    /// Forgets what is known of the robots.txt of these origins.
    async fn forget_robots(&self, origins: &[Origin]) -> Result<(), StoreError>;

    /// Keeps what was learnt of an origin's robots.txt.
    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError>;

    /// Forgets what may be forgotten at `now`, where the server does not do it by itself.
    async fn sweep(&self, now: Time) -> Result<u64, StoreError>;
}
