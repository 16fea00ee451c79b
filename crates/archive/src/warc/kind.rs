//! The types of records.

use std::fmt;

/// The types of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// Describes the file that begins with it.
    Warcinfo,
    /// The request.
    Request,
    /// The response.
    Response,
    /// Additional information about a capture.
    Metadata,
    /// Content that was captured without protocol headers.
    Resource,
    /// A response that was the same as before.
    Revisit,
    /// Another form of captured content, such as its text.
    Conversion,
    /// The next part of a record that begins in another file.
    Continuation,
}

const NAMES: [(RecordKind, &str); 8] = [
    (RecordKind::Warcinfo, "warcinfo"),
    (RecordKind::Request, "request"),
    (RecordKind::Response, "response"),
    (RecordKind::Metadata, "metadata"),
    (RecordKind::Resource, "resource"),
    (RecordKind::Revisit, "revisit"),
    (RecordKind::Conversion, "conversion"),
    (RecordKind::Continuation, "continuation"),
];

impl RecordKind {
    pub(super) fn of(name: &[u8]) -> Option<RecordKind> {
        let is_it = |(_, known): &&(RecordKind, &str)| name.eq_ignore_ascii_case(known.as_bytes());
        NAMES.iter().find(is_it).map(|(kind, _)| *kind)
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| name);
        out.write_str(name)
    }
}
