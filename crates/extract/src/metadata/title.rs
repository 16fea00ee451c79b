//! Finds the headline in the places where pages put it.

use std::collections::HashSet;

use url::Url;

use super::frame::{MIN_HEADLINE_WORDS, without_addition, without_frame};
use super::site_name::{MAX_SITE_WORDS, is_only_site_name, is_site_name};

/// Separators between a headline and the site's name.
const SEPARATORS: [&str; 9] = [" | ", " - ", " – ", " — ", " :: ", " » ", " · ", " • ", " / "];

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
    /// The pieces of text in headings that consist of several elements.
    pub(super) heading_pieces: Vec<String>,
    /// The headline of the article or post in the linked data.
    pub(super) linked: Option<String>,
    /// The site's name, if the page states it.
    pub(super) site_name: Option<String>,
    pub(super) url: &'u Url,
}

impl Titles<'_> {
    /// The heading that the other titles confirm, else the shared title, else the document's; without the site's name.
    pub(super) fn best(&self) -> String {
        let whole = self.shared.as_deref().or(self.document.as_deref()).unwrap_or_default();
        let stated = self.without_site(whole);
        if let Some(heading) = self.headline(stated) {
            return self.without_label(heading, stated).to_owned();
        }
        let stated = self.unlike_document(stated).unwrap_or(stated);
        if self.is_slogan(stated)
            && let Some(heading) = self.headings.iter().find(|heading| !self.is_site(heading))
        {
            return heading.clone();
        }
        if is_home(stated)
            && let Some(site) = &self.site_name
        {
            return site.clone();
        }
        if self.is_only_site(stated) || stated.is_empty() {
            let document = self.document.as_deref().map(|title| self.without_site(title));
            let heading = self.headings.iter().map(String::as_str);
            let other = document.into_iter().chain(heading).find(|title| !self.is_site(title));
            return other.unwrap_or(stated).to_owned();
        }
        let is_of_home_page = self.after_site(stated).is_some();
        if is_of_home_page { stated.to_owned() } else { without_addition(stated).to_owned() }
    }

    /// The document's title if the stated one is not a part of it: a title that no heading and no other title confirms
    /// may be a slogan for social networks.
    fn unlike_document(&self, stated: &str) -> Option<&str> {
        let document = self.document.as_deref()?;
        let title = self.without_site(document);
        let is_title = !title.is_empty() && !self.is_only_site(title);
        (is_title && !plain(document).contains(&plain(stated))).then_some(title)
    }

    /// The heading without what site software adds to it.
    fn without_label<'t>(&'t self, heading: &'t str, stated: &'t str) -> &'t str {
        if let Some(linked) = self.linked.as_deref() {
            let is_last_long = heading
                .rsplit_once(" | ")
                .is_some_and(|(_, last)| words(last).count() > MAX_SITE_WORDS);
            if is_last_long && plain(linked) == plain(heading) {
                return heading;
            }
            // Forums put the label of a thread before its title: `News - Bees at last`.
            let label = split_first(stated).filter(|(_, title)| plain(title) == plain(linked));
            if label.is_some() && plain(heading).ends_with(&plain(linked)) {
                return linked;
            }
        }
        // A byline within the heading.
        let byline = heading.strip_prefix(stated).map(str::trim_start);
        let is_byline = byline.is_some_and(|rest| {
            ["Posted ", "Published ", "Updated "].iter().any(|word| rest.starts_with(word))
        });
        if is_byline && !stated.is_empty() { stated } else { without_frame(heading) }
    }

    /// The heading, or the piece of one, that is the stated title or the linked headline; else the heading with the
    /// most words that occur in the other titles or the URL.
    fn headline(&self, stated: &str) -> Option<&str> {
        let wanted = [Some(stated), self.linked.as_deref()];
        let wanted: Vec<String> = wanted.into_iter().flatten().map(plain).collect();
        let is_wanted = |heading: &&str| {
            let heading = plain(heading);
            !heading.is_empty() && wanted.contains(&heading)
        };
        let is_own = |text: &&str| !self.names_site(text) && !self.is_tail(text);
        let headings = || self.headings.iter().map(String::as_str);
        let pieces = || self.heading_pieces.iter().map(String::as_str);
        headings()
            .filter(is_wanted)
            .find(is_own)
            // If an element within a heading is the title, the rest of the heading is a tagline.
            .or_else(|| pieces().filter(is_wanted).find(is_own))
            .or_else(|| self.known_heading(headings().filter(is_own)))
    }

    fn known_heading<'t>(&self, candidates: impl Iterator<Item = &'t str>) -> Option<&'t str> {
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
        candidates
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

    /// Whether the document's title is the site's name followed by this text: then every page of the site may have it.
    fn is_slogan(&self, stated: &str) -> bool {
        let document = self.document.as_deref().filter(|_| self.shared.is_none());
        let parts = document.and_then(split_first);
        parts.is_some_and(|(site, slogan)| self.is_site(site) && slogan == stated)
    }

    fn is_site(&self, text: &str) -> bool {
        is_site_name(text, self.site_name.as_deref(), self.url)
    }

    /// The same, but not for a text that begins with the site's name: `Hive Wax` may be a product of `hive.test`.
    fn is_only_site(&self, text: &str) -> bool {
        is_only_site_name(text, self.site_name.as_deref(), self.url)
    }

    /// Whether a heading is the site's name, possibly with words after it that no other title has.
    fn names_site(&self, heading: &str) -> bool {
        self.is_only_site(heading) || (self.is_site(heading) && !self.is_part_of_title(heading))
    }

    /// Whether a text is a complete part of the shared title or the document's title.
    fn is_part_of_title(&self, text: &str) -> bool {
        let text = plain(text);
        let titles = [self.shared.as_deref(), self.document.as_deref()];
        titles.into_iter().flatten().any(|title| {
            parts(title).flat_map(|part| part.split(": ")).any(|part| plain(part) == text)
        })
    }

    /// The title without the parts that name the site. The title of a home page may begin with that name: what follows
    /// it is a slogan, which says little by itself.
    fn without_site<'t>(&self, title: &'t str) -> &'t str {
        let mut title = title.trim();
        while let Some((before, after)) = split_last(title) {
            let is_tail_of_document = || {
                self.shared.as_deref() != Some(title)
                    && words(after).count() <= MAX_SITE_WORDS
                    && words(before).count() >= MIN_HEADLINE_WORDS
            };
            if let Some(rest) = self.after_site(title) {
                if self.url.path() == "/" {
                    break;
                }
                title = rest;
            } else if self.is_site(after) || title.contains(" | ") || is_tail_of_document() {
                title = before;
            } else {
                break;
            }
        }
        self.without_host(title)
    }

    /// What follows the site's name at the beginning of a title.
    fn after_site<'t>(&self, title: &'t str) -> Option<&'t str> {
        let (site, rest) = split_first(title)?;
        (self.is_only_site(site) && !self.is_site(rest)).then_some(rest)
    }

    /// The title without the site's host name in front of it.
    fn without_host<'t>(&self, title: &'t str) -> &'t str {
        let host = self.url.host_str().unwrap_or_default();
        let host = host.strip_prefix("www.").unwrap_or(host);
        let is_host =
            |start: &str| start.eq_ignore_ascii_case(host) && title.len() > host.len() + 1;
        let rest = title
            .get(..host.len())
            .filter(|start| is_host(start))
            .and_then(|_| title.get(host.len()..)?.strip_prefix(' '));
        rest.filter(|rest| words(rest).next().is_some()).unwrap_or(title)
    }
}

