//! Extracts the article and its metadata from HTML.
//!
//! Pure: no I/O, no clock. A page passes through four steps, each a module:
//!
//! 1. `charset`: decodes bytes to text.
//! 2. `page`: a tolerant tokenizer makes a flat array of nodes in document order that borrow the
//!    input. A subtree is a contiguous range, so every later step is a scan.
//! 3. `content`: selects the range of the article, and the subtrees to leave out.
//! 4. `text`, `markdown`, `html`, `metadata`: write the result.
//!
//! `part` reads a part of a page that the caller chooses.
//!
//! Pages are untrusted input: every step takes linear time, never recurses, and accepts any input. A page that makes no
//! sense gives an empty article. [`Limits`] bounds the time and the amount of text.

mod carried;
mod charset;
mod content;
mod entities;
mod entity_names;
mod fold;
mod html;
mod json_strings;
mod language;
mod limits;
mod links;
mod markdown;
mod media_type;
mod metadata;
mod page;
mod part;
mod text;
mod text_stats;
mod walk;

pub use charset::{Decoded, decode};
pub use entities::{named_character, replace_references};
pub use limits::{Limits, TookTooLong};
pub use media_type::{is_html, is_text};
pub use part::{Part, PartContent, Selector, part_within};

use url::Url;

use carried::Carried;
use content::Content;
use limits::Watch;
use metadata::{JsonLd, Metas};
use page::Page;

/// The article of a page, without the boilerplate around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Article {
    /// The headline, without the site's name; empty if the page has none.
    pub title: String,
    /// The article's blocks as plain text, separated by blank lines; without the headline.
    pub text: String,
    /// The same blocks and the headline as Markdown, with absolute URLs of links and images.
    pub markdown: String,
    /// The first paragraph of more than 40 characters, else empty.
    pub abstract_text: String,
    /// The absolute URL of the lead image, else of the first one.
    pub image: Option<String>,
    /// The language (`en`, `pt-BR`) that the page declares, unless the text is certainly in another one.
    pub lang: Option<String>,
    /// The absolute URL that the page declares as canonical.
    pub canonical: Option<String>,
    /// The authors, as the page names them, separated by commas.
    pub author: Option<String>,
    /// The authors, one name per element. A name may contain a comma (`Ada Keeper, MD`).
    pub authors: Vec<String>,
    /// When it was published: RFC 3339 if the page states the time and its zone, else `YYYY-MM-DD`.
    pub published: Option<String>,
    /// The site's own name.
    pub site_name: Option<String>,
    /// The summary that the page has for search engines and for sharing.
    pub description: Option<String>,
    /// Whether the page has more text than [`Limits::max_text_bytes`] and was truncated.
    pub is_cut: bool,
}

/// The two most used fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TitledText {
    /// As [`Article::title`].
    pub title: String,
    /// As [`Article::text`].
    pub text: String,
}

/// A page with less text is rendered by its scripts.
const BARE_BYTES: usize = 250;

/// Extracts the article from a page. `found_at` is the URL of the page: relative links are resolved against it, or
/// against the `<base>`.
#[must_use]
pub fn extract(html: &str, found_at: &Url) -> Article {
    // Without limits, extraction cannot time out.
    extract_within(html, found_at, &Limits::NONE).unwrap_or_default()
}

/// The same within limits.
pub fn extract_within(
    html: &str,
    found_at: &Url,
    limits: &Limits<'_>,
) -> Result<Article, TookTooLong> {
    let watch = &Watch::new(limits);
    let read = Read::new(html, found_at, limits, watch)?;
    let data = read.carried(limits);
    let carried = data.as_ref().map(|data| Read::new(&data.html, found_at, limits, watch));
    let carried = carried.transpose()?;
    let base_url = &metadata::base_url(&read.page, found_at);
    let mut metadata = metadata::read(&read.page, &read.metas, &read.json_ld, found_at, base_url);
    if metadata.authors.is_empty() {
        metadata.authors.extend(data.as_ref().and_then(|data| data.author.clone()));
    }
    watch.look()?;
    let Read { page, content, .. } = read.or_longer(carried.as_ref());
    let headline = content.headline(page, &metadata.title);
    let plain = text::write(page, content, headline, watch)?;
    let max_added_bytes = limits.max_added_bytes(html);
    let markdown = markdown::write(page, content, base_url, max_added_bytes, watch)?;
    Ok(Article {
        title: metadata.title,
        lang: language::best(metadata.lang, &plain.text),
        text: plain.text,
        markdown,
        abstract_text: plain.first_paragraph,
        image: metadata.image.or_else(|| links::first_image(page, content.root.clone(), base_url)),
        canonical: metadata.canonical,
        author: (!metadata.authors.is_empty()).then(|| metadata.authors.join(", ")),
        authors: metadata.authors,
        published: metadata.published,
        site_name: metadata.site_name,
        description: metadata.description,
        is_cut: page.is_cut,
    })
}

/// Extracts only the title and the text: the same ones as [`extract`], but faster.
#[must_use]
pub fn extract_text(html: &str, found_at: &Url) -> TitledText {
    extract_text_within(html, found_at, &Limits::NONE).unwrap_or_default()
}

