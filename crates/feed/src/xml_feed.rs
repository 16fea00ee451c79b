//! RSS and Atom, read as far as possible.
//!
//! The root element tells the formats apart; otherwise they are so similar that one reader serves both. It matches the
//! names of elements and ignores their namespaces, which a third of all feeds get wrong.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use fetchwell_policy::url::WebUrl;

use crate::date;
use crate::draft::{Draft, link, plain};
use crate::feed::{Feed, FeedFormat, MAX_DEPTH, MAX_FIELD_BYTES};
use crate::references::undo;
use crate::xml::{Attributes, Tokens, XmlToken, local, prefix};

/// Reads a document; `None` if it contains no feed.
pub(crate) fn read(document: &str, found_at: &WebUrl) -> Option<Feed> {
    let mut tokens = Tokens::new(document);
    let mut reader = begin(&mut tokens, found_at)?;
    for token in tokens {
        match token {
            XmlToken::Open { name, attributes, is_empty } => {
                reader.open(name, attributes, is_empty);
            }
            XmlToken::Close { name } => reader.close(name),
            XmlToken::Text(text) => reader.text(&undo(text)),
            XmlToken::Verbatim(text) => reader.text(text),
        }
        if reader.stack.is_empty() {
            return Some(reader.feed);
        }
    }
    reader.feed.gaps.ends_early = true;
    Some(reader.feed)
}

/// Finds the root element, whatever precedes it.
fn begin<'a>(tokens: &mut Tokens<'a>, found_at: &WebUrl) -> Option<Reader<'a>> {
    loop {
        let XmlToken::Open { name, attributes, is_empty } = tokens.next()? else { continue };
        let format = match local(name).to_ascii_lowercase().as_str() {
            "rss" | "channel" => FeedFormat::Rss,
            "rdf" => FeedFormat::Rdf,
            "feed" => FeedFormat::Atom,
            "html" => return None,
            _ => continue,
        };
        let feed = Feed::new(format, found_at);
        let mut reader =
            Reader { feed, has_own_title: false, stack: Vec::new(), draft: None, capture: None };
        reader.push(name, base_of(attributes, found_at));
        if is_empty {
            reader.close(name);
        }
        return Some(reader);
    }
}

/// An open element.
struct Frame<'a> {
    name: &'a str,
    /// The base of its relative links.
    base: WebUrl,
}

/// An element whose text is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    FeedTitle { is_own: bool },
    FeedPage,
    Title { is_own: bool },
    Link,
    OriginalLink,
    Guid { is_link: bool },
    Id,
    Published,
    Updated,
}

/// The text of a field that is being read.
struct Capture {
    field: Field,
    /// The number of open elements around it.
    outside: usize,
    /// Atom 0.3 allows text as Base64.
    is_base64: bool,
    text: String,
}

struct Reader<'a> {
    feed: Feed,
    /// Whether its title is that of the feed's format, not `dc:title` or the like.
    has_own_title: bool,
    stack: Vec<Frame<'a>>,
    /// The open entry, and the number of open elements around it.
    draft: Option<(Draft, usize)>,
    capture: Option<Capture>,
}

impl<'a> Reader<'a> {
    fn open(&mut self, name: &'a str, attributes: Attributes<'a>, is_empty: bool) {
        if self.is_entry(name) {
            self.end_capture();
            self.begin_entry();
        }
        let field = self.field(name, attributes);
        if field.is_some() {
            self.end_capture();
        }
        let Some(outer) = self.stack.last() else { return };
        let base = base_of(attributes, &outer.base);
        let is_in_feed = is_feed(outer.name);
        match &mut self.draft {
            Some((draft, outside)) if self.stack.len() == *outside + 1 => {
                link_by_attribute(draft, name, attributes, &base);
            }
            None if is_in_feed => {
                if let Some(page) = page_by_attribute(name, attributes, &base) {
                    self.feed.home.name_page(&page);
                }
            }
            _ => {}
        }
        if is_empty {
            return;
        }
        if let Some(field) = field {
            let outside = self.stack.len();
            let mode = attributes.get("mode").unwrap_or_default();
            let is_base64 = mode.trim().eq_ignore_ascii_case("base64");
            self.capture = Some(Capture { field, outside, is_base64, text: String::new() });
        }
        self.push(name, base);
    }

