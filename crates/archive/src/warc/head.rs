//! The head of a record: its start, and what it declares.

use memchr::memchr_iter;

use super::{MAX_DECLARED_BYTES, WarcFault};
use crate::headers::{HeadFault, Headers, read_head};
use crate::line::number;

/// The first bytes of a record, compared without regard to case, because some writers use lower case.
const START: &[u8] = b"WARC/";

/// The length of the longest version line that is recognized: `WARC/1.1` and its line break.
pub(crate) const MAX_VERSION_LINE_BYTES: usize = 16;

pub(crate) struct RecordHead<'a> {
    pub(crate) version: &'a str,
    pub(crate) headers: Headers<'a>,
    pub(crate) declared_bytes: u64,
    /// The length of the head.
    pub(crate) bytes: usize,
}

impl<'a> RecordHead<'a> {
    /// Parses the head at the start of the input.
    pub(crate) fn parse(record: &'a [u8]) -> Result<RecordHead<'a>, WarcFault> {
        if !starts_record(record) {
            let is_cut = !record.is_empty() && is_truncated_start(record);
            return Err(if is_cut { WarcFault::HeadCutOff } else { WarcFault::Version });
        }
        let head = read_head(record).map_err(|fault| match fault {
            HeadFault::Unended => WarcFault::HeadCutOff,
            HeadFault::TooLong => WarcFault::HeadTooLong,
        })?;
        Ok(RecordHead {
            version: version(head.first_line).ok_or(WarcFault::Version)?,
            headers: head.headers,
            declared_bytes: content_length(head.headers).ok_or(WarcFault::ContentLength)?,
            bytes: head.end,
        })
    }
}

/// Whether the input begins like a record.
pub(crate) fn starts_record(bytes: &[u8]) -> bool {
    bytes.get(..START.len()).is_some_and(|found| found.eq_ignore_ascii_case(START))
}

/// Whether the input is empty or ends within the first bytes of a record.
pub(crate) fn is_truncated_start(bytes: &[u8]) -> bool {
    START.get(..bytes.len()).is_some_and(|found| found.eq_ignore_ascii_case(bytes))
}

/// The next line, after the first byte, that looks like the start of a record.
pub(crate) fn next_start(bytes: &[u8]) -> Option<usize> {
    memchr_iter(b'\n', bytes).map(|line_end| line_end + 1).find(|at| {
        let line = &bytes[*at..];
        starts_record(line) && line.split(|byte| *byte == b'\n').next().is_some_and(is_version_line)
    })
}

/// The same, but stricter: the following line must be a header of a record. So a page that mentions WARC is not taken
/// for one.
pub(crate) fn next_head(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = next_start(&bytes[from..]) {
        let at = from + found;
        let second_line = bytes[at..].splitn(3, |byte| *byte == b'\n').nth(1).unwrap_or_default();
        let begins_with = |name: &[u8]| {
            second_line.get(..name.len()).is_some_and(|line| line.eq_ignore_ascii_case(name))
        };
        if begins_with(b"WARC-") || begins_with(b"Content-") {
            return Some(at);
        }
        from = at;
    }
    None
}

fn is_version_line(line: &[u8]) -> bool {
    line.len() < MAX_VERSION_LINE_BYTES && version(line.trim_ascii_end()).is_some()
}

/// The version in a line that begins a record.
fn version(first_line: &[u8]) -> Option<&str> {
    let version = str::from_utf8(first_line.get(START.len()..)?).ok()?.trim();
    let (major, minor) = version.split_once('.')?;
    (number(major).is_some() && number(minor).is_some()).then_some(version)
}

fn content_length(headers: Headers<'_>) -> Option<u64> {
    let stated = |value| str::from_utf8(value).ok().and_then(number);
    let mut lengths = headers.values("Content-Length").map(stated);
    let length = lengths.next()??;
    let is_agreed = lengths.all(|other| other == Some(length));
    (is_agreed && length <= MAX_DECLARED_BYTES).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_begin_with_a_line_of_their_own() {
        for (bytes, want) in [
            ("xWARC/1.0\r\nWARC-Type: a", None),
            ("WARC/1.0\r\nWARC-Type: a", None),
            ("x\nWARC/1.0\r\nWARC-Type: a", Some(2)),
            ("x\nWARC/0.17\ncontent-length: 1", Some(2)),
            ("x\nwarc/1.0\r\nwarc-type: a", Some(2)),
            ("x\nWARC/1.0 is a version\nWARC-Type: a", None),
            ("x\nWARC/1.0\nis a version\nWARC/1.1\nWARC-Type: a", Some(24)),
            ("x\nWARC/one\nWARC-Type: a", None),
        ] {
            assert_eq!(next_head(bytes.as_bytes()), want, "{bytes:?}");
        }
        assert_eq!(next_start(b"x\nWARC/1.0\r\nanything"), Some(2));
    }
}
