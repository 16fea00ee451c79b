//! The port of links: what feeds put into categories, for the door that fetches it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::units::quoted;

use crate::ports::error::StoreError;

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
    async fn add(&self, category: &str, urls: &[String]) -> Result<u64, StoreError>;

    /// All categories that live, by name. What is added or forgotten meanwhile may or may not be seen.
    async fn snapshot(&self) -> Result<Vec<CategorySet>, StoreError>;
}

/// Why a text is no category's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {fix}")]
pub struct NameError {
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

/// A category's name, which is part of a key in the store.
pub fn category_name(text: &str) -> Result<String, NameError> {
    const MOST_BYTES: usize = 128;
    let name = text.trim();
    if !name.is_empty() && name.len() <= MOST_BYTES && !name.contains(char::is_control) {
        return Ok(name.to_owned());
    }
    Err(NameError {
        problem: format!("{} is not a valid category name", quoted(text)),
        fix: format!("write 1 to {MOST_BYTES} bytes without control characters"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_may_have_nearly_any_name() {
        for (text, name) in [("news", "news"), (" Wörld & more ", "Wörld & more"), ("a:*", "a:*")]
        {
            assert_eq!(category_name(text).as_deref(), Ok(name));
        }
        for text in ["", "  ", "a\nb", &"x".repeat(129)] {
            assert!(category_name(text).is_err(), "{text}");
        }
    }
}
