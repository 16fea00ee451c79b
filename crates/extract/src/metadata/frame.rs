//! Removes what site software adds to a headline.

use super::site_name::MAX_SITE_WORDS;
use super::title::words;

/// Separators between a headline and what is added to it.
const DASHES: [&str; 3] = [" - ", " – ", " — "];

/// What site software writes before a headline.
const LABELS: [&str; 5] = ["Thread:", "Topic:", "Title:", "Blog:", "View topic -"];

/// The minimum number of words in a headline.
pub(super) const MIN_HEADLINE_WORDS: usize = 3;

/// Removes the prefixes, section names, short additions and permalink marks that site software adds to a heading.
pub(crate) fn without_frame(heading: &str) -> &str {
    let heading = heading.trim_end_matches(['¶', ' ']);
    let heading = heading.strip_suffix(" #").unwrap_or(heading);
    let is_headline = |text: &str| words(text).count() >= MIN_HEADLINE_WORDS;
    let heading = match heading.rsplit_once(" | ") {
        Some((before, _)) if is_headline(before) => before,
        Some((_, after)) if is_headline(after) => after,
        _ => heading,
    };
    without_addition(heading)
}

/// The title without a label before it and a few words after a dash: a variant, a tagline or the site's name.
pub(super) fn without_addition(title: &str) -> &str {
    let unlabelled = LABELS.iter().find_map(|label| title.strip_prefix(label));
    let title = unlabelled.map(str::trim_start).filter(|rest| !rest.is_empty()).unwrap_or(title);
    let splits = DASHES.iter().filter_map(|dash| title.split_once(dash));
    let first = splits.min_by_key(|(before, _)| before.len());
    let is_short = |after: &str| (1..=MAX_SITE_WORDS).contains(&words(after).count());
    first
        .filter(|(before, _)| words(before).count() >= MIN_HEADLINE_WORDS)
        .filter(|(_, after)| is_short(after) && after.contains(char::is_alphabetic))
        .map_or(title, |(before, _)| before.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_sections_additions_and_permalink_marks_are_removed() {
        for (heading, want) in [
            ("Bees at last¶", "Bees at last"),
            ("Bees at last #", "Bees at last"),
            ("What's new in C#", "What's new in C#"),
            ("Thread: Bees at last", "Bees at last"),
            ("Topic:", "Topic:"),
            ("Bees at last | Opinion", "Bees at last"),
            ("Opinion | Bees are back in town", "Bees are back in town"),
            ("Bees | Hives", "Bees | Hives"),
            ("View topic - Bees at last", "Bees at last"),
            ("Bees are back - In colour", "Bees are back"),
            (
                "Bees are back – of all the colours — again",
                "Bees are back – of all the colours — again",
            ),
            ("Bees - In colour", "Bees - In colour"),
            ("All bees of 2024 - 2025", "All bees of 2024 - 2025"),
            ("¶", ""),
        ] {
            assert_eq!(without_frame(heading), want, "{heading}");
        }
    }
}
