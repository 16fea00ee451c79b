//! Reads the part of a page that the caller chose: its main content, all of it, or the elements that match selectors.

use url::Url;

use crate::content::Content;
use crate::limits::{Limits, TookTooLong, Watch};
use crate::page::{Element, Node, NodeKind, Page, Tag};
use crate::{Read, html, links, markdown, metadata, text};

/// Comparing more bytes than this with a selector takes long enough to look at the clock each time.
const LONG_BYTES: usize = 4 << 10;

/// The part of a page to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part<'s> {
    /// Whether to read the whole page instead of its main content.
    pub whole_page: bool,
    /// If there are any, only the elements that match one of these are read, wherever they are on the page.
    pub include: &'s [Selector],
    /// Elements that match one of these are left out.
    pub exclude: &'s [Selector],
}

impl Part<'_> {
    /// Whether this is the main content as [`extract`](crate::extract) finds it.
    #[must_use]
    pub fn is_main_content(&self) -> bool {
        !self.whole_page && !self.has_selectors()
    }

    /// Whether selectors choose or leave out elements.
    #[must_use]
    pub fn has_selectors(&self) -> bool {
        !self.include.is_empty() || !self.exclude.is_empty()
    }
}

/// Matches elements that have all of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The name, case-insensitive.
    pub name: Option<String>,
    /// The id.
    pub id: Option<String>,
    /// The classes.
    pub classes: Vec<String>,
}

impl Selector {
    fn matches(&self, element: &Element<'_>, watch: &Watch<'_>) -> Result<bool, TookTooLong> {
        look_after(element.source_bytes(), watch)?;
        if self.name.as_ref().is_some_and(|name| !element.name().eq_ignore_ascii_case(name)) {
            return Ok(false);
        }
        let wanted = [("id", self.id.as_slice()), ("class", self.classes.as_slice())];
        for (attribute, words) in wanted.into_iter().filter(|(_, words)| !words.is_empty()) {
            let Some(value) = element.attribute(attribute) else { return Ok(false) };
            for word in words {
                look_after(value.len(), watch)?;
                if !value.split_whitespace().any(|one| one == word) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether it matches every `noscript`. Their content is kept apart from the page, without their attributes.
    fn is_noscript(&self) -> bool {
        let is_bare = self.id.is_none() && self.classes.is_empty();
        is_bare && self.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case("noscript"))
    }
}

/// The content of a part of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartContent {
    /// As plain text: blocks, separated by blank lines.
    pub text: String,
    /// As Markdown.
    pub markdown: String,
    /// As HTML without scripts, styles, forms and event handlers. It is safe to show only on an origin of its own.
    pub html: String,
    /// The URLs that the chosen elements link to, each once. The main content has those of the whole page.
    pub links: Vec<Url>,
}

/// Reads a part of a page within limits. `found_at` is the URL of the page.
pub fn part_within(
    html: &str,
    found_at: &Url,
    part: &Part<'_>,
    limits: &Limits<'_>,
) -> Result<PartContent, TookTooLong> {
    let watch = &Watch::new(limits);
    let page = Page::parse(html, limits.max_text_bytes, watch)?;
    // The `<base>` counts even if it is left out, because links are relative to it.
    let base_url = &metadata::base_url(&page, found_at);
    let page = without(page, part.exclude, watch)?;
    let added = limits.max_added_bytes(html);
    if part.whole_page || !part.include.is_empty() {
        let content = chosen(&page, part.include, watch)?;
        let anchors = elements(&page, &content).filter(|element| links::is_anchor(element));
        let links = links::all(anchors, base_url, added, watch)?.urls;
        return write(&page, &content, links, base_url, added, watch);
    }
    let read = Read::of(page, found_at, watch)?;
    let data = read.carried(limits);
    let carried = match &data {
        Some(data) => {
            let page = Page::parse(&data.html, limits.max_text_bytes, watch)?;
            Some(Read::of(without(page, part.exclude, watch)?, found_at, watch)?)
        }
        None => None,
    };
    let anchors = read.page.elements().map(|(_, element)| element);
    let links = links::all(anchors.filter(|e| links::is_anchor(e)), base_url, added, watch)?.urls;
    let Read { page, content, .. } = read.or_longer(carried.as_ref());
    write(page, content, links, base_url, added, watch)
}

fn write(
    page: &Page<'_>,
    content: &Content,
    links: Vec<Url>,
    base_url: &Url,
    max_added_bytes: usize,
    watch: &Watch<'_>,
) -> Result<PartContent, TookTooLong> {
    Ok(PartContent {
        text: text::write(page, content, None, watch)?.text,
        markdown: markdown::write(page, content, base_url, max_added_bytes, watch)?,
        html: html::write(page, content, base_url, max_added_bytes, watch)?,
        links,
    })
}

/// The page without the elements that match.
fn without<'a>(
    page: Page<'a>,
    exclude: &[Selector],
    watch: &Watch<'_>,
) -> Result<Page<'a>, TookTooLong> {
    if exclude.is_empty() {
        return Ok(page);
    }
    // For each node, and for the end of the page, how many nodes before it are kept.
    let mut kept_before = Vec::with_capacity(page.nodes.len() + 1);
    let mut kept = 0;
    let mut left_out_until = 0;
    for (index, node) in page.nodes.iter().enumerate() {
        watch.step()?;
        kept_before.push(kept);
        if index < left_out_until {
            continue;
        }
        if matches_any(exclude, &node.kind, watch)? {
            left_out_until = node.end;
        } else {
            kept += 1;
        }
    }
    kept_before.push(kept);
    let place = |index: usize| kept_before.get(index).copied().unwrap_or(kept);
    let nodes = page.nodes.into_iter().enumerate();
    let nodes = nodes.filter(|(index, _)| place(*index) < place(index + 1));
    let nodes = nodes.map(|(_, node)| Node { end: place(node.end), ..node }).collect();
    let is_excluded = exclude.iter().any(Selector::is_noscript);
    let noscript = if is_excluded { Vec::new() } else { page.noscript };
    Ok(Page { nodes, noscript, ..page })
}

