//! Sitemaps: the pages of a site, or an index of its other sitemaps.
//!
//! XML is read by the tokenizer of feeds, and as tolerantly: elements count by their names and prefixes, in any
//! case, and an error costs the entry that it is in. `lastmod` is used only to find what has not changed; `changefreq`
//! and `priority` are not read.

use std::collections::HashSet;
use std::time::Duration;

use fetchwell_extract::decode;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{MAX_URL_BYTES, Site, WebUrl};
use thiserror::Error;

use crate::date;
use crate::references::undo;
use crate::xml::{Attributes, Tokens, XmlToken, local, prefix};

/// The root element of an index.
const INDEX: &str = "sitemapindex";

/// The largest sitemap that the protocol allows, uncompressed. Callers apply it when they fetch or inflate one.
pub const MAX_SITEMAP_BYTES: usize = 50 << 20;

/// What a sitemap lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// Whether it lists sitemaps instead of pages.
    pub is_index: bool,
    /// The URLs as they are written, each once, in the order of the sitemap.
    pub urls: Vec<String>,
    /// How many URLs belong to other sites. A sitemap may list only the pages of its own.
    pub elsewhere: usize,
    /// How many entries are not URLs.
    pub unusable: usize,
    /// How many URLs exceed the limit.
    pub left_out: usize,
    /// The URLs that have not changed since the requested time, according to their `lastmod`.
    pub unchanged: Vec<String>,
}

/// The document is not a sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is neither a sitemap nor an index of sitemaps")]
pub struct NoSitemap;

/// Reads a sitemap that may list pages of `sites`: XML, or text with one URL per line, not compressed. It keeps
/// `max_urls` URLs at most. The charset is found as in [`crate::read`].
pub fn read(
    body: &[u8],
    content_type: Option<&str>,
    sites: &[Site],
    max_urls: usize,
) -> Result<Sitemap, NoSitemap> {
    read_list(&decode(body, content_type).text, Some(sites), max_urls, None)
}

/// Reads a sitemap that may list pages of any site, from decoded text. With `since`, URLs whose `lastmod` is earlier go
/// to [`Sitemap::unchanged`].
pub fn read_any_site(
    text: &str,
    max_urls: usize,
    since: Option<Time>,
) -> Result<Sitemap, NoSitemap> {
    read_list(text, None, max_urls, since)
}

fn read_list(
    text: &str,
    sites: Option<&[Site]>,
    max_urls: usize,
    since: Option<Time>,
) -> Result<Sitemap, NoSitemap> {
    let seen = HashSet::new();
    let mut list = List { sitemap: Sitemap::default(), seen, sites, max_urls, since };
    let mut tokens = Tokens::new(text);
    match root(&mut tokens) {
        Some(root) => {
            list.sitemap.is_index = is_index(root);
            read_xml(tokens, root, &mut list);
        }
        None if text.trim_start().starts_with('<') => return Err(NoSitemap),
        None => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.for_each(|line| list.add(line, None));
        }
    }
    Ok(list.sitemap)
}

/// Finds the root element, whatever comes before it: some servers print warnings there.
fn root<'a>(tokens: &mut Tokens<'a>) -> Option<&'a str> {
    tokens.find_map(|token| match token {
        XmlToken::Open { name, .. } if is_root(name) => Some(name),
        _ => None,
    })
}

/// Reads what follows the root element.
fn read_xml<'a>(tokens: Tokens<'a>, root: &'a str, list: &mut List<'_>) {
    let mut reader = Reader {
        list,
        root: prefix(root),
        is_other_kind: false,
        entry: None,
        foreign: None,
        loc: None,
        lastmod: None,
        pending: PendingEntry::default(),
    };
    for token in tokens {
        match token {
            XmlToken::Open { name, attributes, is_empty } => {
                reader.open(name, attributes, is_empty);
            }
            XmlToken::Close { name } => reader.close(name),
            XmlToken::Text(text) => reader.text(&undo(text)),
            XmlToken::Verbatim(text) => reader.text(text),
        }
    }
    reader.end_entry();
}

/// The URLs so far.
struct List<'s> {
    sitemap: Sitemap,
    seen: HashSet<String>,
    /// The sites whose URLs count; `None` for all.
    sites: Option<&'s [Site]>,
    max_urls: usize,
    /// URLs with an earlier `lastmod` go to [`Sitemap::unchanged`].
    since: Option<Time>,
}

