//! The HTTP messages in new records.
//!
//! The caller has a decoded body. With headers that describe the encoded body, readers would decode it again. So these
//! headers are adjusted to the body, and their original values are kept under names that other crawlers use, such as
//! `X-Crawler-Content-Encoding`.

/// A message as the block of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageBlock {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// The offset of the body.
    pub body_at: usize,
}

/// The headers that describe the encoding of a body, with the names under which they are kept.
const WRAPPING: [(&str, &str); 3] = [
    ("Content-Encoding", "X-Crawler-Content-Encoding"),
    ("Transfer-Encoding", "X-Crawler-Transfer-Encoding"),
    (LENGTH, "X-Crawler-Content-Length"),
];

const LENGTH: &str = "Content-Length";

/// A response with a decoded body and headers that match it.
pub fn response<'h>(
    status: u16,
    reason: &str,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
    body: &[u8],
) -> MessageBlock {
    let mut bytes = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
    let length = body.len().to_string();
    let mut has_length = false;
    let mut had_length = false;
    for (name, value) in headers {
        let is_length = name.eq_ignore_ascii_case(LENGTH);
        had_length |= is_length;
        if is_length && value == length.as_bytes() {
            if !has_length {
                push_header(&mut bytes, name, value);
            }
            has_length = true;
            continue;
        }
        let wrapping = WRAPPING.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        push_header(&mut bytes, wrapping.map_or(name, |(_, kept_as)| *kept_as), value);
    }
    // A response without a body (204, 304) need not state its length.
    if !has_length && (had_length || !body.is_empty()) {
        push_header(&mut bytes, LENGTH, length.as_bytes());
    }
    finished(bytes, body)
}

/// A request without a body.
pub fn request<'h>(
    method: &str,
    target: &str,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
) -> MessageBlock {
    let mut bytes = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
    for (name, value) in headers {
        push_header(&mut bytes, name, value);
    }
    finished(bytes, b"")
}

fn push_header(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        bytes.extend_from_slice(part);
    }
}

fn finished(mut bytes: Vec<u8>, body: &[u8]) -> MessageBlock {
    bytes.extend_from_slice(b"\r\n");
    let body_at = bytes.len();
    bytes.extend_from_slice(body);
    MessageBlock { bytes, body_at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)], body: &str, expected: &str) {
        let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        let message = response(200, "OK", headers, body.as_bytes());
        let text = String::from_utf8(message.bytes.clone()).unwrap();
        let head = expected.replace('\n', "\r\n");
        assert_eq!(text, format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}"));
        assert_eq!(&message.bytes[message.body_at..], body.as_bytes());
    }

    #[test]
    fn headers_are_made_to_fit_the_body() {
        check(&[("content-length", "4"), ("a", "b")], "body", "content-length: 4\na: b\n");
        check(
            &[("content-encoding", "br"), ("content-length", "3"), ("a", "b")],
            "body",
            "X-Crawler-Content-Encoding: br\nX-Crawler-Content-Length: 3\na: b\nContent-Length: 4\n",
        );
        check(
            &[("Transfer-Encoding", "chunked")],
            "body",
            "X-Crawler-Transfer-Encoding: chunked\nContent-Length: 4\n",
        );
        check(&[("a", "b")], "", "a: b\n");
        check(&[("content-length", "9")], "", "X-Crawler-Content-Length: 9\nContent-Length: 0\n");
        check(&[("content-length", "1"), ("content-length", "1")], "x", "content-length: 1\n");
        check(&[("content-length", "0")], "", "content-length: 0\n");
    }

    #[test]
    fn a_request_ends_with_its_head() {
        let message = request("GET", "/a?b", [("host", b"a.test".as_slice())]);
        assert_eq!(message.bytes, b"GET /a?b HTTP/1.1\r\nhost: a.test\r\n\r\n");
        assert_eq!(message.body_at, message.bytes.len());
    }
}