/// The outermost elements that match; the whole page if there are no selectors.
fn chosen(
    page: &Page<'_>,
    include: &[Selector],
    watch: &Watch<'_>,
) -> Result<Content, TookTooLong> {
    let mut parts = Vec::new();
    let mut dropped = vec![false; page.nodes.len()];
    let mut chosen_until = 0;
    for (index, (node, is_dropped)) in page.nodes.iter().zip(&mut dropped).enumerate() {
        watch.step()?;
        let NodeKind::Element(element) = &node.kind else { continue };
        *is_dropped = is_never_read(element.tag);
        if index >= chosen_until && matches_any(include, &node.kind, watch)? {
            chosen_until = node.end;
            parts.push(index..node.end);
        }
    }
    if include.is_empty() {
        parts.push(0..page.nodes.len());
    }
    let mut parts = parts.into_iter();
    let root = parts.next().unwrap_or_default();
    Ok(Content { root, more: parts.collect(), dropped, text_bytes: 0 })
}

/// Whether an element is never content: the head, and form controls.
fn is_never_read(tag: Tag) -> bool {
    use Tag::*;
    matches!(tag, Button | Head | Input | Select | SelectOption | Title)
}

fn matches_any(
    selectors: &[Selector],
    kind: &NodeKind<'_>,
    watch: &Watch<'_>,
) -> Result<bool, TookTooLong> {
    let NodeKind::Element(element) = kind else { return Ok(false) };
    for selector in selectors {
        if selector.matches(element, watch)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks the time before so many bytes are compared. An element may have megabytes of attributes, and a selector a
/// hundred classes.
fn look_after(bytes: usize, watch: &Watch<'_>) -> Result<(), TookTooLong> {
    if bytes > LONG_BYTES { watch.look() } else { watch.step() }
}

fn elements<'p, 'a>(
    page: &'p Page<'a>,
    content: &'p Content,
) -> impl Iterator<Item = &'p Element<'a>> {
    let nodes =
        content.parts().flat_map(move |part| page.nodes.get(part.clone()).unwrap_or_default());
    nodes.filter_map(|node| match &node.kind {
        NodeKind::Element(element) => Some(element),
        NodeKind::Text(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "<html><head><title>A title</title></head><body>\
        <nav class='top menu'><a href='/home'>Home</a></nav>\
        <main><h1>A headline</h1><p class=intro>First <a href='/one?a=1&amp;b=2' onclick='x()'>words</a>.</p>\
        <div id=ad><p>Buy this</p></div><pre>one <b class=number>1</b>\n two</pre>\
        <ul><li>Item <x-note class='a b'>note</x-note></ul><script>alert(1)</script>\
        <img src=i.png alt='1 < \"2\"' onerror=alert(1)></main>\
        <footer><p>All rights <a href='http://b.test/'>reserved</a></p></footer></body></html>";

    fn selector(name: &str, id: &str, class: &str) -> Selector {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Selector { name: some(name), id: some(id), classes: some(class).into_iter().collect() }
    }

    fn read(part: &Part<'_>) -> PartContent {
        let url = Url::parse("http://a.test/x/").unwrap();
        part_within(PAGE, &url, part, &Limits::NONE).unwrap()
    }

    fn links(content: &PartContent) -> Vec<&str> {
        content.links.iter().map(Url::as_str).collect()
    }

    #[test]
    fn the_whole_page_has_its_frame_and_no_head() {
        let whole = read(&Part { whole_page: true, ..Part::default() });
        assert!(
            whole.markdown.starts_with("[Home](http://a.test/home)\n\n# A headline"),
            "{whole:?}"
        );
        assert!(whole.text.ends_with("All rights reserved"), "{whole:?}");
        assert!(!whole.markdown.contains("A title") && !whole.html.contains("alert"), "{whole:?}");
        let found = ["http://a.test/home", "http://a.test/one?a=1&b=2", "http://b.test/"];
        assert_eq!(links(&whole), found);
    }

    #[test]
    fn selectors_choose_the_outermost_elements_in_the_order_of_the_page() {
        for (include, markdown) in [
            (vec![selector("h1", "", "")], "# A headline"),
            (vec![selector("", "", "intro")], "First [words](http://a.test/one?a=1&b=2)."),
            (
                vec![selector("", "ad", ""), selector("p", "", "")],
                "First [words](http://a.test/one?a=1&b=2).\n\nBuy this\n\nAll rights [reserved](http://b.test/)",
            ),
            (vec![selector("X-NOTE", "", "b")], "note"),
            (vec![selector("b", "", "number"), selector("x-note", "", "")], "**1**\n\nnote"),
            (vec![selector("p", "ad", "")], ""),
            (vec![selector("nosuch", "", "")], ""),
        ] {
            let read = read(&Part { include: &include, ..Part::default() });
            assert_eq!(read.markdown, markdown, "{include:?}");
        }
        let notes = read(&Part { include: &[selector("footer", "", "")], ..Part::default() });
        assert_eq!((links(&notes), &*notes.text), (vec!["http://b.test/"], "All rights reserved"));
    }

    /// Otherwise a hundred selectors with many classes could keep a thread for minutes.
    #[test]
    fn the_time_is_checked_while_long_attributes_are_compared() {
        let looks = Cell::new(0);
        let is_over = || {
            looks.set(looks.get() + 1);
            false
        };
        let limits = Limits { is_over: &is_over, ..Limits::NONE };
        let page = format!("<p class='{}'>Words</p>", "a ".repeat(LONG_BYTES));
        let url = Url::parse("http://a.test/").unwrap();
        let include = vec![selector("", "", "b"); 50];
        part_within(&page, &url, &Part { include: &include, ..Part::default() }, &limits).unwrap();
        assert!(looks.get() >= 100, "{}", looks.get());
    }

    #[test]
    fn selectors_leave_elements_out() {
        let exclude = [
            selector("", "ad", ""),
            selector("", "", "number"),
            selector("", "", "top"),
            selector("a", "", ""),
        ];
        for whole_page in [false, true] {
            let read = read(&Part { whole_page, include: &[], exclude: &exclude });
            for gone in ["Buy", "Home", "words", "one 1", "reserved"] {
                assert!(
                    !read.markdown.contains(gone) && !read.html.contains(gone),
                    "{gone}: {read:?}"
                );
            }
            assert!(read.markdown.contains("one \n two"), "{read:?}");
            assert!(read.links.is_empty());
        }
        let both =
            Part { include: &[selector("main", "", "")], exclude: &exclude, whole_page: false };
        assert!(read(&both).text.starts_with("A headline\n\nFirst ."), "{:?}", read(&both));
    }

    #[test]
    fn noscript_can_be_left_out() {
        let words = "These words are for readers whose browser runs no scripts. ".repeat(12);
        let page = format!("<body><noscript><p>{words}</p></noscript></body>");
        let url = Url::parse("http://a.test/").unwrap();
        for (name, is_left_out) in [("p", true), ("NoScript", true), ("div", false)] {
            let exclude = [selector(name, "", "")];
            let part = Part { exclude: &exclude, ..Part::default() };
            let read = part_within(&page, &url, &part, &Limits::NONE).unwrap();
            assert_eq!(read.text.is_empty(), is_left_out, "{name}: {read:?}");
        }
    }

    #[test]
    fn links_are_relative_to_a_base_that_is_left_out() {
        let page = "<head><base href='http://b.test/y/'></head><p><a href=one>Words</a></p>";
        let url = Url::parse("http://a.test/x/").unwrap();
        let exclude = [selector("head", "", "")];
        let part = Part { whole_page: true, exclude: &exclude, ..Part::default() };
        let read = part_within(page, &url, &part, &Limits::NONE).unwrap();
        assert_eq!(read.markdown, "[Words](http://b.test/y/one)");
        assert_eq!(links(&read), ["http://b.test/y/one"]);
    }

    #[test]
    fn html_has_absolute_urls_and_nothing_that_runs() {
        let html = read(&Part { include: &[selector("main", "", "")], ..Part::default() }).html;
        for part in [
            "<main><h1>A headline</h1><p class=\"intro\">First <a href=\"http://a.test/one?a=1&amp;b=2\">words</a>.</p>",
            "<ul><li>Item <x-note class=\"a b\">note</x-note></li></ul>",
            "<img alt=\"1 &lt; &quot;2&quot;\" src=\"http://a.test/x/i.png\"></main>",
        ] {
            assert!(html.contains(part), "{html}");
        }
        assert!(!html.contains("onclick") && !html.contains("onerror"), "{html}");
    }

    #[test]
    fn a_link_whose_content_is_left_out_is_left_out_too() {
        let url = Url::parse("http://a.test/").unwrap();
        for (body, html) in [
            ("one <a href=/x><b class=gone>two</b></a> three", "one  three"),
            ("one<a href=/x> <b><i class=gone>two</i></b></a>three", "one three"),
            ("<a href=/x><script>two()</script></a>three", "three"),
            ("<a href=/x><a class=gone href=/y>two</a></a>three", "three"),
            ("<a href=/x><img class=gone src=i.png></a>", ""),
            (
                "<a href=/x><img src=i.png></a>",
                "<a href=\"http://a.test/x\"><img src=\"http://a.test/i.png\"></a>",
            ),
            ("<a href=/x><b>two</b></a>", "<a href=\"http://a.test/x\"><b>two</b></a>"),
            // Others may link to it.
            ("<a id=top></a>one", "<a id=\"top\"></a>one"),
        ] {
            let page = format!("<body>{body}</body>");
            let exclude = [selector("", "", "gone")];
            let part = Part { whole_page: true, exclude: &exclude, ..Part::default() };
            let read = part_within(&page, &url, &part, &Limits::NONE).unwrap();
            assert_eq!(read.html, html, "{body}");
        }
    }

    #[test]
    fn escapes_do_not_multiply_a_page() {
        let url = Url::parse("http://a.test/").unwrap();
        let page = format!("<p title='{}'>{}</p>", "\"".repeat(400_000), ">".repeat(400_000));
        let whole = Part { whole_page: true, ..Part::default() };
        let read = part_within(&page, &url, &whole, &Limits::NONE).unwrap();
        assert!(read.html.len() <= 2 * page.len(), "{}", read.html.len());
    }

    proptest! {
        #[test]
        fn any_page_is_read(
            pieces in prop::collection::vec("(<p>|<p class=a>|</p>|<div id=b|>|<table><td>|<a href=x|x|<x-y|&lt;|<|\"|</div>|<pre>)", 0..60),
            whole_page: bool,
        ) {
            let page = pieces.concat();
            let url = Url::parse("http://a.test/").unwrap();
            let a = [selector("", "", "a")];
            let b = [selector("", "b", ""), selector("td", "", "")];
            for (include, exclude) in [(&a[..], &b[..]), (&b, &a), (&[], &a), (&b, &[])] {
                let part = Part { whole_page, include, exclude };
                let read = part_within(&page, &url, &part, &Limits::NONE).unwrap();
                // No more than the references and the end tags that were left out.
                prop_assert!(read.html.len() <= 20 * page.len() + 100);
            }
        }
    }
}
