//! One WARC record.

use std::ops::Range;

use crate::headers::{HeadFault, Headers, MAX_HEAD_BYTES, read_head};
use crate::http::{HttpFault, HttpPayload, parse_response};
use crate::line::number;

/// The longest payload that is accepted.
pub const MAX_PAYLOAD_BYTES: u64 = 1024 * 1024 * 1024;

/// A record, borrowing the bytes it was parsed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarcRecord<'a> {
    /// `1.0`, `1.1`, or one of the drafts (`0.17`, `0.18`).
    pub version: String,
    /// The record's own headers.
    pub headers: Headers,
    /// Where in the input the payload stands.
    pub payload_range: Range<usize>,
    payload: &'a [u8],
}

/// Why the bytes are no whole record.
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
    /// The payload is shorter than declared.
    #[error("the payload is cut off: {present_bytes} of {declared_bytes} bytes")]
    Truncated {
        /// What `Content-Length` says.
        declared_bytes: u64,
        /// What there is.
        present_bytes: usize,
    },
}

/// Parses the record at the beginning of the input. Blank lines before it and anything behind it
/// are passed over.
pub fn parse_record(bytes: &[u8]) -> Result<WarcRecord<'_>, WarcFault> {
    let blank_bytes = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let record = bytes.get(blank_bytes..).unwrap_or_default();
    if !record.starts_with(b"WARC/") {
        return Err(WarcFault::Version);
    }
    let head = read_head(record).map_err(|fault| match fault {
        HeadFault::Unended => WarcFault::HeadCutOff,
        HeadFault::TooLong => WarcFault::HeadTooLong,
    })?;
    let version = version(&head.first_line).ok_or(WarcFault::Version)?;
    let declared_bytes = content_length(&head.headers).ok_or(WarcFault::ContentLength)?;
    let start = blank_bytes + head.end;
    let rest = bytes.get(start..).unwrap_or_default();
    let payload = usize::try_from(declared_bytes)
        .ok()
        .and_then(|length| rest.get(..length))
        .ok_or(WarcFault::Truncated { declared_bytes, present_bytes: rest.len() })?;
    let payload_range = start..start + payload.len();
    Ok(WarcRecord { version, headers: head.headers, payload_range, payload })
}

fn version(first_line: &str) -> Option<String> {
    let version = first_line.strip_prefix("WARC/")?.trim();
    let (major, minor) = version.split_once('.')?;
    (number(major).is_some() && number(minor).is_some()).then(|| version.to_owned())
}

fn content_length(headers: &Headers) -> Option<u64> {
    let mut lengths = headers.all("Content-Length").map(number);
    let length = lengths.next()??;
    let is_agreed = lengths.all(|other| other == Some(length));
    (is_agreed && length <= MAX_PAYLOAD_BYTES).then_some(length)
}

impl<'a> WarcRecord<'a> {
    /// What the record is about.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// `response`, `request`, `warcinfo`, …
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.headers.get("WARC-Type")
    }

    /// The captured URL. Some writers put it into angle brackets.
    #[must_use]
    pub fn target_uri(&self) -> Option<&str> {
        let uri = self.headers.get("WARC-Target-URI")?;
        Some(uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(uri))
    }

    /// The payload as an HTTP response.
    pub fn http_payload(&self) -> Result<HttpPayload<'a>, HttpFault> {
        parse_response(self.payload)
    }
}
