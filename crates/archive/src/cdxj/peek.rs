//! What a line says of a field, looked up in it as it is written.
//!
//! A JSON object without escapes and without another object in it is simple: a quoted name that
//! stands in it once, with a colon behind it, is a name, and the next quoted text is its value. Where
//! the line is not so simple nothing is said, and it has to be read.

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

/// A line as it is written.
pub(super) struct Peek<'a> {
    /// What follows the first brace.
    object: &'a [u8],
}

impl<'a> Peek<'a> {
    pub(super) fn of(line: &'a [u8]) -> Option<Peek<'a>> {
        memchr(b'{', line).map(|brace| Peek { object: &line[brace + 1..] })
    }

    /// Whether the line surely does not have the field, or has it with a value that does not pass.
    /// The finder looks for its name in quotes.
    ///
    /// What makes it sure is looked at last, and not at all in lines that pass.
    pub(super) fn fails(&self, quoted_name: &Finder<'_>, passes: impl Fn(&str) -> bool) -> bool {
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
fn value(bytes: &[u8]) -> Option<&str> {
    let value = bytes.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let text = value.strip_prefix(b"\"")?;
    str::from_utf8(&text[..memchr(b'"', text)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_sure_fails() {
        let name = Finder::new("\"s\"");
        for (line, fails) in [
            (r#"a 1 {"s": "404"}"#, true),
            (r#"a 1 {"s": "200"}"#, false),
            (r#"a 1 {"x":"y","s"	:"404","t":"z"}"#, true),
            (r#"a 1 {"ss": "200"}"#, true),
            (r#"a 1 {"s": "404", "t":"s"}"#, false),
            (r#"a 1 {"s": 404}"#, false),
            (r#"a 1 {"s": "404", "s":"200"}"#, false),
            (r#"a 1 {"x": {"s": "404"}}"#, false),
            (r#"a 1 {"x": {"y": "404"}}"#, false),
            (r#"a 1 {"\u0073": "200"}"#, false),
            (r#"a 1 {"x": "s"}"#, false),
            (r#"a 1 {"s": "4"#, false),
        ] {
            let peek = Peek::of(line.as_bytes()).unwrap();
            assert_eq!(peek.fails(&name, |value| value == "200"), fails, "{line}");
        }
        assert!(Peek::of(b"a 1").is_none());
    }
}
