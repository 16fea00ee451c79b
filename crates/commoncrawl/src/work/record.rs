//! The results of captured pages.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::{Document, WarcPlace};

/// The result of one captured page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkRecord {
    /// A document, one per file and offset.
    Document(Box<Document>),
    /// A page that was read but filtered out.
    LeftOut {
        /// The filter that excluded it, as a metric label.
        filter: &'static str,
        warc: WarcPlace,
    },
    /// A page that could not be read: counted, and stored in `errors.jsonl` with its position.
    Broken(Box<BrokenPage>),
}

/// A line of `errors.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenPage {
    /// The URL of the page, if known.
    pub url: Option<String>,
    /// The URL in SURT form, with its host reversed.
    pub surt: String,
    /// Capture time, `YYYYMMDDhhmmss`.
    pub timestamp: String,
    /// The position of the capture, if known.
    pub warc: Option<WarcPlace>,
    /// The kind of error, as a metric label.
    pub kind: Cow<'static, str>,
    #[serde(default)]
    pub reason: String,
    /// The metadata from its batch, so that it can be published again. Missing in lines of earlier versions.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

impl BrokenPage {
    /// The page and its position, for the log.
    pub(super) fn place(&self) -> String {
        let name = self.url.as_ref().unwrap_or(&self.surt).escape_debug();
        match &self.warc {
            Some(WarcPlace { filename, offset, .. }) => format!("{name} in {filename} at {offset}"),
            None => format!("{name}, which has no position in the archive"),
        }
    }
}

/// What writing the documents of a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Documents that are new.
    pub(super) documents: u64,
    /// Documents that were already there, because their batch was delivered again.
    pub(super) repeated: u64,
    /// The length of the segment now.
    pub(super) segment_bytes: u64,
    /// The bytes added to it.
    pub(super) new_bytes: u64,
}
