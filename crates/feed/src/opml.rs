//! OPML: the format in which feed readers exchange lists of feeds.

use std::fmt::Write;
use std::time::Duration;

use crate::draft::plain;
use crate::feed::{MAX_DEPTH, MAX_FIELD_BYTES};
use crate::xml::{Attributes, Tokens, XmlToken, local};

/// Further feeds are left out.
pub const MAX_FEEDS: usize = 100_000;

/// A feed in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The URL, as written.
    pub url: String,
    /// May be empty.
    pub title: String,
    /// The nearest folder, else the feed's own `category` attribute, else `None`.
    pub category: Option<String>,
    /// How often to read the feed: our own extension of the format.
    pub interval: Option<Duration>,
}

/// The content of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opml {
    /// The feeds in document order; a feed with several categories appears once for each.
    pub outlines: Vec<Outline>,
    /// The document is truncated, or lists more than [`MAX_FEEDS`] feeds.
    pub ends_early: bool,
}

/// Reads a list, however broken; `None` if it has neither outlines nor an `opml` element.
pub fn read(document: &str) -> Option<Opml> {
    let mut opml = Opml::default();
    // Outlines may be nested in a feed, so a feed counts as a folder without a name.
    let mut folders: Vec<Option<String>> = Vec::new();
    let mut has_outlines = false;
    let mut is_closed = false;
    let mut tokens = Tokens::new(document);
    for token in tokens.by_ref() {
        match token {
            XmlToken::Open { name, attributes, is_empty } if is_outline(name) => {
                has_outlines = true;
                let folder = match feeds(attributes, &folders) {
                    feeds if feeds.is_empty() => Some(name_of(attributes)),
                    feeds => {
                        opml.outlines.extend(feeds);
                        None
                    }
                };
                if !is_empty && folders.len() < MAX_DEPTH {
                    folders.push(folder.filter(|folder| !folder.is_empty()));
                }
            }
            XmlToken::Open { name, .. } => has_outlines |= local(name).eq_ignore_ascii_case("opml"),
            XmlToken::Close { name } if is_outline(name) => drop(folders.pop()),
            XmlToken::Close { name } => is_closed |= local(name).eq_ignore_ascii_case("opml"),
            XmlToken::Text(_) | XmlToken::Verbatim(_) => {}
        }
        if opml.outlines.len() > MAX_FEEDS {
            opml.outlines.truncate(MAX_FEEDS);
            opml.ends_early = true;
            break;
        }
    }
    opml.ends_early |= !is_closed;
    has_outlines.then_some(opml)
}

fn is_outline(name: &str) -> bool {
    local(name).eq_ignore_ascii_case("outline")
}

fn feeds(attributes: Attributes<'_>, folders: &[Option<String>]) -> Vec<Outline> {
    let Some(url) = attributes.get("xmlUrl").map(|url| url.trim().to_owned()) else {
        return Vec::new();
    };
    if url.is_empty() || url.len() > MAX_FIELD_BYTES {
        return Vec::new();
    }
    let folder = folders.iter().rev().find_map(Clone::clone);
    let categories = match folder {
        Some(folder) => vec![Some(folder)],
        None => filed_under(&attributes.get("category").unwrap_or_default()),
    };
    let interval = attributes.get_local("interval").and_then(|seconds| seconds.trim().parse().ok());
    let outline = |category| Outline {
        url: url.clone(),
        title: name_of(attributes),
        category,
        interval: interval.map(Duration::from_secs),
    };
    categories.into_iter().map(outline).collect()
}

/// `/Boston/Weather,news` means the categories `Weather` and `news`.
fn filed_under(attribute: &str) -> Vec<Option<String>> {
    let last = |path: &str| path.rsplit('/').find(|part| !part.trim().is_empty()).map(plain);
    let categories: Vec<_> = attribute.split(',').filter_map(last).map(Some).collect();
    if categories.is_empty() { vec![None] } else { categories }
}

fn name_of(attributes: Attributes<'_>) -> String {
    let name = |key| attributes.get(key).map(|name| plain(&name)).filter(|name| !name.is_empty());
    name("text").or_else(|| name("title")).unwrap_or_default()
}

