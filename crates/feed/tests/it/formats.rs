//! Every format, as it should be and as it is found.

use fetchwell_feed::{Feed, FeedFormat, MAX_ENTRIES, NoFeed, read};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

const NOON: Time = Time::from_secs(1_700_049_600);

fn found(body: &str) -> Result<Feed, NoFeed> {
    read(body.as_bytes(), None, &WebUrl::parse("http://a.test/feeds/news.xml").unwrap())
}

fn links(body: &str) -> Vec<String> {
    let feed = found(body).unwrap_or_else(|no_feed| panic!("{no_feed}: {body}"));
    feed.entries.iter().map(|entry| entry.link.to_string()).collect()
}

/// The links, and whether it ended early.
fn read_whole(body: &str) -> (Vec<String>, bool) {
    (links(body), found(body).unwrap().gaps.ends_early)
}

fn item(n: u32) -> String {
    format!("<item><title>t{n}</title><link>http://a.test/{n}</link></item>")
}

fn rss(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>News</title>\
         <link>http://a.test/</link>{inner}</channel></rss>"
    )
}

#[test]
fn each_format_is_told_by_what_it_is() {
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='x'>
        <channel><title>News</title></channel>
        <item rdf:about='http://a.test/1'><title>One</title><link>http://a.test/1</link>
        <dc:date>2023-11-15T12:00:00Z</dc:date></item></rdf:RDF>";
    let rss = "<rss version='0.91'><channel><image><title>no</title></image><title>News</title><item>
        <title>One</title><link>http://a.test/1</link><pubDate>Wed, 15 Nov 2023 12:00:00 GMT</pubDate>
        </item></channel></rss>";
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title type='html'>&lt;b&gt;News&lt;/b&gt;</title>
        <link rel='self' href='http://a.test/feed'/><entry><title>One</title><link href='http://a.test/1'/>
        <updated>2024-01-01T00:00:00Z</updated><published>2023-11-15T12:00:00Z</published></entry></feed>";
    let json = r#"{"version":"https://jsonfeed.org/version/1.1","title":"News","items":[
        {"id":7,"url":"http://a.test/1","title":"One","date_published":"2023-11-15T12:00:00Z"}]}"#;
    for (body, format) in [
        (rss, FeedFormat::Rss),
        (rdf, FeedFormat::Rdf),
        (atom, FeedFormat::Atom),
        (json, FeedFormat::Json),
    ] {
        let feed = found(body).unwrap();
        let [entry] = feed.entries.as_slice() else { panic!("{feed:?}") };
        assert_eq!((feed.format, feed.title.as_str()), (format, "News"));
        let seen = (entry.link.as_str(), entry.title.as_str(), entry.published);
        assert_eq!(seen, ("http://a.test/1", "One", Some(NOON)), "{format}");
        assert_eq!(feed.gaps.to_string(), "", "{format}");
    }
}

