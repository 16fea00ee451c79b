//! Decodes character references (`&amp;`, `&#8217;`, `&eacute;`).

use std::borrow::Cow;

use fetchwell_extract::{named_character, replace_references};

/// No name is longer, so anything longer is not a reference.
const MAX_NAME_BYTES: usize = 32;

/// Decodes the references in a text. XML has only five names, but feeds use those of HTML, so they are accepted. Any
/// other `&` is kept, so that `?a=1&b=2` stays a query with two parameters.
pub(crate) fn undo(raw: &str) -> Cow<'_, str> {
    replace_references(raw, reference)
}

fn reference(after_ampersand: &str) -> Option<(char, &str)> {
    let within = after_ampersand.bytes().take(MAX_NAME_BYTES + 1);
    let end = within.take_while(|byte| *byte != b';').count();
    let (name, rest) = after_ampersand.split_at_checked(end)?;
    let rest = rest.strip_prefix(';')?;
    let character = match name.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named_character(name)?,
    };
    Some((character, rest))
}

fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    // No document may contain U+0000, and not every store accepts it.
    char::from_u32(code.ok()?).filter(|character| *character != '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_reference_becomes_its_character() {
        for (raw, want) in [
            ("Fish &amp; Chips", "Fish & Chips"),
            ("&lt;b&gt; &quot;&apos;", "<b> \"'"),
            ("&#8217;&#x2019;&rsquo;", "’’’"),
            ("caf&eacute;&nbsp;", "café\u{a0}"),
            ("?a=1&b=2&copy=3&amp;lt;", "?a=1&b=2&copy=3&lt;"),
            (
                "&&;&#;&#x;&#0;&#xD800;&nosuch;&#99999999999;&",
                "&&;&#;&#x;&#0;&#xD800;&nosuch;&#99999999999;&",
            ),
            ("& é;", "& é;"),
        ] {
            assert_eq!(undo(raw), want, "{raw}");
        }
    }
}