impl List<'_> {
    /// Adds a URL. `lastmod` is the latest time at which it may have changed.
    fn add(&mut self, url: &str, lastmod: Option<Time>) {
        let url = url.trim();
        let sitemap = &mut self.sitemap;
        match WebUrl::parse(url) {
            Err(_) => sitemap.unusable += 1,
            Ok(parsed) if self.sites.is_some_and(|sites| !sites.contains(&parsed.site())) => {
                sitemap.elsewhere += 1;
            }
            Ok(_) if self.seen.contains(url) => {}
            Ok(_) if self.seen.len() == self.max_urls => sitemap.left_out += 1,
            Ok(_) => {
                self.seen.insert(url.to_owned());
                let is_unchanged =
                    lastmod.zip(self.since).is_some_and(|(then, since)| then < since);
                let list = if is_unchanged { &mut sitemap.unchanged } else { &mut sitemap.urls };
                list.push(url.to_owned());
            }
        }
    }
}

/// Where in a document the reader is. It keeps no stack, so depth costs no memory.
struct Reader<'a, 'l, 's> {
    list: &'l mut List<'s>,
    /// The prefix of the root element.
    root: &'a str,
    /// Whether a second root element is open that makes a sitemap of an index, or the reverse. The first one decides
    /// what the document is, so nothing in this one counts.
    is_other_kind: bool,
    /// The prefix of the `<url>` or `<sitemap>` that is open.
    entry: Option<&'a str>,
    /// The outermost open element of another namespace, and how many elements with its name are open in it. A
    /// `<loc>` inside belongs to an image or the like.
    foreign: Option<(&'a str, usize)>,
    /// The text of the `<loc>` that is open.
    loc: Option<String>,
    /// The text of the `<lastmod>` that is open.
    lastmod: Option<String>,
    /// What the entry that is open has so far.
    pending: PendingEntry,
}

/// The URLs of an entry, whose `<lastmod>` may follow.
#[derive(Default)]
struct PendingEntry {
    urls: Vec<String>,
    lastmod: Option<Time>,
}

impl<'a> Reader<'a, '_, '_> {
    fn open(&mut self, name: &'a str, attributes: Attributes<'a>, is_empty: bool) {
        self.end_text();
        if is_empty {
            return;
        }
        let is_own = prefix(name) == self.entry.unwrap_or(self.root);
        let is_in_root = self.entry.is_none() && self.foreign.is_none();
        if is_root(name) {
            // Some files are several sitemaps in a row.
            self.end_entry();
            self.root = prefix(name);
            self.is_other_kind = is_index(name) != self.list.sitemap.is_index;
        } else if is_entry(name) && (is_own || is_in_root) {
            // If one is still open, its end tag is missing.
            self.end_entry();
            self.entry = Some(prefix(name));
        } else if let Some((outermost, open)) = &mut self.foreign {
            if outermost.eq_ignore_ascii_case(name) {
                *open += 1;
            }
        } else if is_own && local(name).eq_ignore_ascii_case("loc") {
            self.loc = (!self.is_other_kind).then(String::new);
        } else if is_own && local(name).eq_ignore_ascii_case("lastmod") {
            self.lastmod = Some(String::new());
        } else if !is_own || attributes.get("xmlns").is_some() {
            self.foreign = Some((name, 1));
        }
    }

    fn close(&mut self, name: &str) {
        if is_root(name) {
            // Drop an open URL, as at the end of the document: it may be cut off.
            self.loc = None;
            self.is_other_kind = false;
        }
        self.end_text();
        if is_root(name) || (is_entry(name) && self.entry == Some(prefix(name))) {
            self.end_entry();
        } else if let Some((outermost, open)) = &mut self.foreign
            && outermost.eq_ignore_ascii_case(name)
        {
            *open -= 1;
            if *open == 0 {
                self.foreign = None;
            }
        }
    }

    fn text(&mut self, text: &str) {
        let Some(written) = self.loc.as_mut().or(self.lastmod.as_mut()) else { return };
        let text = if written.is_empty() { text.trim_start() } else { text };
        // A character has at most four bytes, so a URL that is cut here is still too long and is rejected.
        let room = (MAX_URL_BYTES + 4).saturating_sub(written.len());
        let end = text.floor_char_boundary(room.min(text.len()));
        written.push_str(text.get(..end).unwrap_or_default());
    }