/// It was found at `a.test`.
#[test]
fn a_feed_is_at_home_where_it_says_too() {
    let channel = |inner: &str| format!("<rss><channel>{inner}<item/></channel></rss>");
    let atom =
        |inner: &str| format!("<feed>{inner}<entry><link href='http://c.test/'/></entry></feed>");
    for (body, at_b) in [
        (channel("<link>http://www.b.test/</link>"), true),
        (channel("<title>News<link>http://b.test/</link>"), true),
        (channel("<atom:link rel='self' href='http://b.test/feed'/>"), false),
        (channel("<image><link>http://b.test/</link></image>"), false),
        (channel("<link>http://c.test/</link><link>http://b.test/</link>"), false),
        ("<rdf:RDF><channel><link>http://b.test/</link></channel><item/></rdf:RDF>".into(), true),
        (atom("<link rel='alternate' type='text/html' href='http://b.test/'/>"), true),
        (atom("<link href='http://b.test/'/>"), true),
        (atom("<link rel='hub' href='http://b.test/'/>"), false),
        (r#"{"home_page_url":"http://b.test/","items":[]}"#.into(), true),
        (r#"{"feed_url":"http://b.test/","items":[]}"#.into(), false),
    ] {
        let feed = found(&body).unwrap();
        let has = |page: &str| feed.home.has(&WebUrl::parse(page).unwrap());
        assert_eq!(has("http://b.test/1"), at_b, "{body}");
        assert!(has("http://a.test/1"), "{body}");
    }
}

#[test]
fn a_fault_costs_no_more_than_its_own_entry() {
    let between = |fault: &str| rss(&format!("{}{fault}{}", item(1), item(2)));
    let one = "http://a.test/1";
    let two = "http://a.test/2";
    let x = "http://a.test/x";
    for (fault, middle) in [
        ("<item><title>a & b</title><link>http://a.test/x</link></item>", Some(x)),
        (
            "<item><title>a&nbsp;&eacute;&nosuch;</title><link>http://a.test/x</link></item>",
            Some(x),
        ),
        ("<item><title>x</titel><link>http://a.test/x</link></item>", Some(x)),
        ("<item><title>1 < 2</title><link>http://a.test/x</link></item>", Some(x)),
        ("<item><title>x<link>http://a.test/x</link></item>", Some(x)),
        ("<item><link>http://a.test/x</link>", Some(x)),
        ("<item><enclosure url=x length=1 length=2 /><link>http://a.test/x</link></item>", Some(x)),
        (
            "<item><description><p>text <a href='/y'>y</a><br></description><link>http://a.test/x</link></item>",
            Some(x),
        ),
        ("<item><title>\u{b}</title><link>\n http://a.test/x \n</link></item>", Some(x)),
        ("<item><title>no link</title></item>", None),
        ("<item><link>javascript:alert(1)</link></item>", None),
        ("<item/>", None),
        ("</item></b>", None),
    ] {
        let mut want = vec![one, two];
        if let Some(middle) = middle {
            want.insert(1, middle);
        }
        assert_eq!(
            read_whole(&between(fault)),
            (want.iter().map(|l| (*l).to_owned()).collect(), false),
            "{fault}"
        );
    }
}

#[test]
fn what_was_whole_before_the_end_is_kept_and_the_end_is_said() {
    let whole = rss(&(1..=3).map(item).collect::<String>());
    let cut = |at: &str| whole.get(..whole.rfind(at).unwrap() + 3).unwrap().to_owned();
    let two = vec!["http://a.test/1".to_owned(), "http://a.test/2".to_owned()];
    for body in [
        cut("<link>"),
        cut("http://a.test/3"),
        cut("</item>"),
        rss(&format!(
            "{}{}<item><link>http://a.test/x</link><description><![CDATA[x</description></item>",
            item(1),
            item(2)
        )),
        rss(&format!("{}{}<!-- <item>", item(1), item(2))),
    ] {
        assert_eq!(read_whole(&body), (two.clone(), true), "{body}");
    }
    let json =
        r#"{"items":[{"url":"http://a.test/1"},{"url":"http://a.test/2"},{"url":"http://a.t"#;
    assert_eq!(read_whole(json), (two, true));
}

#[test]
fn what_stands_before_a_feed_does_not_hide_it() {
    let body = rss(&item(1));
    for before in [
        "\n \n",
        "\u{feff}",
        "<br />\n<b>Warning</b>: x in y on line <b>3</b><br />\n",
        "<!-- x -->",
    ] {
        assert_eq!(links(&format!("{before}{body}")), ["http://a.test/1"], "{before}");
    }
    assert_eq!(links(&body.replace(" version=\"2.0\"", "")), ["http://a.test/1"]);
    assert_eq!(
        links(&body.replace("</channel>", "").replace("<item>", "</channel><item>")),
        ["http://a.test/1"]
    );
}

/// The expectations are those of RSS 2.0 (`guid` with and without `isPermaLink`, `source`), of RFC 4287 (sections 4.2.7
/// and 4.2.11; `xml:base` in section 2), of JSON Feed 1.1 (`external_url`) and, where an entry has only an `id`, of
/// feedparser.
#[test]
fn the_page_is_chosen_among_the_links_of_an_entry() {
    let rss_entry = |inner: &str| rss(&format!("<item>{inner}</item>"));
    let atom = |inner: &str| format!("<feed xml:base='/blog/'><entry>{inner}</entry></feed>");
    for (body, want) in [
        (
            rss_entry(
                "<link>http://f.test/~r/1</link><feedburner:origLink>http://a.test/o</feedburner:origLink>",
            ),
            "http://a.test/o",
        ),
        (rss_entry("<guid>http://a.test/g</guid>"), "http://a.test/g"),
        (
            rss_entry("<link></link><guid isPermaLink='true'>http://a.test/g</guid>"),
            "http://a.test/g",
        ),
        (rss_entry("<guid isPermaLink='false'>http://a.test/g</guid>"), ""),
        (rss_entry("<guid>tag:a.test,1</guid>"), ""),
        (rss_entry("<guid>http://a.test/g</guid><link>http://a.test/l</link>"), "http://a.test/l"),
        (rss_entry("<atom:link rel='alternate' href='http://a.test/l'/>"), "http://a.test/l"),
        (
            rss_entry(
                "<atom:link rel='replies' href='http://a.test/l'/><comments>http://a.test/c</comments>",
            ),
            "",
        ),
        (rss_entry("<link>/r?a=1&amp;b=2&c=3</link>"), "http://a.test/r?a=1&b=2&c=3"),
        (
            rss_entry("<link><![CDATA[http://a.test/?a=1&amp;b=2]]></link>"),
            "http://a.test/?a=1&b=2",
        ),
        (
            rss_entry(
                "<media:group><media:title>no</media:title><link>http://a.test/no</link></media:group>",
            ),
            "",
        ),
        (
            rss_entry("<source url='http://b.test/'>B</source><link>1.html</link>"),
            "http://a.test/feeds/1.html",
        ),
        (atom("<link rel='self' href='x'/><link href='1'/>"), "http://a.test/blog/1"),
        (
            atom(
                "<link rel='alternate' type='application/json' href='2'/><link rel='alternate' type='text/html' href='1'/>",
            ),
            "http://a.test/blog/1",
        ),
        (atom("<link xml:base='http://b.test/x/' href='1'/>"), "http://b.test/x/1"),
        (atom("<source><link href='no'/></source><link href='1'/>"), "http://a.test/blog/1"),
        (atom("<link rel='edit' href='1'/><content src='2'/>"), "http://a.test/blog/2"),
        (atom("<id>http://a.test/id</id><link rel='enclosure' href='1.mp3'/>"), "http://a.test/id"),
        (atom("<id>http://a.test/id</id><link href='1'/>"), "http://a.test/blog/1"),
        (atom("<id>tag:a.test,2023:1</id>"), ""),
        (atom("<id> HTTP://a.test/id</id>"), "http://a.test/id"),
        (rss_entry("<guid>Https://a.test/g</guid>"), "https://a.test/g"),
        (
            atom("<content type='xhtml'><div><link href='no'/></div></content><link href='1'/>"),
            "http://a.test/blog/1",
        ),
        (r#"{"items":[{"external_url":"http://b.test/"}]}"#.into(), "http://b.test/"),
        (r#"{"items":[{"id":"http://a.test/1"}]}"#.into(), "http://a.test/1"),
        (r#"{"items":[{"id":"1"},[],null,3]}"#.into(), ""),
    ] {
        assert_eq!(links(&body).concat(), want, "{body}");
    }
    let prefixed = "<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:entry><a:title>x</a:title>\
                    <a:link href='http://a.test/1'/></a:entry></a:feed>";
    let feed = found(prefixed).unwrap();
    assert_eq!((feed.entries[0].title.as_str(), feed.entries.len()), ("x", 1));
}

#[test]
fn bytes_are_read_in_the_charset_that_is_said() {
    let found_at = WebUrl::parse("http://a.test/").unwrap();
    let body = |declared: &str| {
        let mut body =
            format!("<?xml version='1.0'{declared}?><rss><channel><item><title>caf").into_bytes();
        body.extend(b"\xe9</title><link>http://a.test/1</link></item></channel></rss>");
        body
    };
    for (declared, content_type) in
        [(" encoding='ISO-8859-1'", None), ("", Some("application/rss+xml; charset=iso-8859-1"))]
    {
        let feed = read(&body(declared), content_type, &found_at).unwrap();
        assert_eq!(feed.entries[0].title, "café", "{declared} {content_type:?}");
    }
}

/// XML tells UTF-16 and UTF-32 by the zeros around its first characters (XML 1.0, appendix F).
#[test]
fn wide_characters_are_read_with_and_without_a_byte_order_mark() {
    let found_at = WebUrl::parse("http://a.test/").unwrap();
    for mark in ["", "\u{feff}"] {
        let feed = format!("{mark}<rss><item><title>é😀</title><link>/1</link></item></rss>");
        let utf_16 = || feed.encode_utf16();
        let utf_32 = || feed.chars().map(u32::from);
        let bodies: [(&str, Vec<u8>); 4] = [
            ("UTF-16LE", utf_16().flat_map(u16::to_le_bytes).collect()),
            ("UTF-16BE", utf_16().flat_map(u16::to_be_bytes).collect()),
            ("UTF-32LE", utf_32().flat_map(u32::to_le_bytes).collect()),
            ("UTF-32BE", utf_32().flat_map(u32::to_be_bytes).collect()),
        ];
        for (charset, body) in bodies {
            for content_type in [None, Some("application/rss+xml; charset=utf-8")] {
                let feed = read(&body, content_type, &found_at).unwrap();
                assert_eq!(feed.entries[0].title, "é😀", "{charset} {mark:?} {content_type:?}");
            }
        }
    }
}

/// The titles that feedparser 6.0.14 finds: those of Dublin Core and of Media RSS stand in for a missing one, and Atom
/// 0.3 may write text as Base64. One difference: of several titles, feedparser takes the first; we prefer the one in the
/// feed's own format.
#[test]
fn titles_are_found_under_other_names() {
    let entry = |inner: &str| format!("<feed><entry>{inner}<link href='/1'/></entry></feed>");
    for (inner, want) in [
        ("<dc:title>a</dc:title>", "a"),
        ("<media:title type='plain'>a</media:title>", "a"),
        ("<dc:title>b</dc:title><title>a</title>", "a"),
        ("<title>a</title><media:title>b</media:title>", "a"),
        ("<title> </title><dc:title>a</dc:title>", "a"),
        ("<dc:title>a</dc:title><title> </title>", "a"),
        ("<media:group><media:title>a</media:title></media:group>", "a"),
        ("<title>a</title><media:group><media:title>b</media:title></media:group>", "a"),
        ("<media:group><media:title>b</media:title></media:group><title>a</title>", "a"),
        ("<author><dc:title>b</dc:title></author>", ""),
        ("<title type='text/plain' mode='base64'>\n w6kg\n YiBj </title>", "é b c"),
        ("<title mode='base64'>not Base64!</title>", "not Base64!"),
    ] {
        assert_eq!(found(&entry(inner)).unwrap().entries[0].title, want, "{inner}");
    }
    for titles in [
        "<dc:title>News</dc:title>",
        "<itunes:title>Short</itunes:title><title>News</title><title>Other</title>",
        "<title>News</title><itunes:title>Short</itunes:title>",
        "<dc:title>News</dc:title><title> </title>",
    ] {
        let feed = found(&format!("<rss><channel>{titles}<item/></channel></rss>")).unwrap();
        assert_eq!(feed.title, "News", "{titles}");
    }
}

#[test]
fn what_is_no_feed_says_so_and_a_page_names_its_feeds() {
    let page = "<!doctype html><html><head><link rel=alternate type=application/rss+xml href=/rss>\
                <LINK REL='alternate' TYPE='application/atom+xml' HREF='//b.test/atom'>\
                <link rel=alternate hreflang=de href=/de></head><body><link rel=alternate \
                type=application/rss+xml href=/no></body></html>";
    let Err(NoFeed::Page { feeds }) = found(page) else { panic!("it is a page") };
    let feeds: Vec<&str> = feeds.iter().map(WebUrl::as_str).collect();
    assert_eq!(feeds, ["http://a.test/rss", "http://b.test/atom"]);
    for nothing in ["", "hello", "<x/>", "{}", "{\"items\":{}", "[1]", "{\"a\":1}"] {
        let ends = found(nothing).map(|feed| feed.entries.len());
        assert!(matches!(ends, Err(NoFeed::Else) | Ok(0)), "{nothing}");
    }
    assert!(found("<html></html>").unwrap_err().to_string().contains("links to no feeds"));
}

#[test]
fn entries_beyond_the_bound_are_counted() {
    let many: String = (0..MAX_ENTRIES as u32 + 3).map(item).collect();
    let feed = found(&rss(&many)).unwrap();
    assert_eq!((feed.entries.len(), feed.gaps.left_out), (MAX_ENTRIES, 3));
}
