//! What becomes of a captured page.

use std::collections::BTreeMap;

use serde::Serialize;

use super::document::{Document, WarcPlace};

/// What comes out of this door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkRecord {
    /// A document, one per file and offset.
    Document(Box<Document>),
    /// A page that could be read and is not wanted.
    LeftOut {
        /// The filter that excluded it, as a metric label.
        filter: &'static str,
        warc: WarcPlace,
    },
    /// A page that can't be read: counted, and kept in a file with its place.
    Broken(Box<BrokenPage>),
}

/// A line of the file of what can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenPage {
    /// The page's own address, as far as it has one.
    pub url: Option<String>,
    /// The same with its host reversed.
    pub surt: String,
    /// When it was captured, `YYYYMMDDhhmmss`.
    pub timestamp: String,
    /// Where its capture is, as far as that is known.
    pub warc: Option<WarcPlace>,
    /// What is wrong, as a word for counting.
    pub kind: &'static str,
    pub reason: String,
    /// What its batch says about it, so that it can be published again.
    pub metadata: BTreeMap<String, String>,
}

impl BrokenPage {
    /// Which page it is and where, for those who read the log.
    pub(super) fn place(&self) -> String {
        let name = self.url.as_ref().unwrap_or(&self.surt).escape_debug();
        match &self.warc {
            Some(WarcPlace { filename, offset, .. }) => format!("{name} in {filename} at {offset}"),
            None => format!("{name}, which has no position in the archive"),
        }
    }
}
