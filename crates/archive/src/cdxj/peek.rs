//! What a line says of a field, looked up in it as it is written.
//!
//! A JSON object without escapes and without another object in it is simple: a quoted name that
//! stands in it once, with a colon behind it, is a name, and the next quoted text is its value. Where
//! the line is not so simple nothing is said, and it has to be read.

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peeked<'a> {
    /// The line does not have the field.
    Absent,
    /// It has this value.
    Is(&'a str),
    /// It must be read to know.
    Unclear,
}

/// The object of a line that is simple enough.
pub(super) struct Peek<'a>(&'a [u8]);

impl<'a> Peek<'a> {
    /// Of a whole line; none where nothing can be said of it.
    pub(super) fn of(line: &'a [u8]) -> Option<Peek<'a>> {
        let object = &line[memchr(b'{', line)? + 1..];
        memchr2(b'\\', b'{', object).is_none().then_some(Peek(object))
    }

    /// The value of a field. The finder looks for its name in quotes.
    pub(super) fn get(&self, quoted_name: &Finder<'_>) -> Peeked<'a> {
        let Some(at) = quoted_name.find(self.0) else { return Peeked::Absent };
        let behind = &self.0[at + quoted_name.needle().len()..];
        if quoted_name.find(behind).is_some() {
            return Peeked::Unclear;
        }
        value(behind).map_or(Peeked::Unclear, Peeked::Is)
    }
}

/// The text of `: "text"`.
fn value(bytes: &[u8]) -> Option<&str> {
    let value = bytes.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let text = value.strip_prefix(b"\"")?;
    str::from_utf8(&text[..memchr(b'"', text)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peeked<'a>(object: &'a str, quoted_name: &str) -> Peeked<'a> {
        let peek = Peek::of(object.as_bytes());
        peek.map_or(Peeked::Unclear, |peek| peek.get(&Finder::new(quoted_name)))
    }

    #[test]
    fn only_what_is_sure_is_said() {
        for (object, want) in [
            (r#"a 1 {"s": "200"}"#, Peeked::Is("200")),
            (r#"a 1 {"x":"y","s":"200","t":"s"}"#, Peeked::Unclear),
            (r#"a 1 {"s"	:  "200"}"#, Peeked::Is("200")),
            (r#"a 1 {"s": 200}"#, Peeked::Unclear),
            (r#"a 1 {"s": "404", "s":"200"}"#, Peeked::Unclear),
            (r#"a 1 {"x": {"s": "404"}}"#, Peeked::Unclear),
            (r#"a 1 {"\u0073": "200"}"#, Peeked::Unclear),
            (r#"a 1 {"x": "s"}"#, Peeked::Unclear),
            (r#"a 1 {"ss": "200"}"#, Peeked::Absent),
            (r#"a 1 {"s": "2"#, Peeked::Unclear),
            ("a 1", Peeked::Unclear),
        ] {
            assert_eq!(peeked(object, "\"s\""), want, "{object}");
        }
    }
}
