//! WARC records, 0.17 to 1.1.

pub(crate) mod head;
mod kind;
mod reader;
mod tally;

use std::borrow::Cow;

use crate::gzip::InflateFault;
use crate::headers::{Headers, MAX_HEAD_BYTES};
use crate::http::{HttpFault, HttpMessage};

pub use kind::RecordKind;
pub use reader::{Stretch, StretchFault, WarcItem, WarcLimits, WarcReader};
pub use tally::Tally;

use head::RecordHead;

/// The longest block that a record may declare.
pub const MAX_DECLARED_BYTES: u64 = 1 << 40;

/// A record, borrowing the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its position.
    pub place: FilePosition,
    /// `1.0`, `1.1`, or one of the drafts (`0.17`, `0.18`).
    pub version: &'a str,
    pub headers: Headers<'a>,
    /// Its content, as far as it is available.
    pub block: &'a [u8],
    /// The error in it, if there is one.
    pub flaw: Option<Flaw>,
}

/// A position in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilePosition {
    /// The offset in the file, or that of the gzip member that contains it.
    pub file_offset: u64,
    /// The offset in the inflated content of the member.
    pub member_offset: u64,
}

/// An error in a record that is returned nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The block is shorter than declared: the file or its gzip member ends, or the next record
    /// begins.
    #[error("the block is cut off: {present_bytes} of {declared_bytes} bytes")]
    Cut {
        /// The length that the record declares.
        declared_bytes: u64,
        /// The available length.
        present_bytes: u64,
    },
    /// The block is longer than the limit of the caller; the rest was skipped.
    #[error("the block has {declared_bytes} bytes, more than {max_bytes}: the rest was skipped")]
    TooLong {
        /// The length that the record declares.
        declared_bytes: u64,
        /// The limit of the caller.
        max_bytes: usize,
    },
    /// The block is complete, but its gzip member is damaged.
    #[error("the block is complete, but its gzip member is damaged: {0}")]
    Damaged(#[source] InflateFault),
}

/// Why the input is not a complete record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WarcFault {
    /// The first line is not `WARC/x.y`.
    #[error("the record does not begin with a WARC version")]
    Version,
    /// There is no blank line after the headers.
    #[error("the record's headers are cut off")]
    HeadCutOff,
    /// The headers are too long.
    #[error("the record's headers are longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLong,
    /// `Content-Length` is missing, not a number, out of range, or repeated with different values.
    #[error("the record has no valid Content-Length")]
    ContentLength,
    /// The block is shorter than declared.
    #[error("the block is cut off: {present_bytes} of {declared_bytes} bytes")]
    Truncated {
        /// The value of `Content-Length`.
        declared_bytes: u64,
        /// The available length.
        present_bytes: usize,
    },
}

/// Reads the record at the start of the input, which must be complete. Blank lines before it and anything after it are
/// skipped.
pub fn parse_record(bytes: &[u8]) -> Result<Record<'_>, WarcFault> {
    let blank = blank_bytes(bytes);
    let head = RecordHead::parse(&bytes[blank..])?;
    let rest = &bytes[blank + head.bytes..];
    let declared_bytes = head.declared_bytes;
    let block = usize::try_from(declared_bytes)
        .ok()
        .and_then(|length| rest.get(..length))
        .ok_or(WarcFault::Truncated { declared_bytes, present_bytes: rest.len() })?;
    let place = FilePosition { file_offset: 0, member_offset: blank as u64 };
    Ok(Record { place, version: head.version, headers: head.headers, block, flaw: None })
}

/// The number of bytes of line breaks at the start of the input.
pub(crate) fn blank_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

impl<'a> Record<'a> {
    /// The type of the record; `None` for an unknown type, which readers should skip.
    #[must_use]
    pub fn kind(&self) -> Option<RecordKind> {
        self.headers.values("WARC-Type").next().and_then(RecordKind::of)
    }

    /// The captured URL. Some writers put it in angle brackets.
    #[must_use]
    pub fn target_uri(&self) -> Option<Cow<'a, str>> {
        let uri = self.headers.get("WARC-Target-URI")?;
        let bare = uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).map(str::to_owned);
        Some(bare.map_or(uri, Cow::Owned))
    }

    /// The block as an HTTP message.
    pub fn http(&self) -> Result<HttpMessage<'a>, HttpFault> {
        HttpMessage::parse(self.block)
    }
}