/// Whether a title says only that this is the home page.
fn is_home(title: &str) -> bool {
    matches!(plain(title).as_str(), "home" | "homepage")
}

/// The parts of a title between its separators.
fn parts(title: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(title);
    std::iter::from_fn(move || {
        let whole = rest?;
        let (part, after) = split_first(whole).unzip();
        rest = after;
        Some(part.unwrap_or(whole))
    })
}

/// Splits a title at its first separator.
fn split_first(title: &str) -> Option<(&str, &str)> {
    let splits = SEPARATORS.iter().filter_map(|separator| title.split_once(separator));
    splits
        .map(|(before, after)| (before.trim(), after.trim()))
        .min_by_key(|(before, _)| before.len())
}

/// Splits a title at its last separator.
fn split_last(title: &str) -> Option<(&str, &str)> {
    let splits = SEPARATORS.iter().filter_map(|separator| title.rsplit_once(separator));
    splits.map(|(before, after)| (before.trim(), after.trim())).min_by_key(|(_, after)| after.len())
}

/// The words of a text, in lower case.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase)
}

/// Letters and digits only, in lower case: `The Daily Hive` and `thedailyhive` are the same.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(shared: &str, document: &str, headings: &[&str], site_name: &str, want: &str) {
        check_at("a", shared, document, headings, site_name, want);
    }

    fn check_at(
        path: &str,
        shared: &str,
        document: &str,
        headings: &[&str],
        site_name: &str,
        want: &str,
    ) {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let url = Url::parse("https://www.dailyhive.test/").unwrap().join(path).unwrap();
        let titles = Titles {
            shared: some(shared),
            document: some(document),
            headings: headings.iter().map(|heading| (*heading).to_owned()).collect(),
            heading_pieces: Vec::new(),
            linked: None,
            site_name: some(site_name),
            url: &url,
        };
        assert_eq!(titles.best(), want);
    }

    #[test]
    fn the_best_place_wins() {
        check("Shared words", "X: Shared words", &["Other"], "", "Shared words");
        check("Shared words", "", &["Other"], "", "Shared words");
        check("", "", &["Heading words"], "", "Heading words");
        check("", "", &[], "", "");
        check("Bees, ten facts | X", "", &["Menu", "Ten facts on bees"], "", "Ten facts on bees");
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

    #[test]
    fn what_begins_with_the_sites_name_may_be_a_product() {
        check("Daily Hive Wax - Yellow", "", &[], "", "Daily Hive Wax");
        check("Daily Hive Wax: All colours", "", &["Daily Hive Wax"], "", "Daily Hive Wax");
        check("Daily Hive Wax | Free wax", "", &["Daily Hive homepage"], "", "Daily Hive Wax");
        check("Daily Hive | Free wax", "", &["Daily Hive homepage"], "", "Free wax");
    }

    #[test]
    fn the_title_of_a_home_page_keeps_the_sites_name() {
        let title = "The Daily Hive - All about bees";
        check_at("/", title, "", &["Why wasps come"], "", title);
        check_at("/", "We are here for you", title, &["Daily Hive"], "", title);
        check_at("/", title, "", &["All about bees"], "", "All about bees");
        check_at("/", "Bees are back | Daily Hive", "", &[], "", "Bees are back");
    }

    #[test]
    fn a_shared_title_that_nothing_confirms_is_a_slogan() {
        check("We are here for you", "Ten bees | X", &["Hello"], "", "Ten bees");
        check("We are here for you", "Daily Hive", &["Hello"], "", "We are here for you");
        check("We are here for you", "Ten bees", &["We are here"], "", "We are here");
    }

    #[test]
    fn the_heading_that_is_stated_is_the_headline() {
        // `A` is known, too: it is in the URL.
        check("Why bees dance | X", "", &["A", "Why bees dance"], "", "Why bees dance");
        check("", "Bees at last / Beekeeping / My forum", &[], "", "Bees at last");
        check("Bees at last", "", &["Bees at last Posted on May 17"], "", "Bees at last");
        check("Bees at last", "", &["Bees at last by night"], "", "Bees at last by night");
        check("", "Daily Hive - All about bees", &["Why wasps come"], "", "Why wasps come");
        check("", "Daily Hive - All about bees", &["Daily Hive"], "", "All about bees");
        check("Home", "Home - The Hive", &[], "The Hive", "The Hive");
        check("", "dailyhive.test Bees", &[], "", "Bees");
        check("", "dailyhive.test", &[], "", "dailyhive.test");
    }

    #[test]
    fn the_linked_headline_confirms_a_heading_and_ends_labels() {
        let url = Url::parse("https://site.test/threads/1").unwrap();
        for (linked, shared, heading, want) in [
            ("Wax", "What bees need | Hive", "Wax", "Wax"),
            (
                "Wax for all | What to do with it",
                "",
                "Wax for all | What to do with it",
                "Wax for all | What to do with it",
            ),
            ("Wax for all bees | Opinion", "", "Wax for all bees | Opinion", "Wax for all bees"),
            ("Bees at last", "News - Bees at last", "News Bees at last", "Bees at last"),
            ("Bees at last", "2025 Bees at last", "2025 Bees at last", "2025 Bees at last"),
        ] {
            let titles = Titles {
                shared: Some(shared.to_owned()),
                document: None,
                headings: vec![heading.to_owned()],
                heading_pieces: Vec::new(),
                linked: Some(linked.to_owned()),
                site_name: None,
                url: &url,
            };
            assert_eq!(titles.best(), want);
        }
    }

    const TEXT: &str =
        r"((Bees|Daily|Hive|dailyhive|in|2024|Topic:|é|€)( | - | – | \| |: |¶)?){0,7}";

    proptest! {
        /// However its parts are combined.
        #[test]
        fn the_title_is_a_part_of_what_the_page_states(
            texts in prop::collection::vec(TEXT, 6),
            path in "(in/hive)?",
        ) {
            let url = Url::parse("https://www.dailyhive.test/").unwrap().join(&path).unwrap();
            let text = |number: usize| texts.get(number).cloned().filter(|text| !text.is_empty());
            let titles = Titles {
                shared: text(0),
                document: text(1),
                headings: text(2).into_iter().collect(),
                heading_pieces: text(3).into_iter().collect(),
                linked: text(4),
                site_name: text(5),
                url: &url,
            };
            let title = titles.best();
            prop_assert!(texts.iter().any(|text| text.contains(&title)), "{title:?} of {texts:?}");
        }
    }
}
