//! WARC records, 0.17 to 1.1.

mod head;
mod kind;
mod reader;
mod source;
mod tally;

use std::borrow::Cow;

use crate::gzip::InflateFault;
use crate::headers::{Headers, MAX_HEAD_BYTES};
use crate::http::{HttpFault, HttpMessage};

pub use kind::Kind;
pub use reader::{Item, Limits, Stretch, StretchFault, WarcReader};
pub use tally::Tally;

use head::RecordHead;

/// The longest block that a record may declare.
pub const MAX_DECLARED_BYTES: u64 = 1 << 40;

/// A record, borrowing the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where it begins.
    pub place: Place,
    /// `1.0`, `1.1`, or one of the drafts (`0.17`, `0.18`).
    pub version: &'a str,
    /// Its headers.
    pub headers: Headers<'a>,
    /// What it is about; as much as there is of it.
    pub block: &'a [u8],
    /// What is wrong with it.
    pub flaw: Option<Flaw>,
}

/// Where in a file something begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes of the file before it, or before the gzip member that it is in.
    pub file_offset: u64,
    /// Bytes before it in what the member holds.
    pub member_offset: u64,
}

/// What is wrong with a record that is given all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The block is shorter than declared: the file or its gzip member ends, or the next record
    /// begins.
    #[error("the block is cut off: {present_bytes} of {declared_bytes} bytes")]
    Cut {
        /// What `Content-Length` says.
        declared_bytes: u64,
        /// What there is.
        present_bytes: u64,
    },
    /// The block is longer than the caller allows; its end was passed over.
    #[error("the block has {declared_bytes} bytes, more than {max_bytes}: its end was passed over")]
    TooLong {
        /// What `Content-Length` says.
        declared_bytes: u64,
        /// What the caller allows.
        max_bytes: usize,
    },
    /// The block is as long as declared, but the gzip member that it is in has a fault.
    #[error("the block is there, but its gzip member has a fault: {0}")]
    Damaged(#[source] InflateFault),
}

/// Why bytes are no whole record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WarcFault {
    /// The first line is not `WARC/x.y`.
    #[error("the record does not begin with a WARC version")]
    Version,
    /// The headers have no blank line behind them.
    #[error("the record's headers are cut off")]
    HeadCutOff,
    /// The headers are too long.
    #[error("the record's headers are longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLong,
    /// `Content-Length` is missing, no number, out of bounds, or said twice and differently.
    #[error("the record has no Content-Length, or none that can be used")]
    ContentLength,
    /// The block is shorter than declared.
    #[error("the block is cut off: {present_bytes} of {declared_bytes} bytes")]
    Truncated {
        /// What `Content-Length` says.
        declared_bytes: u64,
        /// What there is.
        present_bytes: usize,
    },
}

/// Reads the one record that the input begins with, and that must be whole. Blank lines before it
/// and anything behind it are passed over.
pub fn parse_record(bytes: &[u8]) -> Result<Record<'_>, WarcFault> {
    let blank = blank_bytes(bytes);
    let head = RecordHead::parse(&bytes[blank..])?;
    let rest = &bytes[blank + head.bytes..];
    let declared_bytes = head.declared_bytes;
    let block = usize::try_from(declared_bytes)
        .ok()
        .and_then(|length| rest.get(..length))
        .ok_or(WarcFault::Truncated { declared_bytes, present_bytes: rest.len() })?;
    let place = Place { file_offset: 0, member_offset: blank as u64 };
    Ok(Record { place, version: head.version, headers: head.headers, block, flaw: None })
}

/// How many bytes of line ends the input begins with.
fn blank_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

impl<'a> Record<'a> {
    /// What the record is about; none for a type that is not known, which readers are to skip.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.headers.values("WARC-Type").next().and_then(Kind::of)
    }

    /// The captured URL. Some writers put it into angle brackets.
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