    fn push(&mut self, name: &'a str, base: WebUrl) {
        if self.stack.len() < MAX_DEPTH {
            self.stack.push(Frame { name, base });
        }
    }

    /// Closes the innermost open element with this name and all elements in it.
    fn close(&mut self, name: &str) {
        let is_meant = |frame: &Frame<'_>| frame.name.eq_ignore_ascii_case(name);
        if let Some(at) = self.stack.iter().rposition(is_meant) {
            self.close_all_from(at);
        }
    }

    fn close_all_from(&mut self, at: usize) {
        if self.capture.as_ref().is_some_and(|capture| capture.outside >= at) {
            self.end_capture();
        }
        if let Some((draft, _)) = self.draft.take_if(|(_, outside)| *outside >= at) {
            self.feed.add(draft.entry());
        }
        self.stack.truncate(at);
    }

    fn text(&mut self, text: &str) {
        if let Some(Capture { text: so_far, .. }) = &mut self.capture {
            let room = MAX_FIELD_BYTES.saturating_sub(so_far.len());
            let end = text.floor_char_boundary(room.min(text.len()));
            so_far.push_str(text.get(..end).unwrap_or_default());
        }
    }

    fn is_entry(&self, name: &str) -> bool {
        let entry = if self.feed.format == FeedFormat::Atom { "entry" } else { "item" };
        local(name).eq_ignore_ascii_case(entry)
    }

    /// If an entry is still open, its end tag is missing.
    fn begin_entry(&mut self) {
        if let Some((_, outside)) = &self.draft {
            self.close_all_from(*outside);
        }
        self.draft = Some((Draft::default(), self.stack.len()));
    }

    /// The field that an element's text belongs to. Only direct children of an entry or of the feed count, also if they
    /// follow a text-only element whose end tag is missing.
    fn field(&self, name: &str, attributes: Attributes<'_>) -> Option<Field> {
        let forgotten = self.capture.as_ref().map(|capture| capture.outside);
        let depth = forgotten.unwrap_or(self.stack.len());
        let parent = self.stack.get(depth.checked_sub(1)?)?;
        let is_own = prefix(name) == prefix(parent.name);
        let name = local(name).to_ascii_lowercase();
        match &self.draft {
            Some((_, outside)) if depth == outside + 1 => entry_field(&name, is_own, attributes),
            // `media:group` holds one item in several formats; its title is used if the entry has none.
            Some((_, outside)) if depth == outside + 2 && is_group(parent.name) => {
                (name == "title").then_some(Field::Title { is_own: false })
            }
            None if is_feed(parent.name) => match name.as_str() {
                "title" => Some(Field::FeedTitle { is_own }),
                "link" if is_own && attributes.get("href").is_none() => Some(Field::FeedPage),
                _ => None,
            },
            _ => None,
        }
    }

    fn end_capture(&mut self) {
        let Some(Capture { field, outside, is_base64, text }) = self.capture.take() else { return };
        let Some(frame) = self.stack.get(outside) else { return };
        let text = if is_base64 { from_base64(&text).unwrap_or(text) } else { text };
        let found = link(&text, &frame.base);
        match (field, &found) {
            (Field::FeedTitle { is_own }, _) => self.title_feed(plain(&text), is_own),
            (Field::FeedPage, Some(page)) => self.feed.home.name_page(page),
            _ => {}
        }
        if let Some((draft, _)) = &mut self.draft {
            keep(draft, field, text, found);
        }
        self.stack.truncate(outside);
    }

    /// The first title counts, but `dc:title` and `media:title` only in place of a missing one.
    fn title_feed(&mut self, title: String, is_own: bool) {
        let is_better = self.feed.title.is_empty() || (is_own && !self.has_own_title);
        if is_better && !title.is_empty() {
            self.feed.title = title;
            self.has_own_title = is_own;
        }
    }
}

