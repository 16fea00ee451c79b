//! The port for links: feeds add them to categories, and the `articles` command fetches them.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::units::quoted;

use crate::ports::error::StoreError;

/// A category expires as a whole this long after the last link was added.
pub const LINKS_TTL: Duration = Duration::from_secs(48 * 3_600);

/// The links of a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategorySet {
    /// Its name.
    pub category: String,
    /// The exact strings that were added, without duplicates.
    pub urls: BTreeSet<String>,
}

/// Links by category.
#[async_trait]
pub trait CategoryLinks: Send + Sync {
    /// Adds links to a category and extends its life to [`LINKS_TTL`] from now. Returns how many links are new. Does
    /// nothing if `urls` is empty.
    async fn add(&self, category: &str, urls: &[String]) -> Result<u64, StoreError>;

    /// All categories that have not expired, ordered by name. Concurrent changes may or may not be included.
    async fn snapshot(&self) -> Result<Vec<CategorySet>, StoreError>;
}

/// Why a text is not a valid category name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {fix}")]
pub struct NameError {
    /// What is wrong.
    pub problem: String,
    /// How to fix it.
    pub fix: String,
}

/// Validates the name of a category, which becomes part of a key in the store.
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
