//! Header lines of WARC and HTTP.

use std::borrow::Cow;

use memchr::memchr;

/// The maximum length of a head (first line and headers).
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Headers in their original order, borrowed from the bytes that they were read from. Names are case-insensitive. A
/// line that begins with a space continues the previous one; a line without a colon is ignored, because archives
/// contain such lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headers<'a>(&'a [u8]);

impl<'a> Headers<'a> {
    /// The first value of a header.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.values(name).next().map(text)
    }

    /// Every value of a header.
    pub fn all<'n>(self, name: &'n str) -> impl Iterator<Item = Cow<'a, str>> + use<'a, 'n> {
        self.values(name).map(text)
    }

    /// All names and values.
    pub fn iter(self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        Fields(self.0).map(|(name, value)| (text(name), text(value)))
    }

    /// All values of a header, not decoded.
    pub(crate) fn values<'n>(self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        Fields(self.0)
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }
}

/// The fields of a head, not decoded: a folded value keeps its line breaks.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let (field, rest) = self.0.split_at(field_bytes(self.0));
            self.0 = rest;
            if !is_folded(field)
                && let Some(colon) = memchr(b':', field)
            {
                let (name, value) = field.split_at(colon);
                return Some((name.trim_ascii(), value[1..].trim_ascii()));
            }
        }
        None
    }
}

/// The length of the first field, including its continuation lines. A line without a colon has no continuations.
fn field_bytes(lines: &[u8]) -> usize {
    let mut end = line_bytes(lines);
    let is_field = memchr(b':', &lines[..end]).is_some();
    while is_field && is_folded(&lines[end..]) {
        end += line_bytes(&lines[end..]);
    }
    end
}

fn is_folded(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'))
}

/// The length of the first line, including its line break.
fn line_bytes(bytes: &[u8]) -> usize {
    memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)
}

/// Decodes a name or a value. Folded lines are joined into one value.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains('\n') {
        return text;
    }
    let parts: Vec<&str> = text.split('\n').map(str::trim).collect();
    Cow::Owned(parts.join(" "))
}

/// The first line and the headers of a head, and the offset of what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) first_line: &'a [u8],
    pub(crate) headers: Headers<'a>,
    pub(crate) end: usize,
}

/// Why a head cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadFault {
    /// The input ends before the head does.
    Unended,
    /// The head goes on beyond [`MAX_HEAD_BYTES`].
    TooLong,
}

/// Reads a head up to its blank line. Each line may end in CRLF or LF.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Head<'_>, HeadFault> {
    let window = bytes.get(..MAX_HEAD_BYTES).unwrap_or(bytes);
    let is_whole_input = window.len() == bytes.len();
    let first = line_bytes(window);
    let mut at = first;
    while let Some(line_end) = memchr(b'\n', &window[at..]) {
        if matches!(&window[at..at + line_end], b"" | b"\r") {
            return Ok(Head {
                first_line: window[..first].trim_ascii_end(),
                headers: Headers(&window[first..at]),
                end: at + line_end + 1,
            });
        }
        at += line_end + 1;
    }
    Err(if is_whole_input { HeadFault::Unended } else { HeadFault::TooLong })
}

/// The head that is all of the input: its blank line is missing.
pub(crate) fn whole_head(bytes: &[u8]) -> Head<'_> {
    let (first_line, headers) = bytes.split_at(line_bytes(bytes));
    Head { first_line: first_line.trim_ascii_end(), headers: Headers(headers), end: bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(head: &str) -> Vec<(String, String)> {
        let head = read_head(head.as_bytes()).unwrap();
        head.headers.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn lines_are_read_as_they_are_meant() {
        for (lines, want) in [
            ("A: b\r\nC:d\r\n", vec![("A", "b"), ("C", "d")]),
            ("A: b\nC :  d \n", vec![("A", "b"), ("C", "d")]),
            ("A: b\r\n\tc\n  d\r\na: e\r\n", vec![("A", "b c d"), ("a", "e")]),
            ("no colon\r\n folded: to nothing\r\nA:\r\n", vec![("A", "")]),
            (" folded: to the first line\r\nA: b:c\r\n", vec![("A", "b:c")]),
            ("", vec![]),
        ] {
            for blank in ["\r\n", "\n"] {
                let want: Vec<_> = want.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
                assert_eq!(fields(&format!("first\r\n{lines}{blank}A: body")), want, "{lines:?}");
            }
        }
    }

    #[test]
    fn values_that_are_no_text_are_given_as_far_as_they_are() {
        let head = read_head(b"first\nA: \xffb\n\nrest").unwrap();
        assert_eq!(head.headers.get("a").as_deref(), Some("\u{fffd}b"));
        assert_eq!((head.first_line, head.end), (b"first".as_slice(), 13));
    }

    #[test]
    fn a_head_ends_at_its_blank_line_or_is_none() {
        assert_eq!(read_head(b""), Err(HeadFault::Unended));
        assert_eq!(read_head(b"first\r\n"), Err(HeadFault::Unended));
        assert_eq!(read_head(b"first\r\nA: b\r\n\r"), Err(HeadFault::Unended));
        let long = format!("first\n{}\n", "a: b\n".repeat(MAX_HEAD_BYTES / 5));
        assert_eq!(read_head(long.as_bytes()), Err(HeadFault::TooLong));
    }
}
