//! The port of links: what feeds put into categories, for the door that fetches it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::error::StoreFault;

/// A category is forgotten, as a whole, so long after something was last added to it.
pub const LINKS_TTL: Duration = Duration::from_secs(48 * 3_600);

/// The links of a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategorySet {
    /// Its name.
    pub category: String,
    /// The exact strings that were added, each once.
    pub urls: BTreeSet<String>,
}

/// Links by category.
#[async_trait]
pub trait CategoryLinks: Send + Sync {
    /// Adds links to a category, and lets it live for [`LINKS_TTL`] from now on. Returns how many were not
    /// there yet. Without links nothing changes.
    async fn add(&self, category: &str, urls: &[String]) -> Result<u64, StoreFault>;

    /// All categories that live, by name. What is added or forgotten meanwhile may or may not be seen.
    async fn snapshot(&self) -> Result<Vec<CategorySet>, StoreFault>;
}
