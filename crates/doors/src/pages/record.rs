//! The results of this door: a page with its event, or a dead letter.

use bytes::Bytes;
use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::ports::event_log::LogEvent;
use fetchwell_policy::digest::{hex, sha256_hex};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// This much of a hash is enough to tell fetches apart.
const ID_BYTES: usize = 16;

/// The result of one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageRecord {
    /// A page for the cache, and its event.
    Fetched {
        /// Text as UTF-8, anything else as received.
        content: Bytes,
        event: WebpageFetched,
    },
    /// A URL that was given up.
    DeadLetter {
        /// The exact string that was queued.
        url: String,
        details: DeadLetterDetails,
    },
}

/// The event on the topic `webpage_log`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "webpage_fetched")]
pub struct WebpageFetched {
    /// The exact string that was queued.
    pub url: String,
    /// The key under which the page is cached.
    pub cache_key: String,
    pub status_code: u16,
    /// The Content-Type header.
    pub content_type: Option<String>,
    /// The length of the cached content, in bytes.
    pub content_length: usize,
    /// The SHA-256 of the cached content, in hex.
    pub content_hash: String,
    /// When the response had been read.
    pub fetched_at: String,
}

/// What a dead letter is blamed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterFailure {
    /// The URL itself.
    UrlSpecific,
    /// This program, not the URL or its site.
    Internal,
}

/// A field of the hash `page_fetcher_dlq:details`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadLetterDetails {
    pub failure: LetterFailure,
    pub reason: String,
    /// The error message of an internal error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The status of the last response, if there was one.
    pub status_code: Option<u16>,
    /// The number of attempts, including the first.
    pub attempts: u32,
    /// When the URL was accepted: its history does not hold the time of the first failure.
    pub first_at: String,
    /// When it was given up.
    pub last_at: String,
}

/// The key under which the page of a queued URL is cached.
pub fn cache_key(queued: &str) -> String {
    format!("webpage:{}", sha256_hex(queued.as_bytes()))
}

impl PageRecord {
    /// The details of a dead letter, as JSON.
    pub(super) fn dead_letter_json(&self) -> Option<String> {
        match self {
            PageRecord::DeadLetter { details, .. } => serde_json::to_string(details).ok(),
            PageRecord::Fetched { .. } => None,
        }
    }

    /// The length of the cached content, in bytes.
    pub(super) fn content_bytes(&self) -> Option<usize> {
        match self {
            PageRecord::Fetched { content, .. } => Some(content.len()),
            PageRecord::DeadLetter { .. } => None,
        }
    }
}

impl Weighed for PageRecord {
    fn weight(&self) -> usize {
        self.content_bytes().unwrap_or(0)
    }
}

impl WebpageFetched {
    /// Converts to an event for the log. The ID identifies this fetch, so that a reader can recognize a duplicate.
    pub(super) fn to_event(&self) -> LogEvent {
        let fetch = format!("{}\n{}", self.url, self.fetched_at);
        let id = hex(&Sha256::digest(fetch)[..ID_BYTES]);
        let value = serde_json::to_string(self).unwrap_or_default();
        LogEvent { id, key: Sha256::digest(&self.url).into(), value }
    }
}
