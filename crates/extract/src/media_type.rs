//! Detects the kind of a body: by its `Content-Type`, else by its first bytes.

/// How much of a body without `Content-Type` is examined.
const SNIFF_BYTES: usize = 1024;

/// Types that are text although they do not begin with `text/`.
const TEXT_TYPES: [&str; 9] = [
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/rtf",
    "application/x-javascript",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
];

const HTML_TYPES: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// Whether a body is text, which is stored as UTF-8; anything else is stored as received.
#[must_use]
pub fn is_text(content_type: Option<&str>, body: &[u8]) -> bool {
    match essence(content_type) {
        Some(kind) => {
            kind.starts_with("text/")
                || kind.ends_with("+xml")
                || kind.ends_with("+json")
                || TEXT_TYPES.contains(&kind.as_str())
        }
        None => looks_like_text(beginning(body)),
    }
}

/// Whether a body is a page that [`extract`](crate::extract) can read.
#[must_use]
pub fn is_html(content_type: Option<&str>, body: &[u8]) -> bool {
    match essence(content_type) {
        Some(kind) => HTML_TYPES.contains(&kind.as_str()),
        None => looks_like_html(beginning(body)),
    }
}

/// The value of one parameter of a `Content-Type`, without its quotes.
pub(crate) fn parameter<'v>(content_type: &'v str, name: &str) -> Option<&'v str> {
    content_type.split(';').skip(1).find_map(|part| {
        let (key, value) = part.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (key.trim().eq_ignore_ascii_case(name) && !value.is_empty()).then_some(value)
    })
}

/// `type/subtype` in lower case. `None` if the header is missing or is not a media type.
fn essence(content_type: Option<&str>) -> Option<String> {
    let kind = content_type?.split(';').next()?.trim().to_ascii_lowercase();
    kind.split_once('/').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty()).then_some(kind)
}

fn beginning(body: &[u8]) -> &[u8] {
    body.get(..SNIFF_BYTES).unwrap_or(body)
}

/// Text has a byte order mark, or no control bytes except those for lines and terminals.
fn looks_like_text(head: &[u8]) -> bool {
    let is_binary = |byte: &u8| matches!(byte, 0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F);
    encoding_rs::Encoding::for_bom(head).is_some() || !head.iter().any(is_binary)
}

fn looks_like_html(head: &[u8]) -> bool {
    let head = head.to_ascii_lowercase();
    let openings: [&[u8]; 4] = [b"<!doctype html", b"<html", b"<head", b"<body"];
    looks_like_text(&head)
        && openings.iter().any(|opening| head.windows(opening.len()).any(|part| part == *opening))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_decides() {
        for kind in
            ["text/plain", "TEXT/HTML; charset=x", "application/rss+xml", "application/json"]
        {
            assert!(is_text(Some(kind), b"\0"), "{kind}");
        }
        for kind in ["image/png", "application/pdf", "application/octet-stream"] {
            assert!(!is_text(Some(kind), b"words"), "{kind}");
        }
        assert!(is_html(Some(" text/html ;charset=utf-8"), b""));
        assert!(!is_html(Some("text/plain"), b"<html>"));
    }

    #[test]
    fn without_a_header_the_body_is_sniffed() {
        assert!(is_text(None, "naïve words\r\n".as_bytes()));
        assert!(is_text(Some("nonsense"), b""));
        assert!(!is_text(None, b"\x89PNG\r\n\x1A\n\0\0\0"));
        assert!(is_html(None, b"\n<!-- hi --><!DOCTYPE HTML><p>"));
        assert!(!is_html(None, b"{\"a\": 1}"));
    }

    #[test]
    fn parameters_are_found() {
        assert_eq!(parameter("text/html; a=b; Charset = \"x\"", "charset"), Some("x"));
        assert_eq!(parameter("text/html; charset=", "charset"), None);
    }
}
