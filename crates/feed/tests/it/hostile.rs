//! Whatever comes, reading it ends soon, and harms nobody.

use std::time::Duration;

use fetchwell_feed::{MAX_ENTRIES, MAX_FEED_BYTES, MAX_FIELD_BYTES, clean, opml, read, sitemap};
use fetchwell_policy::url::WebUrl;
use nix::time::{ClockId, clock_gettime};
use proptest::prelude::*;

/// Far more CPU time than any of these takes, and far less than quadratic parsing would take.
const SOON: Duration = Duration::from_secs(20);

/// The most URLs that are kept of a sitemap here.
const MAX_URLS: usize = 9;

/// The CPU time of this thread. Unlike wall-clock time, it does not depend on what else the machine does.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

fn ends(body: &[u8]) {
    let found_at = WebUrl::parse("http://a.test/").unwrap();
    if let Ok(feed) = read(body, None, &found_at) {
        assert!(feed.entries.len() <= MAX_ENTRIES);
        for entry in feed.entries {
            assert_eq!(clean(&clean(&entry.link)), clean(&entry.link));
        }
    }
    drop(opml::read(&String::from_utf8_lossy(body)));
    if let Ok(sitemap) = sitemap::read(body, None, &[found_at.site()], MAX_URLS) {
        assert!(sitemap.urls.len() <= MAX_URLS);
    }
}

#[test]
fn a_bomb_of_entities_is_a_few_bytes_of_text() {
    let mut bomb = "<!DOCTYPE x [<!ENTITY a0 \"ha\">".to_owned();
    for n in 1..60 {
        bomb += &format!("<!ENTITY a{n} \"&a{};&a{};\">", n - 1, n - 1);
    }
    bomb += "]><rss><item><title>&a59;</title><link>http://a.test/1</link></item></rss>";
    let feed = read(bomb.as_bytes(), None, &WebUrl::parse("http://a.test/").unwrap()).unwrap();
    assert_eq!((feed.entries[0].title.as_str(), feed.entries.len()), ("&a59;", 1));
}

#[test]
fn no_repetition_takes_the_square_of_its_length() {
    for piece in [
        "<a>",
        "<item>",
        "</item>",
        "<a \"",
        "<a b='",
        "<![CDATA[",
        "<!--",
        "<!",
        "<?",
        "&",
        "<",
        "&#",
        "<a b=c ",
        "<item><title>",
        "<title><link>",
        "<outline text='a'>",
        "<outline xmlUrl='a' category='b,c'/>",
        "[",
        "{\"a\":",
        "<a xml:base='/x/'>",
        "]]>",
        "\0",
        "<link href='/?utm_x=1&amp;utm_x=1'/>",
        "<loc>http://a.test/&amp;",
        "<url><x:a>",
        "<x:a xmlns='",
    ] {
        for start in [
            "<rss><channel>",
            "<feed><entry>",
            "<opml>",
            "<urlset><url>",
            "{\"items\":[",
            "<!DOCTYPE x [",
        ] {
            let body = format!("{start}{}", piece.repeat(200_000 / piece.len()));
            let begun = thread_time();
            ends(body.as_bytes());
            let took = thread_time() - begun;
            assert!(took < SOON, "{start}{piece}…: {took:?}");
        }
    }
}

#[test]
fn a_bomb_of_entities_in_a_sitemap_is_no_url() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"http://a.test/\"><!ENTITY b \"&a;&a;\">]>\
                <urlset><loc>&b;</loc><loc>http://a.test/&b;</loc></urlset>";
    let site = WebUrl::parse("http://a.test/").unwrap().site();
    let sitemap = sitemap::read(bomb.as_bytes(), None, &[site], MAX_URLS).unwrap();
    assert_eq!((sitemap.unusable, sitemap.urls), (1, vec!["http://a.test/&b;".to_owned()]));
}

