//! The line that begins a record.

use std::net::IpAddr;

use memchr::{memchr, memchr_iter};

use crate::line::number;
use crate::warc::{MAX_DECLARED_BYTES, StretchFault, WarcFault};

/// The URL of the record that describes the file.
const FILE_DESCRIPTION: &[u8] = b"filedesc://";

/// The longest line that is recognized. Most of it is the URL.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024;

/// No scheme of a captured URL is longer.
const MAX_SCHEME_BYTES: usize = 16;

/// The line, borrowed. Version 1: URL, IP address, time, media type, length. Version 2 has more fields before the
/// length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArcHead<'a> {
    pub(crate) url: &'a [u8],
    pub(crate) time: &'a [u8],
    pub(crate) media_type: &'a [u8],
    pub(crate) declared_bytes: u64,
    /// The length of the line, including its line break.
    pub(crate) bytes: usize,
}

impl<'a> ArcHead<'a> {
    /// Parses the line at the start of the input.
    pub(crate) fn parse(record: &'a [u8]) -> Result<ArcHead<'a>, StretchFault> {
        let window = record.get(..MAX_LINE_BYTES).unwrap_or(record);
        if let Some(line_end) = memchr(b'\n', window) {
            return of_line(&window[..=line_end]).ok_or(StretchFault::ArcLine);
        }
        let is_whole_input = window.len() == record.len();
        Err(match starts_record(window) || is_truncated_start(window) {
            true if is_whole_input => StretchFault::Record(WarcFault::HeadCutOff),
            true => StretchFault::ArcLineTooLong,
            false => StretchFault::ArcLine,
        })
    }

    /// Whether the record describes the file.
    pub(crate) fn is_file_description(&self) -> bool {
        self.url.starts_with(FILE_DESCRIPTION)
    }
}

/// The IP address and the time are searched for, because some URLs contain spaces.
fn of_line(line: &[u8]) -> Option<ArcHead<'_>> {
    let bytes = line.len();
    let line = line.trim_ascii_end();
    let declared_bytes = number(line.rsplit(|byte| *byte == b' ').next()?)?;
    if !starts_record(line) || declared_bytes > MAX_DECLARED_BYTES {
        return None;
    }
    memchr_iter(b' ', line).find_map(|url_end| {
        let mut fields = line[url_end + 1..].split(|byte| *byte == b' ');
        let is_address = is_address(fields.next()?);
        let time = fields.next().filter(|time| is_address && is_time(time))?;
        let media_type = fields.next()?;
        fields.next()?;
        Some(ArcHead { url: &line[..url_end], time, media_type, declared_bytes, bytes })
    })
}

/// The record that describes the file has `0` instead of an address in some files.
fn is_address(field: &[u8]) -> bool {
    let is_ip = |text: &str| text.parse::<IpAddr>().is_ok();
    field == b"0" || str::from_utf8(field).is_ok_and(is_ip)
}

/// `YYYYMMDDhhmmss`; some writers left out the seconds.
fn is_time(field: &[u8]) -> bool {
    matches!(field.len(), 12 | 14) && field.iter().all(u8::is_ascii_digit)
}

/// Whether the input begins like a record: with a URL. The rest of the line may be missing.
pub(crate) fn starts_record(bytes: &[u8]) -> bool {
    let scheme = scheme_bytes(bytes);
    let after = bytes.get(scheme..).unwrap_or_default();
    scheme > 0 && matches!(after, [b':', next, ..] if next.is_ascii_graphic())
}

/// Whether the input is empty or ends within the first bytes of a record.
pub(crate) fn is_truncated_start(bytes: &[u8]) -> bool {
    let rest = bytes.get(scheme_bytes(bytes)..).unwrap_or_default();
    rest.is_empty() || rest == b":"
}

fn scheme_bytes(bytes: &[u8]) -> usize {
    let scheme = bytes.iter().take(MAX_SCHEME_BYTES);
    scheme.take_while(|byte| byte.is_ascii_alphanumeric()).count()
}

/// The next line, after the first byte, that is the head of a record.
pub(crate) fn next_head(bytes: &[u8]) -> Option<usize> {
    let mut starts = memchr_iter(b'\n', bytes).map(|line_end| line_end + 1);
    // A line that does not begin with a URL is not searched for its end, which may be far away.
    starts.find(|at| starts_record(&bytes[*at..]) && ArcHead::parse(&bytes[*at..]).is_ok())
}

/// Whether a file begins with these bytes: with its description, or with any other record.
pub(crate) fn begins_file(bytes: &[u8]) -> bool {
    bytes.starts_with(FILE_DESCRIPTION) || ArcHead::parse(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions_are_read() {
        for (line, url, bytes) in [
            ("http://a.test/ 192.0.2.1 20090101000000 text/html 2\n", "http://a.test/", 2),
            ("http://a.test/ 192.0.2.1 200901010000 text/html 2\r\n", "http://a.test/", 2),
            ("http://a.test/a b 2001:db8::1 20090101000000 a/b; c=d 3\n", "http://a.test/a b", 3),
            (
                "http://a.test/ 192.0.2.1 20090101000000 a/b 200 x - 99 a.arc 4\n",
                "http://a.test/",
                4,
            ),
            ("dns:a.test 192.0.2.1 20090101000000 text/dns 5\n", "dns:a.test", 5),
            ("filedesc://a.arc 0 19960923142103 text/plain 76\n", "filedesc://a.arc", 76),
        ] {
            let head = ArcHead::parse(line.as_bytes()).unwrap();
            assert_eq!((head.url, head.declared_bytes), (url.as_bytes(), bytes), "{line}");
            assert_eq!(head.bytes, line.len());
        }
    }

    #[test]
    fn other_lines_have_typed_faults() {
        let cut_off = StretchFault::Record(WarcFault::HeadCutOff);
        let too_long = StretchFault::ArcLineTooLong;
        let long = format!("http://a.test/{}", "a".repeat(MAX_LINE_BYTES));
        for (line, fault) in [
            ("", cut_off.clone()),
            ("htt", cut_off.clone()),
            ("http:", cut_off.clone()),
            ("http://a.test/ 192.0.2.1 20090101000000 text/html 2", cut_off),
            (long.as_str(), too_long),
            ("192.0.2.1 20090101000000 text/html 2\n", StretchFault::ArcLine),
            ("http://a.test/ 192.0.2.1 2009 text/html 2\n", StretchFault::ArcLine),
            ("http://a.test/ 192.0.2.1 20090101000000 2\n", StretchFault::ArcLine),
            ("http://a.test/ 192.0.2.1 20090101000000 text/html -2\n", StretchFault::ArcLine),
            (
                "http://a.test/ 192.0.2.1 20090101000000 text/html 9999999999999\n",
                StretchFault::ArcLine,
            ),
            ("<p>No record.", StretchFault::ArcLine),
            ("\n", StretchFault::ArcLine),
        ] {
            assert_eq!(ArcHead::parse(line.as_bytes()), Err(fault), "{line:.60}");
        }
    }

    #[test]
    fn records_begin_with_a_line_of_their_own() {
        let line = "http://a.test/ 192.0.2.1 20090101000000 text/html 2\n";
        for (bytes, want) in [
            (line.to_owned(), None),
            (format!("x\n{line}"), Some(2)),
            (format!("x\nhttp://a.test/\n{line}"), Some(17)),
            (format!("x\n {line}"), None),
            (format!("x\n{}", line.trim_end()), None),
        ] {
            assert_eq!(next_head(bytes.as_bytes()), want, "{bytes:?}");
        }
    }
}
