//! Folds white space and removes invisible characters.

use std::borrow::Cow;

/// A part of a text node: a run of white space, or a run of other characters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Space,
    Word(Cow<'t, str>),
}

/// Splits text into words and the spaces around them.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word_bytes = leading(rest, |c| !c.is_whitespace());
        let end = if word_bytes > 0 { word_bytes } else { leading(rest, char::is_whitespace) };
        let (piece, after) = rest.split_at_checked(end).filter(|_| end > 0)?;
        rest = after;
        Some(if word_bytes > 0 { Piece::Word(visible(piece)) } else { Piece::Space })
    })
}

/// The length of the prefix whose characters all match. Most text is ASCII, which needs no decoding.
fn leading(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    let is_end = |byte: &u8| !byte.is_ascii() || !belongs(char::from(*byte));
    let ascii = text.bytes().position(|byte| is_end(&byte)).unwrap_or(text.len());
    match text.get(ascii..) {
        Some(rest) if rest.starts_with(|c: char| !c.is_ascii()) => {
            ascii + rest.find(|c| !belongs(c)).unwrap_or(rest.len())
        }
        _ => ascii,
    }
}

/// The whole text on one line.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&visible(word));
    }
    out
}

/// Removes soft hyphens, zero-width spaces and control characters: they split words, so searches miss them, and a
/// terminal would interpret some of them.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Cow::Borrowed(text);
    }
    let is_invisible = |c: char| {
        matches!(c, '\u{AD}' | '\u{200B}' | '\u{FEFF}') || (c.is_control() && !c.is_whitespace())
    };
    if text.contains(is_invisible) {
        Cow::Owned(text.replace(is_invisible, ""))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_spaces_alternate() {
        let word = |text| Piece::Word(Cow::Borrowed(text));
        let got: Vec<_> = pieces(" \n a\u{A0}b").collect();
        assert_eq!(got, [Piece::Space, word("a"), Piece::Space, word("b")]);
        assert_eq!(pieces("").count(), 0);
    }

    #[test]
    fn the_invisible_is_left_out() {
        assert_eq!(one_line(" soft\u{AD}hyphen \t \u{1B}[31mred\u{200B} "), "softhyphen [31mred");
    }
}
