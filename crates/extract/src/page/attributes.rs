//! The attributes of a start tag.

use memchr::memchr;

/// The names and raw values in the source after a tag's name. Any input is accepted.
pub(crate) fn parse(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let bytes = source.as_bytes();
    let mut at = 0;
    let slice = |start: usize, end: usize| source.get(start..end).unwrap_or_default();
    std::iter::from_fn(move || {
        at = skip(bytes, at, is_gap);
        let name_start = at;
        if at >= bytes.len() {
            return None;
        }
        // The first character belongs to the name even if it is `=`, so each iteration advances.
        at = skip(bytes, at + 1, |byte| !is_gap(byte) && byte != b'=');
        let name = slice(name_start, at);
        let equals = skip(bytes, at, |byte| byte.is_ascii_whitespace());
        if bytes.get(equals) != Some(&b'=') {
            return Some((name, ""));
        }
        at = skip(bytes, equals + 1, |byte| byte.is_ascii_whitespace());
        let (start, end) = value(bytes, at);
        // Skip the closing quote, if there is one.
        at = end + usize::from(start > at);
        Some((name, slice(start, end)))
    })
}

/// The start and the end of the value, without quotes.
fn value(bytes: &[u8], at: usize) -> (usize, usize) {
    match bytes.get(at) {
        Some(quote @ (b'"' | b'\'')) => {
            let inside = bytes.get(at + 1..).unwrap_or_default();
            (at + 1, at + 1 + memchr(*quote, inside).unwrap_or(inside.len()))
        }
        _ => (at, skip(bytes, at, |byte| !byte.is_ascii_whitespace())),
    }
}

fn skip(bytes: &[u8], at: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_skipped(*byte)).unwrap_or(rest.len())
}

fn is_gap(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let source = r#" a="1 > 0" B='two' c=three/x d e = "5" / ="6" é="ü" f="open"#;
        let got: Vec<_> = parse(source).collect();
        let want = [
            ("a", "1 > 0"),
            ("B", "two"),
            ("c", "three/x"),
            ("d", ""),
            ("e", "5"),
            ("=\"6\"", ""),
            ("é", "ü"),
            ("f", "open"),
        ];
        assert_eq!(got, want);
    }
}
