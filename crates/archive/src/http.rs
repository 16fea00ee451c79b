//! The HTTP message in a record.

use crate::body::{Body, Wrapping};
use crate::headers::{HeadFault, Headers, MAX_HEAD_BYTES, read_head, whole_head};

/// A captured message, borrowing the record that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpMessage<'a> {
    pub headers: Headers<'a>,
    /// The bytes after the blank line, as captured: not decoded.
    pub raw_body: &'a [u8],
    first_line: &'a [u8],
}

/// Why a block is not an HTTP message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFault {
    /// The first line is neither `HTTP/x.y STATUS …` nor `METHOD TARGET HTTP/x.y`.
    #[error("the block begins with neither an HTTP status line nor a request line")]
    FirstLine,
    /// The headers are too long.
    #[error("the message's headers are longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLong,
}

impl<'a> HttpMessage<'a> {
    /// Splits a block into its head and its body. A head without its final blank line has no body.
    pub fn parse(block: &'a [u8]) -> Result<HttpMessage<'a>, HttpFault> {
        let head = match read_head(block) {
            Ok(head) => head,
            Err(_) if !has_first_line(block) => return Err(HttpFault::FirstLine),
            Err(HeadFault::Unended) => whole_head(block),
            Err(HeadFault::TooLong) => return Err(HttpFault::HeadTooLong),
        };
        let raw_body = block.get(head.end..).unwrap_or_default();
        let message = HttpMessage { headers: head.headers, raw_body, first_line: head.first_line };
        let is_message = message.status().is_some() || is_request_line(head.first_line);
        is_message.then_some(message).ok_or(HttpFault::FirstLine)
    }

    /// The status of a response; `None` for a request.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let line = self.first_line.strip_prefix(b"HTTP/")?;
        let code = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1)?;
        let code: u16 = str::from_utf8(code).ok()?.parse().ok()?;
        (100..=999).contains(&code).then_some(code)
    }

    /// The decoded body, at most `max_bytes` of it. It is decoded into `scratch`; a body without encodings is borrowed
    /// from the record.
    pub fn body<'b>(&self, scratch: &'b mut Vec<u8>, max_bytes: usize) -> Body<'b>
    where
        'a: 'b,
    {
        Wrapping::of(self.headers).undo(self.raw_body, scratch, max_bytes)
    }

    /// Whether the decoded body has more than `max_bytes`. Nothing of it is kept, so a decompression bomb takes no
    /// memory, only the time to decode that much.
    #[must_use]
    pub fn body_exceeds(&self, max_bytes: usize) -> bool {
        Wrapping::of(self.headers).exceeds(self.raw_body, max_bytes)
    }
}

fn has_first_line(block: &[u8]) -> bool {
    let line = block.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    line.starts_with(b"HTTP/") || is_request_line(line)
}

fn is_request_line(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == b' ');
    let is_method = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_uppercase);
    let has_method = words.next().is_some_and(is_method);
    has_method && words.next_back().is_some_and(|last| last.starts_with(b"HTTP/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_bodies_are_told_apart_at_the_real_blank_line() {
        for (block, body) in [
            ("HTTP/1.0 404 Not\nA: b\n\nx\r\n\r\ny", "x\r\n\r\ny"),
            ("HTTP/1.0 404 Not\r\nA: b\n\r\nx", "x"),
            ("HTTP/1.0 404\r\n\r\n", ""),
            ("HTTP/1.0  404 Not\r\nno colon\r\nA: b\r\n folded\r\n\r\n\n", "\n"),
        ] {
            let http = HttpMessage::parse(block.as_bytes()).unwrap();
            assert_eq!((http.status(), http.raw_body), (Some(404), body.as_bytes()), "{block:?}");
        }
        let request = HttpMessage::parse(b"POST /a b HTTP/1.1\r\nA: b\r\n\r\nx").unwrap();
        assert_eq!((request.status(), request.raw_body), (None, b"x".as_slice()));
    }

    /// Some crawlers leave out the last blank line of a response without a body; warcio reads it nevertheless.
    #[test]
    fn a_head_may_end_without_its_blank_line() {
        for block in
            ["HTTP/1.1 301 Moved\r\nA: b\r\n", "HTTP/1.1 301\nA: b", "HTTP/1.1 301\nA: b\n\r"]
        {
            let http = HttpMessage::parse(block.as_bytes()).unwrap();
            assert_eq!((http.status(), http.raw_body), (Some(301), b"".as_slice()), "{block:?}");
            assert_eq!(http.headers.get("a").as_deref(), Some("b"), "{block:?}");
        }
        assert_eq!(HttpMessage::parse(b"HTTP/1.1 204").unwrap().status(), Some(204));
    }

    #[test]
    fn faults_are_named() {
        for (block, want) in [
            ("", HttpFault::FirstLine),
            ("<html>", HttpFault::FirstLine),
            ("<html>\n\n", HttpFault::FirstLine),
            ("HTTP/1.1 yes\r\n\r\n", HttpFault::FirstLine),
            ("HTTP/1.1 99\r\n\r\n", HttpFault::FirstLine),
            ("HTTP/1.1 yes", HttpFault::FirstLine),
            (&format!("HTTP/1.1 200\n{}", "a: b\n".repeat(20_000)), HttpFault::HeadTooLong),
        ] {
            assert_eq!(HttpMessage::parse(block.as_bytes()), Err(want), "{block:.40}");
        }
    }
}