fn is_feed(name: &str) -> bool {
    ["channel", "feed"].iter().any(|feed| local(name).eq_ignore_ascii_case(feed))
}

fn is_group(name: &str) -> bool {
    local(name).eq_ignore_ascii_case("group")
}

fn entry_field(name: &str, is_own: bool, attributes: Attributes<'_>) -> Option<Field> {
    Some(match name {
        "title" => Field::Title { is_own },
        "link" if is_own && attributes.get("href").is_none() => Field::Link,
        "origlink" => Field::OriginalLink,
        "guid" if is_own => {
            let word = attributes.get("isPermaLink").unwrap_or_default();
            Field::Guid { is_link: !word.trim().eq_ignore_ascii_case("false") }
        }
        "id" if is_own => Field::Id,
        "pubdate" | "published" | "issued" | "date" => Field::Published,
        "updated" | "modified" => Field::Updated,
        _ => return None,
    })
}

fn keep(draft: &mut Draft, field: Field, text: String, found: Option<WebUrl>) {
    match field {
        Field::FeedTitle { .. } | Field::FeedPage => {}
        Field::Title { .. } if text.trim().is_empty() => {}
        // `dc:title` and `media:title` count only in place of a missing title.
        Field::Title { is_own: false } if !draft.title.trim().is_empty() => {}
        Field::Title { .. } => draft.title = text,
        Field::Link => draft.page = draft.page.take().or(found),
        Field::OriginalLink => draft.original = found,
        // Some GUIDs and IDs are not URLs but would parse as relative ones.
        Field::Guid { .. } | Field::Id if !begins_with_http(&text) => {}
        Field::Guid { is_link: true } => draft.otherwise = draft.otherwise.take().or(found),
        Field::Guid { is_link: false } => {}
        Field::Id => draft.id = found,
        Field::Published => draft.published = draft.published.or_else(|| date::read(&text)),
        Field::Updated => draft.updated = draft.updated.or_else(|| date::read(&text)),
    }
}

fn begins_with_http(text: &str) -> bool {
    text.trim_start().get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
}

fn from_base64(text: &str) -> Option<String> {
    let digits: String = text.split_whitespace().collect();
    let bytes = BASE64_STANDARD.decode(digits).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Links in attributes, which RSS borrows from Atom: `<atom:link rel="alternate" href="…"/>`.
fn link_by_attribute(draft: &mut Draft, name: &str, attributes: Attributes<'_>, base: &WebUrl) {
    let name = local(name);
    let is_link = name.eq_ignore_ascii_case("link");
    let address = if is_link { "href" } else { "src" };
    if !is_link && !name.eq_ignore_ascii_case("content") {
        return;
    }
    let Some(found) = attributes.get(address).and_then(|address| link(&address, base)) else {
        return;
    };
    let rel = attributes.get("rel").unwrap_or_default();
    let media_type = attributes.get("type").unwrap_or_default();
    let is_page = media_type.is_empty() || media_type.contains("html");
    match rel.trim() {
        "" | "alternate" if is_link && is_page => draft.page = draft.page.take().or(Some(found)),
        "" | "alternate" => draft.otherwise = draft.otherwise.take().or(Some(found)),
        _ => {}
    }
}

/// The page that a feed links to as its own in an attribute. Its other links point to itself or to services.
fn page_by_attribute(name: &str, attributes: Attributes<'_>, base: &WebUrl) -> Option<WebUrl> {
    if !local(name).eq_ignore_ascii_case("link") {
        return None;
    }
    let rel = attributes.get("rel").unwrap_or_default();
    let address = attributes.get("href").filter(|_| matches!(rel.trim(), "" | "alternate"))?;
    link(&address, base)
}

fn base_of(attributes: Attributes<'_>, outer: &WebUrl) -> WebUrl {
    let own = attributes.get("xml:base").and_then(|base| outer.join(base.trim()).ok());
    own.unwrap_or_else(|| outer.clone())
}
