//! Converts records to JSON lines, each with the position of its page.

use serde::Serialize;

use crate::work::document::WarcPlace;
use crate::work::record::WorkRecord;

#[derive(Default)]
pub(super) struct Lines {
    pub(super) documents: Vec<Line>,
    pub(super) errors: Vec<Line>,
    /// Pages that were read but filtered out.
    pub(super) left_out: Vec<(String, u64)>,
}

/// A line and its page.
pub(super) struct Line {
    /// File and offset; without them, a repeated line cannot be detected.
    pub(super) page: Option<(String, u64)>,
    pub(super) json: Vec<u8>,
}

impl Lines {
    pub(super) fn of(records: &[&WorkRecord]) -> Lines {
        let mut lines = Lines::default();
        for record in records {
            match record {
                WorkRecord::Document(document) => {
                    lines.documents.push(Line::of(Some(&document.warc), document));
                }
                WorkRecord::Broken(page) => lines.errors.push(Line::of(page.warc.as_ref(), page)),
                WorkRecord::LeftOut { warc, .. } => {
                    lines.left_out.push((warc.filename.clone(), warc.offset));
                }
            }
        }
        lines
    }
}

impl Line {
    fn of(warc: Option<&WarcPlace>, record: &impl Serialize) -> Line {
        // Serializing text and numbers cannot fail.
        let mut json = serde_json::to_vec(record).unwrap_or_default();
        json.push(b'\n');
        Line { page: warc.map(|warc| (warc.filename.clone(), warc.offset)), json }
    }
}
