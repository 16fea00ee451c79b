//! "Did you mean": finds the known name closest to a mistyped one.

/// The candidate closest to `typed`, if one is close enough.
pub(super) fn nearest<'a>(
    typed: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // Names are short, so a longer text is not a typo and not worth comparing.
    const LONGEST_CHARS: usize = 64;
    if typed.len() > LONGEST_CHARS {
        return None;
    }
    let most_edits = (typed.chars().count() / 3).max(2);
    candidates
        .map(|candidate| (distance(typed, candidate), candidate))
        .filter(|(edits, _)| *edits <= most_edits)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// The number of characters to insert, delete or change to turn `from` into `to`; 0 if `from` is the last part of `to`
/// (`connect_timeout` for `http.connect_timeout`).
fn distance(from: &str, to: &str) -> usize {
    if to.rsplit_once('.').is_some_and(|(_, last)| last == from) {
        return 0;
    }
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (deleted, have) in from.chars().enumerate() {
        let mut left = deleted + 1;
        let mut diagonal = std::mem::replace(&mut row[0], left);
        for (column, want) in to.iter().enumerate() {
            let above = row[column + 1];
            let changed = diagonal + usize::from(have != *want);
            left = changed.min(above + 1).min(left + 1);
            diagonal = above;
            row[column + 1] = left;
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, edits) in [
            ("", "", 0),
            ("rate", "rate", 0),
            ("raet", "rate", 2),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("connect_timeout", "http.connect_timeout", 0),
        ] {
            assert_eq!(distance(from, to), edits, "{from} → {to}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["rate", "window", "http.max_body"];
        assert_eq!(nearest("windw", known.into_iter()), Some("window"));
        assert_eq!(nearest("max_body", known.into_iter()), Some("http.max_body"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(100_000), known.into_iter()), None);
    }
}
