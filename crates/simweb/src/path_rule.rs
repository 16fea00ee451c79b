use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exchange::Truncation;

/// What a site does for one path, or for all paths with a prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathRule {
    /// Compared with path and query; a trailing `*` makes it a prefix.
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) act: PathAction,
}

impl PathRule {
    pub(crate) fn matches(&self, path_and_query: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(prefix) => path_and_query.starts_with(prefix),
            None => path_and_query == self.path,
        }
    }
}

/// What a path returns instead of its generated page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PathAction {
    /// 302 to this location.
    Redirect(String),
    /// 301 to this location.
    Moved(String),
    Status(u16),
    /// This status, with a Retry-After header.
    Busy {
        status: u16,
        #[serde(rename = "retry_after_s", with = "crate::seconds")]
        retry_after: Duration,
    },
    /// Each matching path fails this many times; after that the later rules apply.
    FailsFirst {
        times: u32,
        status: u16,
    },
    Text {
        content_type: String,
        text: String,
    },
    /// Text with an ETag; 304 for a client that has it.
    Tagged {
        content_type: String,
        text: String,
        etag: String,
    },
    /// A compressed file; the content type is that of the file.
    Gzip {
        content_type: String,
        text: String,
    },
    /// Bytes that are not text in any encoding.
    Binary {
        content_type: String,
        size_bytes: usize,
    },
    /// The generated page, sent in this manner.
    Manner(Truncation),
}
