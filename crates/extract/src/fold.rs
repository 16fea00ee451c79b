//! White space is folded and what cannot be seen is left out.

use std::borrow::Cow;

/// A part of a text node: white space of any length, or what stands between.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Space,
    Word(Cow<'t, str>),
}

/// Splits text into words and the spaces around them.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_space = first.is_whitespace();
        let end = rest.find(|c: char| c.is_whitespace() != is_space).unwrap_or(rest.len());
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(if is_space { Piece::Space } else { Piece::Word(visible(piece)) })
    })
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

/// Text without soft hyphens, zero-width spaces and control characters: they break words apart
/// for whoever searches the text, and a terminal would obey some of them.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
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
