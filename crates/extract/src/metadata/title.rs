//! Finds the headline in the places where pages put it.

use std::collections::HashSet;

use url::Url;

/// Separators between a headline and the site's name.
const SEPARATORS: [&str; 8] = [" | ", " - ", " – ", " — ", " :: ", " » ", " · ", " • "];

/// The maximum number of words in a site's name, and the minimum in a headline.
const MAX_SITE_WORDS: usize = 4;
const MIN_HEADLINE_WORDS: usize = 3;

/// A heading is the headline if at least this share of its words occurs in the page's other titles or in its URL.
const MIN_KNOWN_PERCENT: usize = 50;

/// The page's titles, each on one line.
pub(super) struct Titles<'u> {
    /// The title for sharing (`og:title`).
    pub(super) shared: Option<String>,
    /// The `title` element.
    pub(super) document: Option<String>,
    /// Every `h1`.
    pub(super) headings: Vec<String>,
    /// The site's name, if the page states it.
    pub(super) site_name: Option<String>,
    pub(super) url: &'u Url,
}

impl Titles<'_> {
    /// The heading that the other titles confirm, else the shared title, else the document's; without the site's name.
    pub(super) fn best(&self) -> String {
        let whole = self.shared.as_deref().or(self.document.as_deref()).unwrap_or_default();
        let stated = self.without_site(whole);
        if let Some(heading) = self.headline() {
            return without_frame(heading).to_owned();
        }
        if self.is_site(stated) || stated.is_empty() {
            let document = self.document.as_deref().map(|title| self.without_site(title));
            let heading = self.headings.iter().map(String::as_str);
            let other = document.into_iter().chain(heading).find(|title| !self.is_site(title));
            return other.unwrap_or(stated).to_owned();
        }
        stated.to_owned()
    }

    /// The heading with the most words that occur in the other titles or the URL.
    fn headline(&self) -> Option<&str> {
        let mut known = HashSet::new();
        let stated = [self.shared.as_deref(), self.document.as_deref(), Some(self.url.path())];
        for title in stated.into_iter().flatten() {
            known.extend(words(title));
        }
        let known_percent = |heading: &str| {
            let (all, found) = words(heading).fold((0, 0), |(all, found), word| {
                (all + 1, found + usize::from(known.contains(&word)))
            });
            (found * 100usize).checked_div(all).unwrap_or(0)
        };
        let candidates = self.headings.iter().map(String::as_str);
        candidates
            .filter(|heading| !self.is_site(heading) && !self.is_tail(heading))
            .map(|heading| (known_percent(heading), heading))
            .filter(|(percent, _)| *percent >= MIN_KNOWN_PERCENT)
            // The first of equals: `max_by_key` would return the last.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, heading)| heading)
    }

    /// Whether the heading follows the separator in the document's title: then it names a section of the site.
    fn is_tail(&self, heading: &str) -> bool {
        let Some((before, after)) = self.document.as_deref().and_then(split_last) else {
            return false;
        };
        plain(after) == plain(heading) && !self.is_site(before)
    }

    fn is_site(&self, text: &str) -> bool {
        is_site_name(text, self.site_name.as_deref(), self.url)
    }

    /// The title without the parts that name the site.
    fn without_site<'t>(&self, title: &'t str) -> &'t str {
        let mut title = title.trim();
        while let Some((before, after)) = split_last(title) {
            if self.is_site(before) && !self.is_site(after) {
                title = after;
            } else if self.is_site(after) || title.contains(" | ") {
                title = before;
            } else if self.shared.as_deref() != Some(title)
                && words(after).count() <= MAX_SITE_WORDS
                && words(before).count() >= MIN_HEADLINE_WORDS
            {
                return before;
            } else {
                return title;
            }
        }
        title
    }
}

