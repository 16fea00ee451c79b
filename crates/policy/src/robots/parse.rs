//! Parses the bytes of a robots.txt into groups of lines.

use super::{MAX_ROBOTS_BYTES, product_token};

/// A robots.txt, divided into its groups.
#[derive(Default)]
pub(super) struct File<'a> {
    groups: Vec<Group<'a>>,
    pub(super) sitemaps: Vec<&'a [u8]>,
}

/// The bots that consecutive User-agent lines name, and their rules.
#[derive(Default)]
pub(super) struct Group<'a> {
    names_us: bool,
    names_everyone: bool,
    pub(super) rules: Vec<Line<'a>>,
    pub(super) crawl_delays: Vec<Line<'a>>,
}

/// A line with a known key.
pub(super) struct Line<'a> {
    /// The first line of the file is 1.
    pub(super) number: u32,
    pub(super) key: Key,
    pub(super) value: &'a [u8],
    /// Key and value as written, without the comment and surrounding white space.
    pub(super) text: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

impl<'a> File<'a> {
    pub(super) fn read(body: &'a [u8], our_token: &str) -> File<'a> {
        let mut file = File::default();
        // Only a rule ends a series of User-agent lines. A Crawl-delay or a Sitemap between them does not, so such a
        // Crawl-delay also applies to the bots named after it.
        let mut more_agents_may_follow = false;
        for line in lines(body) {
            if line.key == Key::UserAgent && !more_agents_may_follow {
                file.groups.push(Group::default());
            }
            match (line.key, file.groups.last_mut()) {
                (Key::Sitemap, _) => file.sitemaps.push(line.value),
                (Key::UserAgent, Some(group)) => {
                    more_agents_may_follow = true;
                    group.address(line.value, our_token);
                }
                (Key::CrawlDelay, Some(group)) => group.crawl_delays.push(line),
                (Key::Allow | Key::Disallow, Some(group)) => {
                    more_agents_may_follow = false;
                    group.rules.push(line);
                }
                // Lines before the first User-agent line apply to no bot.
                (_, None) => {}
            }
        }
        file
    }

    /// All groups that name us or, if there are none, all groups for `*`.
    pub(super) fn groups_for_us(&self) -> impl Iterator<Item = &Group<'a>> {
        let named = self.groups.iter().any(|group| group.names_us);
        self.groups
            .iter()
            .filter(move |group| if named { group.names_us } else { group.names_everyone })
    }
}

impl Group<'_> {
    fn address(&mut self, user_agent: &[u8], our_token: &str) {
        let user_agent = String::from_utf8_lossy(user_agent);
        let token = product_token(&user_agent);
        self.names_us |= !token.is_empty() && token.eq_ignore_ascii_case(our_token);
        self.names_everyone |= user_agent.split_ascii_whitespace().next() == Some("*");
    }
}

fn lines(body: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let body = within_limit(body);
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    // CRLF ends one line, not two; a single CR ends a line, too.
    let lines = body
        .split(|octet| *octet == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .flat_map(|line| line.split(|octet| *octet == b'\r'));
    (1..).zip(lines).filter_map(|(number, line)| Line::read(number, line))
}

/// The first [`MAX_ROBOTS_BYTES`] without a line that is cut in two there, because half a pattern may forbid or allow
/// more than the whole one.
fn within_limit(body: &[u8]) -> &[u8] {
    let is_line_end = |octet: &u8| matches!(octet, b'\r' | b'\n');
    match body.split_at_checked(MAX_ROBOTS_BYTES) {
        Some((head, rest)) if rest.first().is_some_and(|octet| !is_line_end(octet)) => {
            &head[..head.iter().rposition(is_line_end).unwrap_or(0)]
        }
        Some((head, _)) => head,
        None => body,
    }
}

impl<'a> Line<'a> {
    fn read(number: u32, line: &'a [u8]) -> Option<Line<'a>> {
        let text = line.split(|octet| *octet == b'#').next()?.trim_ascii();
        let (key, value) = split_line(text)?;
        let key = Key::read(key.trim_ascii())?;
        Some(Line { number, key, value: value.trim_ascii(), text })
    }
}

/// Splits a line at its colon. If there is none, white space may separate the key from the value, but only in a line of
/// exactly two words.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(colon) = text.iter().position(|octet| *octet == b':') {
        return Some((&text[..colon], &text[colon + 1..]));
    }
    let space = text.iter().position(u8::is_ascii_whitespace)?;
    let value = text[space..].trim_ascii();
    (!value.iter().any(u8::is_ascii_whitespace)).then_some((&text[..space], value))
}

