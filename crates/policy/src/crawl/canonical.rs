//! Which URLs are the same page.

use sha2::{Digest, Sha256};

use crate::tracking::tracks;
use crate::url::WebUrl;

/// Identifies a page of a crawl.
pub type PageKey = [u8; 16];

/// Parameters that identify a visit, in lower case.
const SESSION_NAMES: &[&str] =
    &["phpsessid", "jsessionid", "cfid", "cftoken", "zenid", "oscsid", "xtcsid"];

/// Parameters that identify a visit if their value is long and random. Any other value may select the page: a section,
/// or a session of a conference.
const RANDOM_SESSION_NAMES: &[&str] = &["sid", "sessid", "sessionid", "session_id"];

/// The minimum length of a random value.
const MIN_RANDOM_BYTES: usize = 16;
/// How often letters and digits alternate in it at least.
const MIN_CHANGES: usize = 4;

/// The prefix of Microsoft's session parameters, which end in random letters.
const ASP_SESSION: &str = "aspsessionid";

/// The session parameter of Java servers, at the end of a path segment.
const PATH_SESSION: &str = ";jsessionid=";

/// The URL without parameters that identify a visitor: tracking and session parameters.
#[must_use]
pub fn plain_url(url: &WebUrl) -> WebUrl {
    let plain = url.without_parameters(|name, value| tracks(name) || is_session(name, value));
    let mut plain = plain.unwrap_or_else(|| url.clone());
    while let Some(shorter) = without_path_session(&plain) {
        plain = shorter;
    }
    plain
}

/// The key of a page. URLs that differ only in the order of their parameters have the same key. The first two bytes are
/// the same for all pages of a site, which keeps them together in an index.
pub fn page_key(url: &WebUrl) -> PageKey {
    let text = url.as_str();
    let (before, query) = text.split_once('?').unwrap_or((text, ""));
    let mut parameters: Vec<&str> = query.split('&').filter(|part| !part.is_empty()).collect();
    parameters.sort_unstable();
    let mut own = Sha256::new();
    own.update(before);
    for parameter in parameters {
        // No URL contains a line feed.
        own.update("\n");
        own.update(parameter);
    }
    let mut key = PageKey::default();
    key[..2].copy_from_slice(&Sha256::digest(url.site().as_str())[..2]);
    key[2..].copy_from_slice(&own.finalize()[..14]);
    key
}

fn is_session(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SESSION_NAMES.contains(&name.as_str())
        || name.starts_with(ASP_SESSION)
        || RANDOM_SESSION_NAMES.contains(&name.as_str()) && is_random(value)
}

/// Whether a value is long and random: a UUID, a long number, or letters and digits that alternate often.
fn is_random(value: &str) -> bool {
    let bytes = value.as_bytes();
    let is_uuid = bytes.len() == 36 && bytes.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    let is_plain = bytes.len() >= MIN_RANDOM_BYTES && bytes.iter().all(u8::is_ascii_alphanumeric);
    let is_digit: Vec<bool> = bytes.iter().map(u8::is_ascii_digit).collect();
    let changes = is_digit.windows(2).filter(|pair| pair.first() != pair.last()).count();
    is_uuid || is_plain && (changes >= MIN_CHANGES || is_digit.iter().all(|is_digit| *is_digit))
}

/// `None` if there is nothing to remove.
fn without_path_session(url: &WebUrl) -> Option<WebUrl> {
    let text = url.as_str();
    let at = text.to_ascii_lowercase().find(PATH_SESSION)?;
    let (before, session) = text.split_at_checked(at)?;
    let after = session.find(['/', '?']).and_then(|end| session.get(end..)).unwrap_or_default();
    // In a query it is part of a value.
    (!before.contains('?')).then(|| WebUrl::parse(&format!("{before}{after}")).ok())?
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> WebUrl {
        WebUrl::parse(text).unwrap()
    }

    #[test]
    fn what_identifies_a_visitor_is_dropped_and_all_else_stays() {
        for (link, page) in [
            ("http://a.test/x?utm_source=y&id=1", "http://a.test/x?id=1"),
            ("http://a.test/x?PHPSESSID=1", "http://a.test/x"),
            ("http://a.test/x?sid=9f3a7c0e5b1d8642&p=1", "http://a.test/x?p=1"),
            ("http://a.test/x?sid=1fd2c5f6-7b3a-4f7e-9d1c-0a2b4c6d8e0f", "http://a.test/x"),
            ("http://a.test/x?sid=12&p=1", "http://a.test/x?sid=12&p=1"),
            (
                "http://a.test/x?sessionid=rustconf2026keynote",
                "http://a.test/x?sessionid=rustconf2026keynote",
            ),
            (
                "http://a.test/x?session_id=day-1-opening-talk",
                "http://a.test/x?session_id=day-1-opening-talk",
            ),
            ("http://a.test/x?at_date=2&pk_id=3&cmp=4", "http://a.test/x?at_date=2&pk_id=3&cmp=4"),
            ("http://a.test/x?ASPSESSIONIDQQ=1&b", "http://a.test/x?b"),
            ("http://a.test/x;jsessionid=A1?b=2", "http://a.test/x?b=2"),
            ("http://a.test/x;JSESSIONID=A1/y", "http://a.test/x/y"),
            ("http://a.test/x?u=;jsessionid=1", "http://a.test/x?u=;jsessionid=1"),
            ("http://a.test/x;a=1?sidney=2&page=3#f", "http://a.test/x;a=1?sidney=2&page=3"),
        ] {
            assert_eq!(plain_url(&url(link)).as_str(), page, "{link}");
        }
    }

    #[test]
    fn the_order_of_parameters_makes_no_other_page() {
        let key = |link| page_key(&url(link));
        assert_eq!(key("http://a.test/?a=1&b=2"), key("http://a.test/?b=2&a=1"));
        assert_eq!(key("http://a.test/?"), key("http://a.test/"));
        assert_eq!(key("http://a.test/?a=1&"), key("http://a.test/?a=1"));
        let others = [
            "http://a.test/?a=1",
            "http://a.test/?a=1&a=1",
            "http://a.test/?a=1&b=2",
            "http://a.test/&a=1",
            "http://a.test/a",
            "http://a.test/a/",
            "https://a.test/a",
        ];
        let keys: HashSet<PageKey> = others.into_iter().map(key).collect();
        assert_eq!(keys.len(), others.len());
        let prefixes: HashSet<[u8; 2]> = keys.iter().map(|key| [key[0], key[1]]).collect();
        assert_eq!(prefixes.len(), 1);
    }

    proptest! {
        #[test]
        fn a_plain_url_is_plain(link in "http://a\\.test/(x|;jsessionid=[0-9a-z]{0,3}|/|\\?|&|cfid=1|utm_a=2|b=3){0,8}") {
            let once = plain_url(&url(&link));
            prop_assert_eq!(plain_url(&once), once);
        }
    }
}
