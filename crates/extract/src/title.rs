//! The headline, out of the places where pages put it.

/// What stands between a headline and the site's name.
const SEPARATORS: [&str; 8] = [" | ", " - ", " – ", " — ", " :: ", " » ", " · ", " • "];

/// A site's name has at most so many words; a headline at least so many.
const MAX_SITE_WORDS: usize = 4;
const MIN_HEADLINE_WORDS: usize = 3;

/// The page's titles, each on one line.
pub(crate) struct Titles {
    /// What is shown where the page is shared (`og:title`).
    pub(crate) shared: Option<String>,
    /// The `title` element.
    pub(crate) document: Option<String>,
    /// The first `h1`.
    pub(crate) heading: Option<String>,
    /// The site's name, if the page tells.
    pub(crate) site_name: Option<String>,
}

impl Titles {
    /// The shared title, else the document's, else the heading; without the site's name.
    pub(crate) fn best(&self) -> String {
        let Some(title) = self.shared.as_deref().or(self.document.as_deref()) else {
            return self.heading.clone().unwrap_or_default();
        };
        if let Some(heading) = self.heading.as_deref().filter(|heading| is_part(title, heading)) {
            return heading.to_owned();
        }
        if let Some(site_name) = self.site_name.as_deref() {
            return without_site(title, |part| part.eq_ignore_ascii_case(site_name)).to_owned();
        }
        if self.shared.is_some() {
            return title.to_owned();
        }
        without_site(title, |part| words(part) <= MAX_SITE_WORDS).to_owned()
    }
}

/// Whether the heading is one whole side of the title.
fn is_part(title: &str, heading: &str) -> bool {
    let rest = title.strip_prefix(heading).or_else(|| title.strip_suffix(heading));
    rest.is_some_and(|rest| {
        SEPARATORS.iter().any(|separator| rest.starts_with(separator) || rest.ends_with(separator))
    })
}

/// The title without its last part, or its first, if that is the site's name.
fn without_site(title: &str, is_site: impl Fn(&str) -> bool) -> &str {
    let last = SEPARATORS.iter().filter_map(|separator| title.rsplit_once(separator));
    let first = SEPARATORS.iter().filter_map(|separator| title.split_once(separator));
    last.map(|(headline, site)| (headline.trim(), site.trim()))
        .min_by_key(|(_, site)| site.len())
        .filter(|(headline, site)| is_site(site) && words(headline) >= MIN_HEADLINE_WORDS)
        .or_else(|| {
            first
                .map(|(site, headline)| (headline.trim(), site.trim()))
                .min_by_key(|(_, site)| site.len())
                .filter(|(headline, site)| is_site(site) && words(headline) >= MIN_HEADLINE_WORDS)
        })
        .map_or(title, |(headline, _)| headline)
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shared: &str, document: &str, heading: &str, site_name: &str, want: &str) {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let titles = Titles {
            shared: some(shared),
            document: some(document),
            heading: some(heading),
            site_name: some(site_name),
        };
        assert_eq!(titles.best(), want);
    }

    #[test]
    fn the_best_place_wins() {
        check("Shared words", "Document words", "Heading words", "", "Shared words");
        check("", "", "Heading words", "", "Heading words");
        check("", "", "", "", "");
    }

    #[test]
    fn the_name_of_the_site_goes() {
        check("", "Bees are back in town | The Daily Hive", "", "", "Bees are back in town");
        check("", "The Hive: Bees - news - The Hive", "Bees", "", "The Hive: Bees - news");
        check("Bees are back - The Hive", "", "", "the hive", "Bees are back");
        check("The Hive | Bees are back", "", "Bees are back", "", "Bees are back");
        check("Bees - what they mean to us", "", "", "", "Bees - what they mean to us");
        check("", "Welcome | Hive", "", "", "Welcome | Hive");
    }
}
