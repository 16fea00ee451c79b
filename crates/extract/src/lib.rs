//! HTML bytes in, the article's fields out.
//!
//! Pure: no I/O, no clock. A page goes through four steps, each a module:
//!
//! 1. `charset`: bytes become text.
//! 2. `page`: a tolerant tokenizer makes a flat array of nodes in document order that borrow the
//!    input. A subtree is a contiguous range, so every later step is a scan.
//! 3. `content`: which range is the article, and which subtrees in it are not.
//! 4. `text`, `markdown`, `metadata`: what is kept is written out.
//!
//! Pages come from outside: every step takes linear time, recurses never, and has no input on
//! which it fails. A page that makes no sense gives an article that is empty.

mod charset;
mod content;
mod entities;
mod entity_names;
mod fold;
mod links;
mod markdown;
mod measures;
mod media_type;
mod metadata;
mod page;
mod text;
mod title;
mod walk;

pub use charset::{Decoded, decode};
pub use media_type::{is_html, is_text};

use url::Url;

/// What a page says, without what stands around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Article {
    /// The headline, without the site's name; empty where the page has none.
    pub title: String,
    /// The article's blocks as plain text, separated by blank lines.
    pub text: String,
    /// The same blocks as Markdown, links and images with absolute addresses.
    pub markdown: String,
    /// The first paragraph of more than 40 characters, else empty.
    pub abstract_text: String,
    /// The absolute address of the lead image, else of the first one.
    pub image: Option<String>,
    /// The language that the page declares (`en`, `pt-BR`).
    pub lang: Option<String>,
    /// The absolute address that the page calls its own.
    pub canonical: Option<String>,
    /// Who wrote it, as the page names them.
    pub author: Option<String>,
    /// When it was published, as the page states it; begins with `YYYY-MM-DD`.
    pub published: Option<String>,
}

/// Extracts the article from a page. `base_url` is where the page was found: its relative links
/// are resolved against it, or against its `<base>`.
#[must_use]
pub fn extract(html: &str, base_url: &Url) -> Article {
    let page = page::Page::parse(html);
    let content = content::choose(&page);
    let metadata = metadata::read(&page, base_url);
    let plain = text::write(&page, &content);
    let image = metadata.image.or_else(|| links::first_image(&page, &content, &metadata.base_url));
    Article {
        title: metadata.title,
        text: plain.text,
        markdown: markdown::write(&page, &content, &metadata.base_url, html.len()),
        abstract_text: plain.first_paragraph,
        image,
        lang: metadata.lang,
        canonical: metadata.canonical,
        author: metadata.author,
        published: metadata.published,
    }
}