    /// Any tag ends a URL or a date: where `</loc>` is missing, the next tag does.
    fn end_text(&mut self) {
        if let Some(lastmod) = self.lastmod.take() {
            self.pending.lastmod = not_changed_after(&lastmod);
        }
        let Some(loc) = self.loc.take() else { return };
        if self.entry.is_some() && self.list.since.is_some() {
            self.pending.urls.push(loc);
        } else {
            self.list.add(&loc, None);
        }
    }

    fn end_entry(&mut self) {
        self.entry = None;
        self.foreign = None;
        let PendingEntry { urls, lastmod } = std::mem::take(&mut self.pending);
        urls.iter().for_each(|url| self.list.add(url, lastmod));
    }
}

/// The end of the time that a `lastmod` names: a date without a time means the whole day, and `2023-11` the whole month.
fn not_changed_after(lastmod: &str) -> Option<Time> {
    let lastmod = lastmod.trim();
    let days = match lastmod.len() {
        7 => 31,
        _ if lastmod.contains(['T', 't', ' ']) => 0,
        _ => 1,
    };
    Some(date::read(lastmod)? + Duration::from_secs(days * 86_400))
}

fn is_root(name: &str) -> bool {
    ["urlset", INDEX].iter().any(|root| local(name).eq_ignore_ascii_case(root))
}

fn is_index(root: &str) -> bool {
    local(root).eq_ignore_ascii_case(INDEX)
}