/// The same within limits.
pub fn extract_text_within(
    html: &str,
    found_at: &Url,
    limits: &Limits<'_>,
) -> Result<TitledText, TookTooLong> {
    let watch = &Watch::new(limits);
    let read = Read::new(html, found_at, limits, watch)?;
    let data = read.carried(limits);
    let carried = data.as_ref().map(|data| Read::new(&data.html, found_at, limits, watch));
    let carried = carried.transpose()?;
    let title = metadata::read_title(&read.page, &read.metas, &read.json_ld, found_at);
    let Read { page, content, .. } = read.or_longer(carried.as_ref());
    let headline = content.headline(page, &title);
    let plain = text::write(page, content, headline, watch)?;
    Ok(TitledText { title, text: plain.text })
}

/// The URLs that a page links to, each once and without its fragment, in document order. The list ends after 10,000
/// links, or before its URLs take many more bytes than the page.
pub fn links_within(
    html: &str,
    found_at: &Url,
    limits: &Limits<'_>,
) -> Result<Vec<Url>, TookTooLong> {
    let watch = &Watch::new(limits);
    let page = Page::parse(html, limits.max_text_bytes, watch)?;
    let base_url = &metadata::base_url(&page, found_at);
    let anchors = page.elements().map(|(_, element)| element).filter(|e| links::is_anchor(e));
    Ok(links::all(anchors, base_url, limits.max_added_bytes(html), watch)?.urls)
}

/// The maximum size of the URLs of a page's links for a crawler, if this much of its text is read. It is a multiple of
/// the limit for articles: an index page consists of short relative links.
pub fn max_crawl_link_bytes(html_bytes: usize, max_text_bytes: usize) -> usize {
    limits::max_added_bytes(html_bytes, max_text_bytes).saturating_mul(4)
}

/// What a page offers to crawlers, and what it asks of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrawlLinks {
    /// The URLs of other pages that it links to, each once and without its fragment: anchors, areas, and its relations
    /// `next`, `prev`, `canonical` and `alternate` with a language. Without links marked `nofollow`.
    pub links: Vec<Url>,
    /// Whether links may be missing: there are more than 10,000, their URLs are much longer than the page, or the page
    /// has more text than is read.
    pub is_cut: bool,
    /// How many elements are links marked `nofollow`.
    pub nofollow: usize,
    /// The contents of the `meta` elements for robots, or for the bot of the given name.
    pub robots: Vec<String>,
}

/// Reads what a page says to crawlers, within limits.
pub fn crawl_links_within(
    html: &str,
    found_at: &Url,
    bot: &str,
    limits: &Limits<'_>,
) -> Result<CrawlLinks, TookTooLong> {
    let watch = &Watch::new(limits);
    let page = Page::parse(html, limits.max_text_bytes, watch)?;
    let base_url = &metadata::base_url(&page, found_at);
    let all = || page.elements().map(|(_, element)| element).filter(|e| links::leads_on(e));
    let followed = all().filter(|element| !links::is_nofollow(element));
    let max_bytes = max_crawl_link_bytes(html.len(), limits.max_text_bytes);
    let links::Linked { urls, is_cut } = links::all(followed, base_url, max_bytes, watch)?;
    let nofollow = all().filter(|element| links::is_nofollow(element)).count();
    let robots = Metas::of(&page).for_robots(bot);
    Ok(CrawlLinks { links: urls, is_cut: is_cut || page.is_cut, nofollow, robots })
}

/// The URL that a page declares as its own, if it is absolute: its canonical URL, else that of its Open Graph data. For
/// pages that were saved without their URL.
pub fn declared_url_within(html: &str, limits: &Limits<'_>) -> Result<Option<Url>, TookTooLong> {
    let page = Page::parse(html, limits.max_text_bytes, &Watch::new(limits))?;
    Ok(metadata::declared_url(&page))
}

/// Parses a page and returns its number of nodes. For benchmarks, to measure parsing alone.
#[must_use]
pub fn count_nodes(html: &str) -> usize {
    let parsed = Page::parse(html, usize::MAX, &Watch::new(&Limits::NONE));
    parsed.map_or(0, |page| page.nodes.len())
}

/// A parsed page and its content.
struct Read<'a> {
    page: Page<'a>,
    content: Content,
    metas: Metas,
    json_ld: JsonLd<'a>,
}

impl<'a> Read<'a> {
    fn new(
        html: &'a str,
        found_at: &Url,
        limits: &Limits<'_>,
        watch: &Watch<'_>,
    ) -> Result<Self, TookTooLong> {
        Read::of(Page::parse(html, limits.max_text_bytes, watch)?, found_at, watch)
    }

    fn of(page: Page<'a>, found_at: &Url, watch: &Watch<'_>) -> Result<Self, TookTooLong> {
        let json_ld = JsonLd::read(&page.json_ld);
        watch.look()?;
        let metas = Metas::of(&page);
        let authors = metadata::stated_authors(&metas, &json_ld);
        let content = content::choose(&page, found_at, json_ld.stated_kind(), &authors);
        watch.look()?;
        Ok(Read { page, content, metas, json_ld })
    }

    /// The other one if it has more text.
    fn or_longer<'r>(&'r self, other: Option<&'r Read<'a>>) -> &'r Read<'a> {
        other.filter(|other| other.content.text_bytes > self.content.text_bytes).unwrap_or(self)
    }

    /// What the page carries, if it has hardly any text of its own.
    fn carried(&self, limits: &Limits<'_>) -> Option<Carried> {
        let is_bare = self.content.text_bytes < BARE_BYTES;
        is_bare.then(|| carried::read(&self.page, limits.with_noscript)).flatten()
    }
}
