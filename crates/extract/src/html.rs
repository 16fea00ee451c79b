//! The content as HTML without scripts, styles, forms and event handlers, with absolute URLs of links and images.

use std::borrow::Cow;

use url::Url;

use crate::content::Content;
use crate::entities;
use crate::limits::{TookTooLong, Watch};
use crate::links::{absolute, image_address};
use crate::page::{Element, Page, Tag};
use crate::walk::{NodeVisitor, walk};

/// The maximum length of an element name. Of elements with longer names, only the content is written.
const MAX_NAME_BYTES: usize = 64;

/// The attributes that are written unchanged. Browsers neither run nor load any of them.
const ATTRIBUTES: [&str; 12] = [
    "alt", "class", "colspan", "datetime", "dir", "id", "lang", "rowspan", "scope", "span",
    "start", "title",
];

/// Writes the content of the page. Absolute URLs may add at most `max_added_bytes` to it, and so may escapes.
pub(crate) fn write(
    page: &Page<'_>,
    content: &Content,
    base_url: &Url,
    max_added_bytes: usize,
    watch: &Watch<'_>,
) -> Result<String, TookTooLong> {
    let mut writer = Writer {
        base_url,
        address_bytes_left: max_added_bytes,
        escape_bytes_left: max_added_bytes,
        links: Vec::new(),
        out: String::new(),
    };
    walk(page, content, &mut writer, watch)?;
    writer.out.truncate(writer.out.trim_end().len());
    Ok(writer.out)
}

struct Writer<'p> {
    base_url: &'p Url,
    address_bytes_left: usize,
    /// A page that consists of quotation marks would be six times as long.
    escape_bytes_left: usize,
    /// The links that are open.
    links: Vec<OpenLink>,
    out: String,
}

/// A link whose end tag has not been written.
struct OpenLink {
    /// Its node on the page.
    index: usize,
    /// Where its tag begins in the output.
    start: usize,
    /// Whether there is something in it to click.
    has_content: bool,
    has_space: bool,
}

impl Writer<'_> {
    fn open(&mut self, element: &Element<'_>) {
        self.out.push('<');
        self.push_name(element);
        for (name, value) in element.attributes() {
            if ATTRIBUTES.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                self.attribute(&name.to_ascii_lowercase(), &entities::decode(value));
            }
        }
        match element.tag {
            Tag::A => {
                let href = element.attribute("href");
                self.address("href", href.and_then(|href| absolute(self.base_url, &href)));
            }
            Tag::Img => self.address("src", image_address(self.base_url, element)),
            _ => {}
        }
        self.out.push('>');
    }

    /// Ends a link. One without content is removed: its content was dropped, or is a script.
    fn end_link(&mut self, index: usize) {
        let Some(link) = self.links.pop_if(|link| link.index == index) else { return };
        if !link.has_content {
            self.out.truncate(link.start);
            if link.has_space {
                self.out.push(' ');
            }
        }
        if let Some(outer) = self.links.last_mut() {
            outer.has_content |= link.has_content;
            outer.has_space |= link.has_space;
        }
    }

    fn push_name(&mut self, element: &Element<'_>) {
        self.out.extend(element.name().chars().map(|c| c.to_ascii_lowercase()));
    }

    /// Writes an attribute, unless the page has used up its limit for escapes.
    fn attribute(&mut self, name: &str, value: &str) {
        let Some(value) = self.escaped(value, &['&', '<', '>', '"']) else { return };
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        self.out.push_str(&value);
        self.out.push('"');
    }

    /// The text with escapes; `None` if the page has used up its limit for them.
    fn escaped<'t>(&mut self, text: &'t str, characters: &[char]) -> Option<Cow<'t, str>> {
        let text_bytes = text.len();
        let text = escaped(text, characters);
        let added = text.len().saturating_sub(text_bytes);
        self.escape_bytes_left = self.escape_bytes_left.checked_sub(added)?;
        Some(text)
    }

    /// Writes a URL, unless the page has used up its limit.
    fn address(&mut self, name: &str, url: Option<Url>) {
        let Some(url) = url else { return };
        if let Some(left) = self.address_bytes_left.checked_sub(url.as_str().len()) {
            self.address_bytes_left = left;
            self.attribute(name, url.as_str());
        }
    }
}

impl NodeVisitor for Writer<'_> {
    fn enter(&mut self, index: usize, element: &Element<'_>) -> bool {
        if is_left_out(element.tag) {
            return false;
        }
        if element.tag == Tag::A && element.attribute("href").is_some() {
            let start = self.out.len();
            self.links.push(OpenLink { index, start, has_content: false, has_space: false });
        }
        if let Some(link) = self.links.last_mut() {
            link.has_content |= element.tag.is_void() && element.tag != Tag::Br;
        }
        if is_written(element) {
            self.open(element);
        }
        // There is no end tag to write.
        !element.tag.is_void()
    }

    fn leave(&mut self, index: usize, element: &Element<'_>) {
        if is_written(element) {
            self.out.push_str("</");
            self.push_name(element);
            self.out.push('>');
        }
        self.end_link(index);
    }

    /// Character references stay as they are.
    fn text(&mut self, source: &str) {
        if let Some(link) = self.links.last_mut() {
            link.has_content |= !source.trim().is_empty();
            link.has_space |= source.contains(char::is_whitespace);
        }
        if let Some(text) = self.escaped(source, &['<', '>']) {
            self.out.push_str(&text);
        }
    }

    fn part_ends(&mut self) {
        self.out.push('\n');
    }
}

/// Whether an element is not written at all.
fn is_left_out(tag: Tag) -> bool {
    use Tag::*;
    tag.is_skipped()
        || matches!(
            tag,
            Base | Button
                | Embed
                | Head
                | Input
                | Link
                | Meta
                | Param
                | Select
                | SelectOption
                | Source
                | Title
                | Track
        )
}

/// Whether its tags are written, too. The document is a part of a page, so it has no `html` and no `body`.
fn is_written(element: &Element<'_>) -> bool {
    let name = element.name();
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name
        && name.len() <= MAX_NAME_BYTES
        && !matches!(element.tag, Tag::Html | Tag::Body | Tag::Form)
}

fn escaped<'t>(text: &'t str, characters: &[char]) -> Cow<'t, str> {
    if !text.contains(characters) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' if characters.contains(&'&') => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if characters.contains(&'"') => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}