impl Key {
    /// Any key that begins with one of these spellings is accepted, as in Google's parser.
    fn read(key: &[u8]) -> Option<Key> {
        const SPELLINGS: [(&[u8], Key); 13] = [
            (b"user-agent", Key::UserAgent),
            (b"useragent", Key::UserAgent),
            (b"user agent", Key::UserAgent),
            (b"allow", Key::Allow),
            (b"disallow", Key::Disallow),
            (b"dissallow", Key::Disallow),
            (b"dissalow", Key::Disallow),
            (b"disalow", Key::Disallow),
            (b"diasllow", Key::Disallow),
            (b"disallaw", Key::Disallow),
            (b"crawl-delay", Key::CrawlDelay),
            (b"sitemap", Key::Sitemap),
            (b"site-map", Key::Sitemap),
        ];
        let begins_with = |spelling: &[u8]| {
            key.get(..spelling.len()).is_some_and(|start| start.eq_ignore_ascii_case(spelling))
        };
        SPELLINGS.iter().find(|(spelling, _)| begins_with(spelling)).map(|(_, key)| *key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::robots::Robots;

    fn otto_may(body: &[u8], path: &str) -> bool {
        Robots::parse(body, "OttoBot/1.0").verdict(path).allowed
    }

    /// Each case says whether OttoBot may fetch `/x`.
    #[test]
    fn the_groups_that_apply() {
        let cases: &[(&str, bool)] = &[
            ("", true),
            ("User-agent: *\nDisallow: /", false),
            ("User-agent: OttoBot\nDisallow: /", false),
            ("User-agent: ottobot\nDisallow: /", false),
            ("User-agent: OTTOBOT/2.1 (old)\nDisallow: /", false),
            ("User-agent:OttoBot\nDisallow:/", false),
            ("User-agent: Otto\nDisallow: /", true),
            ("User-agent: OttoBotImages\nDisallow: /", true),
            ("User-agent: OttoBot2\nDisallow: /", true),
            ("User-agent: My OttoBot\nDisallow: /", true),
            ("User-agent:\nDisallow: /", true),
            ("User-agent: *Bot\nDisallow: /", true),
            ("User-agent: * # everyone\nDisallow: /", false),
            // Our own group silences the one for everyone, wherever they stand.
            ("User-agent: *\nDisallow: /\n\nUser-agent: OttoBot\nDisallow: /y", true),
            ("User-agent: OttoBot\nDisallow: /y\n\nUser-agent: *\nDisallow: /", true),
            ("User-agent: *\nDisallow: /\n\nUser-agent: OttoBot\nDisallow:", true),
            ("User-agent: *\nDisallow: /\n\nUser-agent: OttoBot", true),
            ("User-agent: *\nDisallow: /\n\nUser-agent: Other\nDisallow:", false),
            // Groups for the same bot are one.
            ("User-agent: OttoBot\nDisallow: /y\nUser-agent: OttoBot\nDisallow: /x", false),
            ("User-agent: OttoBot\nAllow: /x\nUser-agent: OttoBot\nDisallow: /", true),
            ("User-agent: *\nAllow: /z\nUser-agent: a\nAllow: /\nUser-agent:*\nDisallow:/", false),
            // User-agent lines in a row share what follows; only a rule ends the row.
            ("User-agent: a\nUser-agent: OttoBot\nUser-agent: b\nDisallow: /", false),
            ("User-agent: OttoBot\n\n# b too\nnonsense\nUser-agent: b\nDisallow: /", false),
            ("User-agent: OttoBot\nCrawl-delay: 1\nUser-agent: b\nDisallow: /", false),
            ("User-agent: OttoBot\nSitemap: /s\nUser-agent: b\nDisallow: /", false),
            ("User-agent: OttoBot\nDisallow:\nUser-agent: b\nDisallow: /", true),
            ("User-agent: OttoBot\nAllow: /z\nUser-agent: b\nDisallow: /", true),
            ("User-agent: OttoBot\nAllow: /z\nSitemap: /s\nDisallow: /", false),
            // Nobody is addressed yet.
            ("Disallow: /\nUser-agent: OttoBot\nDisallow: /y", true),
            ("Disallow: /", true),
        ];
        for (body, allowed) in cases {
            assert_eq!(otto_may(body.as_bytes(), "/x"), *allowed, "{body}");
        }
    }

    /// Each case says whether OttoBot may fetch `/x`.
    #[test]
    fn odd_files() {
        let cases: &[(&[u8], bool)] = &[
            (b"\xEF\xBB\xBFUser-agent: *\nDisallow: /x", false),
            (b"User-agent: *\r\nDisallow: /x\r\n", false),
            (b"User-agent: *\rDisallow: /x\r", false),
            (b"User-agent: *\n\rDisallow: /x\n\r", false),
            (b"USER-AGENT: *\nDISALLOW: /x", false),
            (b" \tUser-agent \t:\t * \n  Disallow  :  /x  ", false),
            (b"User-agent: *\nDisallow: /x# not here", false),
            (b"User-agent: *\n#Disallow: /x", true),
            (b"User-agent: *\nDisallow:: /x", true),
            (b"User-agent: *\nDis allow: /x", true),
            (b"User-agent: *\n\xFF\xFE\x00: \x80\nDisallow: /x", false),
            (b"User-agent: \xFF\nUser-agent: *\nDisallow: /x", false),
            (b"User-agent: OttoBot\xFF\nDisallow: /x", false),
            (b"<html><body>Disallow: /x</body></html>", true),
        ];
        for (body, allowed) in cases {
            assert_eq!(otto_may(body, "/x"), *allowed, "{}", body.escape_ascii());
        }
    }

    /// Each case says whether OttoBot may fetch `/x`. The expectations are those of Google's parser (google/robotstxt,
    /// `robots.cc`: `KeyIs…` for the spellings, `GetKeyAndValueFrom` for the missing colon).
    #[test]
    fn common_mistakes() {
        let cases: &[(&str, bool)] = &[
            ("User agent: *\nDisallow: /x", false),
            ("useragent: *\nDisallow: /x", false),
            ("User-agents: *\nDisallow: /x", false),
            ("User_agent: *\nDisallow: /x", true),
            ("User-agent: *\nDissallow: /x", false),
            ("User-agent: *\nDISSALOW: /x", false),
            ("User-agent: *\nDisalow: /x", false),
            ("User-agent: *\nDiasllow: /x", false),
            ("User-agent: *\nDisallaw: /x", false),
            ("User-agent: *\nDisallowed: /x", false),
            ("User-agent: *\nDisalllow: /x", true),
            ("User-agent: *\nDisallow: /\nAllowed: /x", true),
            ("User-agent: *\nDisallow: /\nAlow: /x", false),
            // A missing colon.
            ("User-agent: *\nDisallow /x", false),
            ("User-agent *\nDisallow\t /x", false),
            ("User-agent: *\nDisallow /y /x", true),
            ("User-agent: *\nDisallow", true),
            ("User agent *\nDisallow: /x", true),
        ];
        for (body, allowed) in cases {
            assert_eq!(otto_may(body.as_bytes(), "/x"), *allowed, "{body}");
        }
        let robots = Robots::parse(b"Site-map: /a\nSitemaps: /b\nSitemap /c", "OttoBot");
        assert_eq!(robots.sitemaps(), ["/a", "/b", "/c"]);
        let robots = Robots::parse(b"User-agent: *\nCrawl-delay 5", "OttoBot");
        assert_eq!(robots.crawl_delay(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn lines_are_counted_as_an_editor_would() {
        for line_end in ["\n", "\r", "\r\n"] {
            let body = ["# hello", "", "User-agent: *", "", "Disallow: /x"].join(line_end);
            let verdict = Robots::parse(body.as_bytes(), "OttoBot").verdict("/x");
            assert_eq!(verdict.line, Some(5), "{line_end:?}");
        }
    }

    /// A file of exactly the limit, whose last line is `Disallow: /x`, and then `beyond`.
    fn file_at_the_limit(beyond: &[u8]) -> Vec<u8> {
        let start = b"User-agent: *\n#";
        let end = b"\nDisallow: /x";
        let mut body = start.to_vec();
        body.resize(MAX_ROBOTS_BYTES - end.len(), b'.');
        [&body, end.as_slice(), beyond].concat()
    }

    #[test]
    fn what_lies_beyond_the_limit_is_ignored() {
        assert!(!otto_may(&file_at_the_limit(b""), "/x"));
        for line_end in ["\n", "\r", "\r\n"] {
            let body = file_at_the_limit(format!("{line_end}Disallow: /y").as_bytes());
            assert!(!otto_may(&body, "/x"), "{line_end:?}");
            assert!(otto_may(&body, "/y"), "{line_end:?}");
        }
    }

    #[test]
    fn a_line_across_the_limit_is_ignored() {
        assert!(otto_may(&file_at_the_limit(b"yz"), "/x"));
        assert!(otto_may(&vec![b'a'; MAX_ROBOTS_BYTES + 1], "/x"));
    }

    #[test]
    fn a_crawl_delay_between_user_agents_is_for_all_of_them() {
        let body = b"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x";
        for bot in ["a", "b"] {
            let robots = Robots::parse(body, bot);
            assert_eq!(robots.crawl_delay(), Some(Duration::from_secs(5)), "{bot}");
            assert!(!robots.verdict("/x").allowed, "{bot}");
        }
    }
}
