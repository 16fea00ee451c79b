//! Finds the page that a link points to, and removes tracking from it.

use fetchwell_policy::tracking::tracks_in_feed;
use fetchwell_policy::url::WebUrl;

use crate::redirectors::page_within;

/// Maximum nesting of links. Deeper links are not unwrapped, because that takes quadratic time.
const MAX_NESTING: usize = 8;

/// The page that a link points to: extracted from redirector links that contain it, without tracking parameters and
/// without the fragment, which is never sent to a server. Everything else is kept byte for byte. Cleaning a clean link
/// changes nothing.
#[must_use]
pub fn clean(link: &WebUrl) -> WebUrl {
    let page = innermost(link).unwrap_or_else(|| link.clone());
    page.without_parameters(|name, _| tracks_in_feed(name)).unwrap_or(page)
}

/// The innermost link, or `None` if nested too deeply.
fn innermost(link: &WebUrl) -> Option<WebUrl> {
    let mut page = link.clone();
    for _ in 0..=MAX_NESTING {
        // Unwrap only if the result is shorter.
        match page_within(&page).filter(|inner| inner.as_str().len() < page.as_str().len()) {
            Some(inner) => page = inner,
            None => return Some(page),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::leads_elsewhere;

    fn cleaned(link: &str) -> String {
        clean(&WebUrl::parse(link).unwrap()).to_string()
    }

    #[test]
    fn what_tracks_is_dropped_and_all_else_stays() {
        for (link, page) in [
            ("http://a.test/x?utm_source=rss&utm_medium=feed", "http://a.test/x"),
            ("http://a.test/x?id=1&utm_source=rss&b=%20+2", "http://a.test/x?id=1&b=%20+2"),
            ("http://a.test/?UTM_Source=rss&fbclid=1", "http://a.test/"),
            ("http://a.test/?a=1&amp;utm_source=rss", "http://a.test/?a=1"),
            ("http://a.test/?utm_source", "http://a.test/"),
            ("http://a.test/x#xtor=RSS-1", "http://a.test/x"),
            ("http://a.test/x#utm_source=rss", "http://a.test/x"),
            (
                "http://a.test/?ref=home&source=x&id=2&cid=3",
                "http://a.test/?ref=home&source=x&id=2&cid=3",
            ),
            ("http://a.test/?", "http://a.test/?"),
            ("http://a.test/?a&&b=", "http://a.test/?a&&b="),
            ("http://a.test/?q=utm_source=1", "http://a.test/?q=utm_source=1"),
            ("http://a.test/utm_source=1", "http://a.test/utm_source=1"),
            ("https://bbc.test/1?at_medium=RSS&at_campaign=rss", "https://bbc.test/1"),
        ] {
            assert_eq!(cleaned(link), page, "{link}");
        }
    }

    #[test]
    fn a_page_within_a_link_is_taken_out() {
        for (link, page) in [
            (
                "https://www.google.com/url?rct=j&sa=t&url=https://a.test/1&ct=ga",
                "https://a.test/1",
            ),
            (
                "https://google.co.uk/url?q=https%3A%2F%2Fa.test%2F1%3Futm_source%3Dx",
                "https://a.test/1",
            ),
            (
                "http://www.bing.com/news/apiclick.aspx?ref=x&url=http%3a%2f%2fa.test%2f1&c=2",
                "http://a.test/1",
            ),
            (
                "https://www.bing.com/ck/a?!&p=x&u=a1aHR0cHM6Ly9hLnRlc3QvMQ&ntb=1",
                "https://a.test/1",
            ),
            ("https://l.facebook.com/l.php?u=https%3A%2F%2Fa.test%2F1&h=x", "https://a.test/1"),
            (
                "https://nam02.safelinks.protection.outlook.com/?url=http%3A%2F%2Fa.test%2F&data=1",
                "http://a.test/",
            ),
            (
                "https://www.google.com/url?q=https%3A%2F%2Fl.facebook.com%2Fl.php%3Fu%3Dhttp%253A%252F%252Fa.test%252F",
                "http://a.test/",
            ),
            ("https://www.google.com/amp/s/a.test/1", "https://a.test/1"),
            ("https://a-test.cdn.ampproject.org/c/s/a.test/1?x=2", "https://a.test/1?x=2"),
            // None of these has a page in it.
            (
                "https://www.google.com/url?q=not+an+address",
                "https://www.google.com/url?q=not+an+address",
            ),
            (
                "https://www.google.com/search?q=http://a.test/",
                "https://www.google.com/search?q=http://a.test/",
            ),
            (
                "https://notgoogle.com/url?q=http://a.test/",
                "https://notgoogle.com/url?q=http://a.test/",
            ),
            (
                "https://google.evil.example.com/url?q=http://a.test/",
                "https://google.evil.example.com/url?q=http://a.test/",
            ),
            ("https://www.google.com/amp/page", "https://www.google.com/amp/page"),
            ("http://a.test/url?q=http://b.test/", "http://a.test/url?q=http://b.test/"),
        ] {
            assert_eq!(cleaned(link), page, "{link}");
        }
    }

    #[test]
    fn links_in_links_are_taken_out_up_to_a_bound() {
        let nested = |links| format!("{}http://a.test/", "https://google.com/url?q=".repeat(links));
        assert_eq!(cleaned(&nested(MAX_NESTING)), "http://a.test/");
        let too_many = nested(MAX_NESTING + 1);
        assert_eq!(cleaned(&too_many), too_many);
    }

    #[test]
    fn services_are_told_by_their_links() {
        for (link, is_of_service) in [
            ("https://t.co/abc", true),
            ("http://feedproxy.google.com/~r/x/~3/y/", true),
            ("http://feeds.a.test/~r/x/~3/y/", true),
            ("http://a.test/r/x", false),
            ("https://not-t.co/abc", false),
            ("https://www.a.test/?u=t.co", false),
        ] {
            assert_eq!(leads_elsewhere(&WebUrl::parse(link).unwrap()), is_of_service, "{link}");
        }
    }

    fn links() -> impl Strategy<Value = String> {
        let host = "(a\\.test|www\\.google\\.com|bing\\.com|l\\.facebook\\.com|x\\.cdn\\.ampproject\\.org|[a-z]{1,8}\\.org)";
        let path = "(url|ck/a|amp/s/b\\.test/x|c/s/b\\.test/|l\\.php|[a-z/%~.]{0,12})";
        let part = prop_oneof![
            "(utm_[a-z]{0,5}|fbclid|id|q|url|u|amp;utm_x|[a-z]{1,4})(=[a-zA-Z0-9%+:/.?=-]{0,20})?",
            "(q|url|u)=http%3A%2F%2F[a-z]{1,5}\\.test%2F%3Futm_source%3D1",
            "(q|url|u)=https://www.google.com/url\\?q=http://[a-z]{1,5}\\.test/",
        ];
        (host, path, prop::collection::vec(part, 0..6), "(#[a-z_=]{0,9})?").prop_map(
            |(host, path, parts, fragment)| {
                let query =
                    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) };
                format!("https://{host}/{path}{query}{fragment}")
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_clean_stays_the_same(link in links()) {
            if let Ok(link) = WebUrl::parse(&link) {
                let once = clean(&link);
                prop_assert_eq!(clean(&once), once);
            }
        }

        #[test]
        fn a_link_without_redirector_keeps_its_page_and_what_chooses_it(
            path in "[a-z/%.~-]{0,20}", kept in "[b-f]{1,3}=[a-z0-9%+]{0,9}", dropped in "utm_[a-z]{0,9}=[a-z]{0,9}",
        ) {
            let want = WebUrl::parse(&format!("https://a.test/{path}?{kept}")).unwrap();
            for query in [format!("{kept}&{dropped}"), format!("{dropped}&{kept}")] {
                let link = WebUrl::parse(&format!("https://a.test/{path}?{query}")).unwrap();
                prop_assert_eq!(clean(&link), want.clone());
            }
        }
    }
}
