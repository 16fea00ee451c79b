//! Sitemaps: the pages of a site, or an index of its other sitemaps.
//!
//! `lastmod`, `changefreq` and `priority` are not read.

use std::collections::HashSet;

use fetchwell_extract::decode;
use fetchwell_policy::url::{Site, WebUrl};
use thiserror::Error;

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
}

/// The document is not a sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is neither a sitemap nor an index of sitemaps")]
pub struct NoSitemap;

/// Reads a sitemap, not compressed, that may list pages of `sites`. It keeps `max_urls` URLs at most.
pub fn read(
    body: &[u8],
    content_type: Option<&str>,
    sites: &[Site],
    max_urls: usize,
) -> Result<Sitemap, NoSitemap> {
    let text = decode(body, content_type).text;
    let is_xml = text.trim_start().starts_with('<');
    if is_xml && !text.contains("<urlset") && !text.contains("<sitemapindex") {
        return Err(NoSitemap);
    }
    let mut sitemap = Sitemap { is_index: text.contains("<sitemapindex"), ..Sitemap::default() };
    let mut seen = HashSet::new();
    let mut add = |url: String| match WebUrl::parse(&url) {
        Err(_) => sitemap.unusable += 1,
        Ok(parsed) if !sites.contains(&parsed.site()) => sitemap.elsewhere += 1,
        Ok(_) if seen.contains(&url) => {}
        Ok(_) if sitemap.urls.len() == max_urls => sitemap.left_out += 1,
        Ok(_) => {
            seen.insert(url.clone());
            sitemap.urls.push(url);
        }
    };
    if is_xml {
        places(&text).for_each(&mut add);
    } else {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .for_each(&mut add);
    }
    Ok(sitemap)
}

/// What stands in `<loc>`, but not in comments.
fn places(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.get(rest.find('<')?..)?;
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = comment.split_once("-->")?.1;
            } else if let Some(loc) = rest.strip_prefix("<loc>") {
                let (place, after) = loc.split_once("</loc>")?;
                rest = after;
                return Some(unescape(place.trim()));
            } else {
                rest = rest.get(1..)?;
            }
        }
    })
}

fn unescape(text: &str) -> String {
    let cdata = text.strip_prefix("<![CDATA[").and_then(|text| text.strip_suffix("]]>"));
    if let Some(verbatim) = cdata {
        return verbatim.trim().to_owned();
    }
    // Last of all '&', or what it is a part of would be read twice.
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#38;", "&"),
        ("&amp;", "&"),
    ];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
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
    fn too_many_urls_are_counted() {
        let places: String =
            (0..MAX_URLS + 7).map(|n| format!("<loc>http://a.test/{n}</loc>")).collect();
        let sitemap = at(&["a.test"], urlset(&places).as_bytes()).unwrap();
        assert_eq!((sitemap.urls.len(), sitemap.left_out), (MAX_URLS, 7));
    }

    proptest! {
        #[test]
        fn whatever_comes_it_ends(body in "(<loc>|</loc>|<!--|-->|<urlset>|&amp;|http://a.test/|é|\\PC){0,40}") {
            let _sitemap = at(&["a.test"], body.as_bytes());
        }
    }
}