/// Writes a list with one folder per category.
#[must_use]
pub fn write(title: &str, outlines: &[Outline]) -> String {
    let mut categories: Vec<Option<&str>> =
        outlines.iter().map(|outline| outline.category.as_deref()).collect();
    categories.sort_unstable();
    categories.dedup();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <opml version=\"2.0\" xmlns:fetchwell=\"urn:fetchwell:opml\">\n  \
         <head>\n    <title>{}</title>\n  </head>\n  <body>\n",
        escaped(title)
    );
    for category in categories {
        let within = outlines.iter().filter(|outline| outline.category.as_deref() == category);
        match category {
            None => within.for_each(|outline| write_feed(&mut text, "    ", outline)),
            Some(category) => {
                text.push_str(&format!("    <outline text=\"{}\">\n", escaped(category)));
                within.for_each(|outline| write_feed(&mut text, "      ", outline));
                text.push_str("    </outline>\n");
            }
        }
    }
    text.push_str("  </body>\n</opml>\n");
    text
}

fn write_feed(text: &mut String, indent: &str, outline: &Outline) {
    let name = if outline.title.is_empty() { &outline.url } else { &outline.title };
    let name = escaped(name);
    let url = escaped(&outline.url);
    let interval = outline.interval.map_or_else(String::new, |interval| {
        format!(" fetchwell:interval=\"{}\"", interval.as_secs())
    });
    // Writing to a string cannot fail.
    let _written = writeln!(
        text,
        "{indent}<outline type=\"rss\" text=\"{name}\" xmlUrl=\"{url}\"{interval}/>"
    );
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // XML cannot represent control characters.
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outline(url: &str, title: &str, category: Option<&str>) -> Outline {
        let url = url.to_owned();
        let title = title.to_owned();
        Outline { url, title, category: category.map(str::to_owned), interval: None }
    }

    #[test]
    fn the_nearest_folder_is_the_category() {
        let list = "<?xml version='1.0'?><opml version='1.0'><head><title>x</title></head><body>
            <outline text='News &amp; More'>
              <outline title='A' xmlUrl='http://a.test/?x=1&amp;y=2' type='rss'/>
              <outline text='World'><outline text='B' xmlurl=\"http://b.test/\"></outline></outline>
              <outline text=''><outline text='C' xmlUrl='http://c.test/'/></outline>
            </outline>
            <outline text='D' xmlUrl='http://d.test/' category='/Boston/Weather,news'/>
            <outline text='E' xmlUrl='http://e.test/'/>
            <outline text='a page' type='link' url='http://f.test/'/>
            </body></opml>";
        let opml = read(list).unwrap();
        assert_eq!(
            opml.outlines,
            [
                outline("http://a.test/?x=1&y=2", "A", Some("News & More")),
                outline("http://b.test/", "B", Some("World")),
                outline("http://c.test/", "C", Some("News & More")),
                outline("http://d.test/", "D", Some("Weather")),
                outline("http://d.test/", "D", Some("news")),
                outline("http://e.test/", "E", None),
            ]
        );
        assert!(!opml.ends_early);
    }

    #[test]
    fn a_list_that_is_cut_gives_what_was_whole() {
        let cut = read("<opml><body><outline xmlUrl='http://a.test/'/><outline xmlUrl='http://b")
            .unwrap();
        assert_eq!((cut.outlines.len(), cut.ends_early), (1, true));
        assert_eq!(read("<html><p>no list</p></html>"), None);
        assert_eq!(read(""), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            feeds in prop::collection::vec(("\\PC{1,20}", "\\PC{0,20}", prop::option::of("\\PC{1,9}"), prop::option::of(1_u64..1_000_000)), 0..9),
        ) {
            let outlines: Vec<Outline> = feeds
                .iter()
                .map(|(url, title, category, seconds)| Outline {
                    url: format!("http://a.test/{}", url.trim()),
                    title: plain(title),
                    category: category.as_deref().map(plain).filter(|category| !category.is_empty()),
                    interval: seconds.map(Duration::from_secs),
                })
                .collect();
            let mut read = read(&write("x", &outlines)).unwrap().outlines;
            let mut wanted = outlines;
            for outline in &mut wanted {
                if outline.title.is_empty() {
                    outline.title = plain(&outline.url);
                }
            }
            let by_all = |outline: &Outline| format!("{outline:?}");
            read.sort_by_key(by_all);
            wanted.sort_by_key(by_all);
            prop_assert_eq!(read, wanted);
        }
    }
}
