//! Folds white space and removes invisible characters.

use std::borrow::Cow;

/// A part of a text node: a run of white space, or what stands between two of them. Words with single spaces between
/// them may be one piece, because they need no folding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Space,
    Words(Cow<'t, str>),
}

/// Splits text into words and the spaces around them.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let plain_bytes = plain_words(rest.as_bytes());
        if plain_bytes > 0 {
            let (words, after) = rest.split_at_checked(plain_bytes)?;
            rest = after;
            return Some(Piece::Words(Cow::Borrowed(words)));
        }
        let word_bytes = leading(rest, |c| !c.is_whitespace());
        let end = if word_bytes > 0 { word_bytes } else { leading(rest, char::is_whitespace) };
        let (piece, after) = rest.split_at_checked(end).filter(|_| end > 0)?;
        rest = after;
        Some(if word_bytes > 0 { Piece::Words(visible(piece)) } else { Piece::Space })
    })
}

/// The length of the whole words at the start of the text that are visible ASCII and have single spaces between them.
/// Most text is like that, so it is examined in blocks.
fn plain_words(text: &[u8]) -> usize {
    let byte = |at: usize| text.get(at).copied();
    if !byte(0).is_some_and(|first| first.is_ascii_graphic()) {
        return 0;
    }
    let mut at = 0;
    while text.get(at..).and_then(<[u8]>::first_chunk).is_some_and(is_plain_block) {
        at += BLOCK_BYTES;
    }
    at = at.max(1);
    while let Some(next) = byte(at)
        && (next.is_ascii_graphic() || (next == b' ' && byte(at - 1) != Some(b' ')))
    {
        at += 1;
    }
    if byte(at).is_none_or(|next| next.is_ascii_whitespace()) {
        return if byte(at - 1) == Some(b' ') { at - 1 } else { at };
    }
    // The last word goes on.
    let before = text.get(..at).unwrap_or_default();
    memchr::memrchr(b' ', before).unwrap_or_default()
}

const BLOCK_BYTES: usize = 32;

/// Whether these bytes are visible ASCII and single spaces. The last byte is also the first one of the next block.
/// There is no early exit, and the next bytes are a slice, so that the compiler compares all bytes at once.
fn is_plain_block(block: &[u8; BLOCK_BYTES + 1]) -> bool {
    let pairs = block.iter().zip(block.get(1..).unwrap_or_default());
    pairs.fold(true, |is_plain, (byte, next)| {
        let is_in_range = byte.wrapping_sub(b' ') < 0x7F - b' ';
        is_plain & is_in_range & !((*byte == b' ') & (*next == b' '))
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
    let mut is_space_due = false;
    for piece in pieces(text) {
        match piece {
            Piece::Space => is_space_due = !out.is_empty(),
            Piece::Words(words) => {
                if std::mem::take(&mut is_space_due) {
                    out.push(' ');
                }
                out.push_str(&words);
            }
        }
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_and_spaces_alternate() {
        let words = |text| Piece::Words(Cow::Borrowed(text));
        for (text, want) in [
            ("", vec![]),
            (" \n a\u{A0}b", vec![Piece::Space, words("a"), Piece::Space, words("b")]),
            ("a b\tc d ", vec![words("a b"), Piece::Space, words("c d"), Piece::Space]),
            ("a  b", vec![words("a"), Piece::Space, words("b")]),
            // A word is never divided.
            (
                "a b_\u{E9} c",
                vec![words("a"), Piece::Space, words("b_\u{E9}"), Piece::Space, words("c")],
            ),
            ("a b\u{1B}c", vec![words("a"), Piece::Space, words("bc")]),
            ("b\u{B}c", vec![words("b"), Piece::Space, words("c")]),
            ("a \u{1}b", vec![words("a"), Piece::Space, words("b")]),
        ] {
            assert_eq!(pieces(text).collect::<Vec<_>>(), want, "{text:?}");
        }
    }

    /// Words and spaces as they are defined, one character at a time.
    fn slow_pieces(text: &str) -> Vec<String> {
        let mut runs: Vec<String> = Vec::new();
        for character in text.chars() {
            match runs.last_mut() {
                Some(run) if run.starts_with(char::is_whitespace) == character.is_whitespace() => {
                    run.push(character);
                }
                _ => runs.push(character.to_string()),
            }
        }
        let fold = |run: String| match run.starts_with(char::is_whitespace) {
            true => " ".to_owned(),
            false => visible(&run).into_owned(),
        };
        runs.into_iter().map(fold).collect()
    }

    proptest! {
        /// Long enough for several blocks.
        #[test]
        fn blocks_change_nothing(text in "([a-z]{1,9} ?|  |\t|\u{E9}|\u{AD}|\u{1}|\u{7F}){0,80}") {
            let mut got = String::new();
            for piece in pieces(&text) {
                match piece {
                    Piece::Space => got.push(' '),
                    Piece::Words(words) => got.push_str(&words),
                }
            }
            prop_assert_eq!(&got, &slow_pieces(&text).concat());
            let mut words = String::new();
            for word in text.split_whitespace() {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push_str(&visible(word));
            }
            prop_assert_eq!(one_line(&text), words);
        }
    }

    #[test]
    fn the_invisible_is_left_out() {
        assert_eq!(one_line(" soft\u{AD}hyphen \t \u{1B}[31mred\u{200B} "), "softhyphen [31mred");
    }
}
