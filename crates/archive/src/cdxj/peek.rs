//! Finds a field of a line without parsing it.
//!
//! This works only for lines that look valid: a key, 14 digits, and something in braces up to the end of the line. Any
//! other line must be parsed, to find out whether it is truncated or not a line at all.
//!
//! A JSON object without escapes and nested objects is simple: a quoted name that occurs once and is followed by a
//! colon is a field name, and the next quoted text is its value. If the object is not that simple, the line must be
//! parsed.

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

const TIMESTAMP_DIGITS: usize = 14;

/// An unparsed line.
pub(super) struct Peek<'a> {
    /// The text after the opening brace of the object.
    object: &'a [u8],
}

impl<'a> Peek<'a> {
    /// `None` if it does not look like a line.
    pub(super) fn of(line: &'a [u8]) -> Option<Peek<'a>> {
        let key_bytes = memchr(b' ', line).filter(|bytes| *bytes > 0)?;
        let (time, rest) = line[key_bytes + 1..].split_first_chunk::<TIMESTAMP_DIGITS>()?;
        let json = rest.strip_prefix(b" ")?.trim_ascii();
        let object = json.strip_prefix(b"{").filter(|object| object.ends_with(b"}"))?;
        time.iter().all(u8::is_ascii_digit).then_some(Peek { object })
    }

    /// Whether the line certainly lacks the field, or has it with a value that does not pass. The finder searches for
    /// the quoted name.
    ///
    /// Whether the object is simple is checked last, and not at all for lines that pass.
    pub(super) fn fails(&self, quoted_name: &Finder<'_>, passes: impl Fn(&[u8]) -> bool) -> bool {
        let Some(at) = quoted_name.find(self.object) else { return self.is_simple() };
        let behind = &self.object[at + quoted_name.needle().len()..];
        value(behind).is_some_and(|value| !passes(value))
            && quoted_name.find(behind).is_none()
            && self.is_simple()
    }

    fn is_simple(&self) -> bool {
        memchr2(b'\\', b'{', self.object).is_none()
    }
}

/// The text of `: "text"`.
fn value(bytes: &[u8]) -> Option<&[u8]> {
    let value = bytes.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let text = value.strip_prefix(b"\"")?;
    Some(&text[..memchr(b'"', text)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_sure_fails() {
        let name = Finder::new("\"s\"");
        for (object, fails) in [
            (r#"{"s": "404"}"#, true),
            (r#"{"s": "200"}"#, false),
            (r#"{"x":"y","s"	:"404","t":"z"}"#, true),
            (r#"{"ss": "200"}"#, true),
            (r#"{"s": "404", "t":"s"}"#, false),
            (r#"{"s": 404}"#, false),
            (r#"{"s": "404", "s":"200"}"#, false),
            (r#"{"x": {"s": "404"}}"#, false),
            (r#"{"x": {"y": "404"}}"#, false),
            (r#"{"\u0073": "200"}"#, false),
            (r#"{"x": "s"}"#, false),
            (r#"{"s": "4}"#, false),
        ] {
            let line = format!("a 20240712000102 {object}");
            let peek = Peek::of(line.as_bytes()).unwrap();
            assert_eq!(peek.fails(&name, |value| value == b"200"), fails, "{line}");
        }
    }

    #[test]
    fn only_what_looks_like_a_line_is_peeked_into() {
        for line in [
            "a 20240712000102 {}",
            "com,x)/{y} 20240712000102 {\"a\":\"b\"} \r\n",
            "a 20240712000102  {} ",
        ] {
            assert!(Peek::of(line.as_bytes()).is_some(), "{line}");
        }
        for line in [
            "",
            "a",
            "a 20240712000102",
            "a 20240712000102 ",
            "a 20240712000102 {",
            "a 20240712000102 }",
            "a 20240712000102 {not json",
            "a 20240712000102 {\"url\": \"http://exam",
            "a 20240712000102 {} x",
            "a 20240712000102{}",
            "a 2024071200010 {}",
            "a 202407120001023 {}",
            "a 2024071200010x {}",
            " 20240712000102 {}",
            "{\"a\": \"20240712000102\"}",
        ] {
            assert!(Peek::of(line.as_bytes()).is_none(), "{line}");
        }
    }
}