#[test]
fn a_title_of_markup_without_end_is_cut_and_read_soon() {
    for piece in ["<a", "<"] {
        let title = piece.repeat((2 << 20) / piece.len());
        let body = format!("{{\"items\":[{{\"url\":\"/1\",\"title\":\"{title}\"}}]}}");
        let begun = thread_time();
        let feed = read(body.as_bytes(), None, &WebUrl::parse("http://a.test/").unwrap()).unwrap();
        let took = thread_time() - begun;
        assert!(took < SOON, "{piece}…: {took:?}");
        assert_eq!(feed.entries[0].title.len(), MAX_FIELD_BYTES);
    }
}

#[test]
fn what_is_too_long_is_read_up_to_the_bound() {
    let mut body = b"<rss><item><link>http://a.test/1</link></item>".to_vec();
    body.resize(MAX_FEED_BYTES + 1, b' ');
    let feed = read(&body, None, &WebUrl::parse("http://a.test/").unwrap()).unwrap();
    assert_eq!((feed.entries.len(), feed.gaps.ends_early), (1, true));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
        ends(&body);
    }

    #[test]
    fn no_soup_makes_it_panic(
        body in "(<rss>|<feed>|<item>|</item>|<entry>|</entry>|<title>|</title>|<link>|</link>|<link href='|'/>|<!\\[CDATA\\[|\\]\\]>|&amp;|&#x|;|http://a.test/|<|>|\"|é|\\PC| ){0,60}",
    ) {
        ends(body.as_bytes());
        ends(format!("<rss><channel>{body}").as_bytes());
        ends(format!("{{\"items\":[{body}").as_bytes());
    }

    #[test]
    fn no_soup_of_a_sitemap_makes_it_panic(
        body in "(<urlset>|</urlset>|<url>|</url>|<s:url>|<loc>|</loc>|<s:loc>|<x:a>|</x:a>|<a xmlns=''>|<!\\[CDATA\\[|\\]\\]>|<!--|-->|&#|;|http://a.test/|<|>|é|\\PC| ){0,60}",
    ) {
        ends(body.as_bytes());
        ends(format!("<urlset>{body}").as_bytes());
        ends(format!("<s:sitemapindex>{body}").as_bytes());
    }

    #[test]
    fn cutting_a_sitemap_anywhere_keeps_what_was_whole(at in 0_usize..400) {
        let urls: String = (0..4)
            .map(|n| format!("<url><loc>http://a.test/é{n}</loc><i:i><i:loc>http://a.test/</i:loc></i:i></url>"))
            .collect();
        let whole = format!("<urlset xmlns='x'>{urls}</urlset>");
        let cut = &whole.as_bytes()[..at.min(whole.len())];
        let ended = cut.windows(6).filter(|bytes| bytes == b"</loc>").count();
        let site = WebUrl::parse("http://a.test/").unwrap().site();
        match sitemap::read(cut, None, &[site], MAX_URLS) {
            Ok(sitemap) => {
                prop_assert_eq!((sitemap.urls.len(), sitemap.unusable), (ended, 0));
            }
            Err(_) => prop_assert_eq!(ended, 0),
        }
    }

    #[test]
    fn cutting_a_feed_anywhere_keeps_what_was_whole(at in 0_usize..400) {
        let items: String =
            (0..4).map(|n| format!("<item><title>é{n}</title><link>http://a.test/{n}</link></item>")).collect();
        let whole = format!("<rss version='2.0'><channel><title>x</title>{items}</channel></rss>");
        let at = at.min(whole.len());
        let found_at = WebUrl::parse("http://a.test/").unwrap();
        let ended = whole.as_bytes()[..at].windows(7).filter(|bytes| bytes == b"</item>").count();
        match read(&whole.as_bytes()[..at], None, &found_at) {
            Ok(feed) => {
                prop_assert_eq!(feed.entries.len(), ended);
                prop_assert_eq!(feed.gaps.ends_early, at < whole.len());
            }
            Err(_) => prop_assert_eq!(ended, 0),
        }
    }
}
