//! Makes untrusted text safe to display.

use std::borrow::Cow;

/// Makes untrusted text, such as a URL, safe to print on one line of a terminal. Control characters, line separators
/// and marks that change the text direction are escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_obeyed(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn is_obeyed(character: char) -> bool {
    let is_direction = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_line_break = matches!(character, '\u{2028}' | '\u{2029}');
    character.is_control() || is_direction || is_line_break
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_nothing_else() {
        for (text, expected) in [
            ("http://a.test/it's?a=\"b\"\\ä", "http://a.test/it's?a=\"b\"\\ä"),
            ("http://a.test/\u{1b}[2J", r"http://a.test/\u{1b}[2J"),
            ("a\r\nb\tc\u{7f}\u{9b}0m", r"a\r\nb\tc\u{7f}\u{9b}0m"),
            ("a\u{202e}gpj.exe", r"a\u{202e}gpj.exe"),
        ] {
            assert_eq!(printable(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_control_character_comes_through(text: String) {
            prop_assert!(!printable(&text).contains(char::is_control));
        }
    }
}
