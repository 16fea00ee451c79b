//! The hosts whose pages are a feed's own.

use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};

/// Host labels that sites use for parts of themselves, such as the one with their feeds.
const PARTS: [&str; 4] = ["www.", "feeds.", "rss.", "m."];

/// The host of a feed, and the host of the page that it names as its own.
///
/// A page belongs to the feed if its host is one of these, a parent or a subdomain; labels such as `www` are ignored.
/// This needs no public suffix list and errs on the safe side: the redirects of a link that is wrongly taken for
/// another site's are resolved, which costs one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    feed: String,
    page: Option<String>,
}

impl Home {
    /// The home of a feed at this URL that has not named a page yet.
    pub(crate) fn of(found_at: &WebUrl) -> Home {
        Home { feed: name(found_at.host()).to_owned(), page: None }
    }

    /// Records the page that the feed names as its own. The first one counts.
    pub(crate) fn name_page(&mut self, page: &WebUrl) {
        self.page.get_or_insert_with(|| name(page.host()).to_owned());
    }

    /// Whether a page is one of the feed's own.
    pub fn has(&self, page: &WebUrl) -> bool {
        let host = name(page.host());
        let hosts = [Some(&self.feed), self.page.as_ref()];
        hosts.into_iter().flatten().any(|own| is_within(host, own) || is_within(own, host))
    }
}

/// The host without such a label. The rest must contain a dot, because a top-level domain such as `com` belongs to no
/// site.
fn name(host: &str) -> &str {
    let rest = PARTS.iter().find_map(|part| host.strip_prefix(*part));
    rest.filter(|rest| rest.contains('.')).unwrap_or(host)
}

fn is_within(host: &str, whole: &str) -> bool {
    host.strip_suffix(whole).is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str) -> WebUrl {
        WebUrl::parse(&format!("https://{host}/")).unwrap()
    }

    #[test]
    fn parts_of_one_site_are_at_home_with_each_other() {
        for (feed, page, is_at_home) in [
            ("a.example", "a.example", true),
            ("feeds.a.example", "www.a.example", true),
            ("rss.a.example", "m.a.example", true),
            ("a.example", "sport.a.example", true),
            ("sport.a.example", "www.a.example", true),
            ("a.example", "b.example", false),
            ("a.example", "nota.example", false),
            ("blog.a.example", "shop.a.example", false),
            ("m.example", "b.example", false),
            ("m.example", "m.example", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
        ] {
            assert_eq!(Home::of(&at(feed)).has(&at(page)), is_at_home, "{feed}, {page}");
        }
    }

    #[test]
    fn a_feed_is_also_at_home_where_it_says_and_says_so_once() {
        let mut home = Home::of(&at("feeds.service.example"));
        assert!(!home.has(&at("a.example")));
        home.name_page(&at("www.a.example"));
        home.name_page(&at("b.example"));
        assert!(home.has(&at("a.example")) && home.has(&at("service.example")));
        assert!(!home.has(&at("b.example")));
    }
}
