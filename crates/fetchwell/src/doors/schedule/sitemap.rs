//! What a sitemap lists: pages, or other sitemaps. Pure.
//!
//! When a page was last changed is not looked at: each round asks for all of them.

use std::collections::HashSet;

use fetchwell_archive::gzip::inflate_member;
use fetchwell_engine::ports::rounds::MAX_URLS_PER_ROUND;
use fetchwell_policy::url::{Site, WebUrl};

/// A sitemap is no larger than this, by its own standard.
pub(crate) const MAX_SITEMAP_BYTES: usize = 50 << 20;
/// Nor has it more URLs; an index lists no more sitemaps either.
const MAX_URLS: usize = MAX_URLS_PER_ROUND;
/// How gzip begins.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sitemap {
    /// Whether it lists sitemaps, and not pages.
    pub(crate) is_index: bool,
    /// As they are written there, each once.
    pub(crate) urls: Vec<String>,
    /// How many are of other sites: a sitemap speaks for its own.
    pub(crate) elsewhere: usize,
    /// How many are no URLs.
    pub(crate) unusable: usize,
    /// How many are more than a sitemap may have.
    pub(crate) left_out: usize,
}

/// Reads a sitemap that speaks for these sites. `Err`: why it is none.
pub(crate) fn read(
    body: &[u8],
    content_type: Option<&str>,
    sites: &[Site],
) -> Result<Sitemap, String> {
    let inflated = body.starts_with(GZIP).then(|| inflate_member(body, MAX_SITEMAP_BYTES));
    let inflated = inflated.transpose().map_err(|fault| fault.to_string())?;
    let text = fetchwell_extract::decode(inflated.as_deref().unwrap_or(body), content_type).text;
    let is_xml = text.trim_start().starts_with('<');
    if is_xml && !text.contains("<urlset") && !text.contains("<sitemapindex") {
        return Err("it is neither a sitemap nor an index of sitemaps".to_owned());
    }
    let mut sitemap = Sitemap { is_index: text.contains("<sitemapindex"), ..Sitemap::default() };
    let mut seen = HashSet::new();
    let mut add = |url: String| match WebUrl::parse(&url) {
        Err(_) => sitemap.unusable += 1,
        Ok(parsed) if !sites.contains(&parsed.site()) => sitemap.elsewhere += 1,
        Ok(_) if seen.contains(&url) => {}
        Ok(_) if sitemap.urls.len() == MAX_URLS => sitemap.left_out += 1,
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
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn at(sites: &[&str], body: &[u8]) -> Result<Sitemap, String> {
        let sites: Vec<Site> = sites.iter().map(|site| Site::parse(site).unwrap()).collect();
        read(body, Some("application/xml"), &sites)
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
    fn a_compressed_one_is_read_and_a_broken_one_is_none() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(urlset("<loc>http://a.test/</loc>").as_bytes()).unwrap();
        let body = gzip.finish().unwrap();
        assert_eq!(at(&["a.test"], &body).unwrap().urls, ["http://a.test/"]);
        assert!(at(&["a.test"], &body[..body.len() / 2]).is_err());
    }

    #[test]
    fn a_bomb_is_refused_and_too_many_urls_are_counted() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&vec![b' '; MAX_SITEMAP_BYTES + 1]).unwrap();
        assert!(at(&["a.test"], &gzip.finish().unwrap()).is_err());
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
