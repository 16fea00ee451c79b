//! What the tools need from other parts of the program.

use async_trait::async_trait;
use serde_json::Value;
use thiserror::Error;

/// Answers questions that need more than the store of the API.
#[async_trait]
pub trait Lookups: Send + Sync {
    /// Whether a URL would be fetched, when, and why: what `fetchwell explain --json` prints. It may fetch robots.txt.
    async fn explain(&self, url: &str) -> Result<Value, LookupFailure>;

    /// The captures that an archive has of a page, of all pages below it, or of a domain.
    async fn captures(&self, query: &ArchiveQuery, limit: usize)
    -> Result<Captures, LookupFailure>;

    /// A captured page: the newest capture with status 200, or the newest one whose time begins with `timestamp`.
    /// `None` if there is no such capture.
    async fn captured_page(
        &self,
        query: &ArchiveQuery,
        timestamp: Option<&str>,
    ) -> Result<Option<ArchivedPage>, LookupFailure>;
}

/// What to look for in an archive.
#[derive(Clone, Debug)]
pub struct ArchiveQuery {
    /// A URL; `example.com/docs/*` or `*.example.com` for the captures of many pages.
    pub pattern: String,
    /// The name of the crawl, if it is not the one in the settings.
    pub crawl: Option<String>,
}

/// Captures in the index of a crawl.
#[derive(Clone, Debug)]
pub struct Captures {
    /// The crawl.
    pub crawl: String,
    /// One JSON object per capture.
    pub captures: Vec<Value>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A page from an archive.
#[derive(Clone, Debug)]
pub struct ArchivedPage {
    pub url: String,
    /// When it was captured: YYYYMMDDhhmmss.
    pub timestamp: String,
    /// The page as Markdown.
    pub markdown: String,
}

/// Why a lookup failed.
#[derive(Debug, Error)]
pub enum LookupFailure {
    /// The query is invalid; repeating it does not help.
    #[error("{0}")]
    Invalid(String),
    /// The site or the archive failed.
    #[error("{0}")]
    Failed(String),
    /// This program failed.
    #[error("{0}")]
    Internal(String),
}
