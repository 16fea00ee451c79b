//! Patterns in which `*` stands for any text.

use memchr::memmem;

/// Whether the whole text matches.
///
/// Each literal between two wildcards is searched once, starting where the previous one ended. The leftmost match is
/// always good enough, as it leaves the most for the literals that follow. So there is no backtracking, and even a
/// hostile pattern takes only linear time.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == text };
    let (middle, last) = tail.rsplit_once('*').unwrap_or(("", tail));
    let Some(mut rest) = text.as_bytes().strip_prefix(head.as_bytes()) else { return false };
    for literal in middle.split('*').map(str::as_bytes) {
        let Some(at) = memmem::find(rest, literal) else { return false };
        rest = &rest[at + literal.len()..];
    }
    rest.ends_with(last.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, in exponential time.
    fn by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|from| by_definition(rest, &text[from..]))
            }
            ([first, rest @ ..], [same, others @ ..]) if first == same => {
                by_definition(rest, others)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_the_definition_does(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            let expected = by_definition(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(&pattern, &text), expected);
        }
    }
}