fn is_entry(name: &str) -> bool {
    ["url", "sitemap"].iter().any(|entry| local(name).eq_ignore_ascii_case(entry))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_URLS: usize = 50_000;

    fn at(sites: &[&str], body: &[u8]) -> Result<Sitemap, NoSitemap> {
        let sites: Vec<Site> = sites.iter().map(|site| Site::parse(site).unwrap()).collect();
        read(body, Some("application/xml"), &sites, MAX_URLS)
    }

    fn urlset(places: &str) -> String {
        format!("<?xml version='1.0'?>\n<urlset xmlns='x'>{places}</urlset>")
    }

    #[test]
    fn what_has_not_changed_since_is_listed_apart() {
        let since = date::read("2024-05-10T12:00:00Z");
        for (lastmod, is_unchanged) in [
            ("2024-05-10T11:59:59Z", true),
            ("2024-05-10T12:00:00Z", false),
            ("2024-05-10T13:00:00+02:00", true),
            // It may have changed at any time of this day, or of this month.
            ("2024-05-10", false),
            ("2024-05-09", true),
            ("2024-05-10+02:00", false),
            ("2024-05", false),
            ("2024-03", true),
            ("last week", false),
            ("", false),
        ] {
            for entry in [
                format!("<url><loc>http://a.test/</loc><lastmod> {lastmod}\n</lastmod></url>"),
                format!("<url><lastmod>{lastmod}</lastmod><loc>http://a.test/</loc></url>"),
                format!("<url><loc>http://a.test/<lastmod>{lastmod}"),
            ] {
                let places = format!("{entry}<url><loc>http://a.test/new</loc></url>");
                let read = read_any_site(&urlset(&places), MAX_URLS, since).unwrap();
                let unchanged = if is_unchanged { vec!["http://a.test/"] } else { vec![] };
                assert_eq!(read.unchanged, unchanged, "{entry}");
                assert_eq!(read.urls.len() + read.unchanged.len(), 2, "{entry}");
                let all = read_any_site(&urlset(&places), MAX_URLS, None).unwrap();
                assert_eq!((all.urls.len(), all.unchanged.len()), (2, 0), "{entry}");
            }
        }
        // The date of an image is not that of the page.
        let image = "<url><loc>http://a.test/</loc><image:image><image:loc>http://a.test/i</image:loc>\
            <image:lastmod>2001-01-01</image:lastmod></image:image></url>";
        let read = read_any_site(&urlset(image), MAX_URLS, since).unwrap();
        assert_eq!((read.urls.len(), read.unchanged.len()), (1, 0));
    }

    #[test]
    fn pages_are_read_as_they_are_written() {
        for (places, expected) in [
            (
                "<url><loc> http://a.test/1?x=1&amp;y=2 </loc></url>",
                vec!["http://a.test/1?x=1&y=2"],
            ),
            ("<loc><![CDATA[ https://a.test/?a&b ]]></loc>", vec!["https://a.test/?a&b"]),
            ("<loc>http://a.test/&amp;lt;</loc>", vec!["http://a.test/&lt;"]),
            (
                "<!-- <loc>http://a.test/old</loc> --><loc>http://a.test/new</loc>",
                vec!["http://a.test/new"],
            ),
            (
                "<image:loc>http://a.test/i</image:loc><loc>http://a.test/</loc>",
                vec!["http://a.test/"],
            ),
            ("<loc>http://a.test/1</loc><loc>http://a.test/1</loc>", vec!["http://a.test/1"]),
            ("<loc>http://a.test/1", vec![]),
            ("<!-- <loc>http://a.test/1</loc>", vec![]),
        ] {
            let sitemap = at(&["a.test"], urlset(places).as_bytes()).unwrap();
            assert_eq!(
                (sitemap.urls, sitemap.is_index),
                (expected.iter().map(|url| (*url).to_owned()).collect(), false),
                "{places}"
            );
        }
    }

    #[test]
    fn what_is_not_its_own_is_counted_and_left_out() {
        let text = urlset(
            "<loc>http://b.test/</loc><loc>nonsense</loc><loc>http://a.test:81/</loc><loc>http://a.test/</loc>",
        );
        let sitemap = at(&["a.test"], text.as_bytes()).unwrap();
        assert_eq!((sitemap.urls.len(), sitemap.elsewhere, sitemap.unusable), (1, 2, 1));
        assert_eq!(at(&["a.test", "b.test"], text.as_bytes()).unwrap().urls.len(), 2);
        assert_eq!(read_any_site(&text, MAX_URLS, None).unwrap().urls.len(), 3);
    }

    #[test]
    fn an_index_and_a_plain_list_are_read_too() {
        let index =
            "<sitemapindex><sitemap><loc>http://a.test/1.xml</loc></sitemap></sitemapindex>";
        let sitemap = at(&["a.test"], index.as_bytes()).unwrap();
        assert!(sitemap.is_index && sitemap.urls == ["http://a.test/1.xml"]);
        let list = at(&["a.test"], b"http://a.test/1\r\n\nhttp://a.test/2\n").unwrap();
        assert_eq!(list.urls, ["http://a.test/1", "http://a.test/2"]);
        assert!(at(&["a.test"], b"<html><p>Not found</p></html>").is_err());
    }

    #[test]
    fn the_first_root_element_decides_what_a_document_is() {
        let index = |n| {
            format!("<sitemapindex><sitemap><loc>http://a.test/{n}</loc></sitemap></sitemapindex>")
        };
        let pages = |n| format!("<urlset><url><loc>http://a.test/{n}</loc></url></urlset>");
        for (document, is_index, expected) in [
            (index(1) + &pages(2), true, &["1"][..]),
            (index(1) + &pages(2) + &index(3), true, &["1", "3"]),
            (pages(1) + &index(2) + &pages(3), false, &["1", "3"]),
            (pages(1).replace("<url>", &format!("{}<url>", index(2))), false, &["1"]),
        ] {
            assert_eq!(paths(&document), expected, "{document}");
            let sitemap = at(&["a.test"], document.as_bytes()).unwrap();
            assert_eq!(sitemap.is_index, is_index, "{document}");
        }
    }

    #[test]
    fn too_many_urls_are_counted() {
        let places: String =
            (0..MAX_URLS + 7).map(|n| format!("<loc>http://a.test/{n}</loc>")).collect();
        let sitemap = at(&["a.test"], urlset(&places).as_bytes()).unwrap();
        assert_eq!((sitemap.urls.len(), sitemap.left_out), (MAX_URLS, 7));
    }

    /// The URLs of `http://a.test/` in a document, without that.
    fn paths(document: &str) -> Vec<String> {
        let sitemap = at(&["a.test"], document.as_bytes()).unwrap();
        assert_eq!((sitemap.elsewhere, sitemap.unusable), (0, 0), "{document}");
        sitemap.urls.iter().map(|url| url.replacen("http://a.test/", "", 1)).collect()
    }

    #[test]
    fn an_entry_is_read_however_it_is_written() {
        for (entries, expected) in [
            ("<url><loc >http://a.test/1</loc ></url>", &["1"][..]),
            ("<url><loc\n\txml:space='preserve'>http://a.test/1</loc\n></url>", &["1"]),
            ("<url><loc xmlns=''>http://a.test/1</loc></url>", &["1"]),
            ("<URL><Loc>http://a.test/1</Loc></URL>", &["1"]),
            ("<loc>http://a.test/?a&#38;b&#x26;c&#X26;d&amp;e</loc>", &["?a&b&c&d&e"]),
            ("<loc>&#104;ttp://a.test/&#x2f;&eacute;&#20363;</loc>", &["/é例"]),
            ("<loc>&#32;http://a.test/1&#10;</loc>", &["1"]),
            ("<loc>http://a.test/?a=1&b=2&nosuch;&#0;</loc>", &["?a=1&b=2&nosuch;&#0;"]),
            ("<loc>http://a.test/&amp;amp;</loc>", &["&amp;"]),
            ("<loc><![CDATA[http://a.test/&amp;]]></loc>", &["&amp;"]),
            ("<loc>http://a.test/?<!-- x -->a=<![CDATA[1&2]]>&amp;3</loc>", &["?a=1&2&3"]),
            ("<?x <loc>?><loc>http://a.test/1</loc>", &["1"]),
            ("<loc/><url/><loc>http://a.test/1</loc>", &["1"]),
            ("<url><loc>http://a.test/1<lastmod>2024</lastmod></url>", &["1"]),
            ("<url><loc>http://a.test/1</url><url><loc>http://a.test/2</loc></url>", &["1", "2"]),
            ("<loc>http://a.test/1<loc>http://a.test/2</loc>", &["1", "2"]),
            ("<url><lastmod>2024<loc>http://a.test/1</loc></url>", &["1"]),
            ("</url></loc><page><loc>http://a.test/1</loc></page>", &["1"]),
            ("<loc>http://a.test/1</loc></urlset><urlset><loc>http://a.test/2</loc>", &["1", "2"]),
            ("<loc>http://a.test/1</loc><loc>http://a.test/2</lo", &["1"]),
            ("<loc>http://a.test/1</loc><loc><![CDATA[http://a.test/2", &["1"]),
        ] {
            assert_eq!(paths(&format!("<urlset>{entries}")), expected, "{entries}");
        }
    }

    #[test]
    fn a_prefix_is_no_fault_and_what_is_of_another_namespace_is_no_page() {
        for (document, expected) in [
            ("<s:urlset xmlns:s='x'><s:url><s:loc>http://a.test/1</s:loc></s:url>", &["1"][..]),
            ("<urlset><s:url><s:loc>http://a.test/1</s:loc></s:url></urlset>", &["1"]),
            ("<s:urlset><url><loc>http://a.test/1</loc></url></s:urlset>", &["1"]),
            ("<s:urlset><s:loc>http://a.test/1</s:loc><loc>http://a.test/no</loc>", &["1"]),
            (
                "<urlset><url><loc>http://a.test/1</loc>
                <image:image><image:loc>http://a.test/no</image:loc></image:image>
                <video:video><video:content_loc>http://a.test/no</video:content_loc></video:video>
                <xhtml:link rel='alternate' href='http://a.test/no'/></url>
                <url><xhtml:link href='http://a.test/no' /><loc>http://a.test/2</loc></url>",
                &["1", "2"],
            ),
            ("<urlset><i:i><loc>http://a.test/no</loc></i:i><loc>http://a.test/1</loc>", &["1"]),
            (
                "<urlset><url><image xmlns='i'><loc>http://a.test/no</loc></image>\
                 <loc>http://a.test/1</loc></url>",
                &["1"],
            ),
            (
                "<urlset><url><i:i><i:i></i:i><loc>http://a.test/no</loc></i:i>\
                 <loc>http://a.test/1</loc></url>",
                &["1"],
            ),
            (
                "<urlset><url><i:url><i:loc>http://a.test/no</i:loc></i:url>\
                 <loc>http://a.test/1</loc></url>",
                &["1"],
            ),
            (
                "<urlset><i:i><i:url><i:loc>http://a.test/no</i:loc></i:url></i:i>\
                 <url><loc>http://a.test/1</loc></url>",
                &["1"],
            ),
            (
                "<urlset><url><i:i><loc>http://a.test/no</loc></url>\
                 <url><i:i><url><loc>http://a.test/1</loc></url>",
                &["1"],
            ),
        ] {
            assert_eq!(paths(document), expected, "{document}");
        }
        let index = "<s:sitemapindex xmlns:s='x'><s:sitemap><s:loc>http://a.test/1</s:loc>";
        assert!(at(&["a.test"], index.as_bytes()).unwrap().is_index);
        assert_eq!(paths(index), ["1"]);
    }

    #[test]
    fn what_stands_before_a_sitemap_does_not_hide_it() {
        for before in [
            "\n ",
            "\u{feff}",
            "\u{feff}\u{feff}",
            "<?xml version='1.0'?><?xml-stylesheet href='x.xsl'?><!-- <sitemapindex> -->",
            "<!DOCTYPE urlset [<!ENTITY x 'y'>]>",
            "<br />\n<b>Warning</b>: x in y on line <b>3</b><br />\n",
            "Warning: x in y on line 3\n",
        ] {
            let document = format!("{before}<urlset><loc>http://a.test/1</loc></urlset>");
            assert_eq!(paths(&document), ["1"], "{before}");
            assert!(!at(&["a.test"], document.as_bytes()).unwrap().is_index, "{before}");
        }
        for nothing in ["<!-- <urlset> -->", "<x>&lt;urlset></x>", "<rss/>", " <"] {
            assert_eq!(at(&["a.test"], nothing.as_bytes()), Err(NoSitemap), "{nothing}");
        }
    }

    #[test]
    fn bytes_are_read_in_the_charset_that_is_said() {
        let latin = b"<?xml encoding='ISO-8859-1'?><urlset><loc>http://a.test/\xe9</loc>";
        let utf_16: Vec<u8> = "\u{feff}<urlset><loc>http://a.test/é</loc></urlset>"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let list = b"\xef\xbb\xbfhttp://a.test/\xc3\xa9\n";
        for body in [&latin[..], &utf_16[..], &list[..]] {
            assert_eq!(at(&["a.test"], body).unwrap().urls, ["http://a.test/é"]);
        }
    }

    #[test]
    fn a_url_that_is_too_long_is_refused_and_not_cut() {
        let room = MAX_URL_BYTES - "http://a.test/".len();
        for (path, is_read) in [
            ("x".repeat(room), true),
            (format!("{}{}", "x".repeat(room), " ".repeat(99_999)), true),
            ("x".repeat(room + 1), false),
            (format!("{}例", "x".repeat(room - 1)), false),
            ("x".repeat(99_999), false),
        ] {
            let text = urlset(&format!("<loc>{}http://a.test/{path}</loc>", " ".repeat(99_999)));
            let sitemap = at(&["a.test"], text.as_bytes()).unwrap();
            assert_eq!(sitemap.urls.len(), usize::from(is_read), "{}", path.len());
            assert_eq!(sitemap.unusable, usize::from(!is_read), "{}", path.len());
        }
    }

    /// Four ways to write the same text.
    fn written(text: &str, way: u8) -> String {
        match way {
            0 => text.replace('&', "&amp;").replace('<', "&lt;"),
            1 => text.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
            2 => text.chars().map(|c| format!("&#x{:X};", u32::from(c))).collect(),
            _ => format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>")),
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_it_ends(body in "(<loc>|</loc>|<!--|-->|<urlset>|&amp;|http://a.test/|é|\\PC){0,40}") {
            let _sitemap = at(&["a.test"], body.as_bytes());
        }

        #[test]
        fn urls_that_are_written_are_read(
            entries in prop::collection::vec(("[!-~é例]{0,20}", 0_u8..4, any::<bool>()), 0..9),
            ns in prop::sample::select(vec!["", "s:"]),
        ) {
            let mut expected: Vec<String> = Vec::new();
            let mut text = format!("<{ns}urlset>");
            for (path, way, has_image) in &entries {
                let url = format!("http://a.test/{path}");
                let image = "<i:image><i:loc>http://a.test/image</i:loc></i:image>";
                let image = if *has_image { image } else { "" };
                let loc = written(&url, *way);
                text += &format!("<{ns}url>{image}<{ns}loc >{loc}</{ns}loc></{ns}url>");
                if !expected.contains(&url) {
                    expected.push(url);
                }
            }
            text += &format!("</{ns}urlset>");
            prop_assert_eq!(at(&["a.test"], text.as_bytes()).unwrap().urls, expected);
        }
    }
}
