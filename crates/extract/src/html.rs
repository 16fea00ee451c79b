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
    out: String,
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
    fn enter(&mut self, _: usize, element: &Element<'_>) -> bool {
        if is_left_out(element.tag) {
            return false;
        }
        if is_written(element) {
            self.open(element);
        }
        // There is no end tag to write.
        !element.tag.is_void()
    }

    fn leave(&mut self, _: usize, element: &Element<'_>) {
        if is_written(element) {
            self.out.push_str("</");
            self.push_name(element);
            self.out.push('>');
        }
    }

    /// Character references stay as they are.
    fn text(&mut self, source: &str) {
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