/// Whether a text is the site's name, according to the page or its URL.
pub(super) fn is_site_name(text: &str, site_name: Option<&str>, url: &Url) -> bool {
    let name = plain(text);
    let host = url.host_str().unwrap_or_default();
    let labels = || host.split('.').filter(|label| label.len() > 3 && *label != "blog");
    let is_named = site_name.is_some_and(|site| plain(site) == name);
    let is_host = || name.len() > 3 && plain(host).contains(&name);
    let has_host = || {
        words(text).count() <= MAX_SITE_WORDS
            && labels().any(|label| name.starts_with(label) || name.ends_with(label))
    };
    !name.is_empty() && (is_named || is_host() || has_host())
}

/// Removes the prefixes, section names and permalink marks that site software adds to a heading.
pub(crate) fn without_frame(heading: &str) -> &str {
    let heading = heading.trim_end_matches(['¶', ' ']);
    let heading = heading.strip_suffix(" #").unwrap_or(heading);
    let is_headline = |text: &str| words(text).count() >= MIN_HEADLINE_WORDS;
    let heading = match heading.rsplit_once(" | ") {
        Some((before, _)) if is_headline(before) => before,
        Some((_, after)) if is_headline(after) => after,
        _ => heading,
    };
    ["Thread:", "Topic:", "Title:", "Blog:"]
        .iter()
        .find_map(|label| heading.strip_prefix(label))
        .map(str::trim_start)
        .filter(|rest| !rest.is_empty())
        .unwrap_or(heading)
}

/// Splits a title at its last separator.
fn split_last(title: &str) -> Option<(&str, &str)> {
    let splits = SEPARATORS.iter().filter_map(|separator| title.rsplit_once(separator));
    splits.map(|(before, after)| (before.trim(), after.trim())).min_by_key(|(_, after)| after.len())
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase)
}

/// Letters and digits only, in lower case: `The Daily Hive` and `thedailyhive` are the same.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shared: &str, document: &str, headings: &[&str], site_name: &str, want: &str) {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let url = Url::parse("https://www.dailyhive.test/a").unwrap();
        let titles = Titles {
            shared: some(shared),
            document: some(document),
            headings: headings.iter().map(|heading| (*heading).to_owned()).collect(),
            site_name: some(site_name),
            url: &url,
        };
        assert_eq!(titles.best(), want);
    }

    #[test]
    fn the_best_place_wins() {
        check("Shared words", "Document words", &["Other"], "", "Shared words");
        check("", "", &["Heading words"], "", "Heading words");
        check("", "", &[], "", "");
        check("Bees, ten facts | X", "", &["Menu", "Ten facts on bees"], "", "Ten facts on bees");
    }

    #[test]
    fn prefixes_sections_and_permalink_marks_are_removed() {
        for (heading, want) in [
            ("Bees at last¶", "Bees at last"),
            ("Bees at last #", "Bees at last"),
            ("What's new in C#", "What's new in C#"),
            ("Thread: Bees at last", "Bees at last"),
            ("Topic:", "Topic:"),
            ("Bees at last | Opinion", "Bees at last"),
            ("Opinion | Bees are back in town", "Bees are back in town"),
            ("Bees | Hives", "Bees | Hives"),
            ("¶", ""),
        ] {
            assert_eq!(without_frame(heading), want, "{heading}");
        }
        check("", "Bees at last", &["Bees at last¶"], "", "Bees at last");
    }

    #[test]
    fn the_name_of_the_site_goes() {
        check("", "Bees are back in town | The Daily Hive", &[], "", "Bees are back in town");
        check("Bees are back - The Hive", "", &[], "the hive", "Bees are back");
        check("The Hive | Bees are back", "", &["Bees are back"], "The Hive", "Bees are back");
        check("Daily Hive: news", "Bees at last — Daily Hive", &["Daily Hive"], "", "Bees at last");
        check("Bees - what they mean to us", "", &[], "", "Bees - what they mean to us");
        check("", "Welcome | Hive", &[], "", "Welcome");
        check(
            "",
            "Plan of the book | A Guide to Bees",
            &["A Guide to Bees"],
            "",
            "Plan of the book",
        );
    }
}
