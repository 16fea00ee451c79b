use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exchange::Manner;

/// What a site does at one path, or at all paths with a prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathRule {
    /// Compared with path and query; a `*` at its end makes it a prefix.
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) act: Act,
}

impl PathRule {
    pub(crate) fn matches(&self, path_and_query: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(prefix) => path_and_query.starts_with(prefix),
            None => path_and_query == self.path,
        }
    }
}

/// What happens at a path in place of its generated page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// 302 to this location.
    Redirect(String),
    /// 301 to this location.
    Moved(String),
    Status(u16),
    /// This status, and when to come back.
    Busy {
        status: u16,
        #[serde(rename = "retry_after_s", with = "crate::seconds")]
        retry_after: Duration,
    },
    /// Each matching path fails this often; after that the later rules hold.
    FailsFirst {
        times: u32,
        status: u16,
    },
    Text {
        content_type: String,
        text: String,
    },
    /// Text with an ETag: 304 for whoever has it.
    Tagged {
        content_type: String,
        text: String,
        etag: String,
    },
    /// A file that was compressed: its type is that of the file.
    Gzip {
        content_type: String,
        text: String,
    },
    /// Bytes that are no text in any encoding.
    Binary {
        content_type: String,
        size_bytes: usize,
    },
    /// The generated page, but in this manner.
    Manner(Manner),
}
