//! A page as a document: in several formats, and of a part of the page that the caller chooses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The maximum length of a selector.
const MAX_SELECTOR_BYTES: usize = 256;

/// The options of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentOptions {
    /// The formats of the page.
    pub formats: Vec<DocumentFormat>,
    /// Whether the document has the whole page instead of its main content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_page: bool,
    /// If there are any, the document has only the elements that match one of these, wherever they are on the page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<ElementSelector>,
    /// The document has none of the elements that match one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<ElementSelector>,
}

impl DocumentOptions {
    /// Whether the document has this format.
    pub fn has(&self, format: DocumentFormat) -> bool {
        self.formats.contains(&format)
    }
}

/// A format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DocumentFormat {
    /// The content as Markdown.
    Markdown,
    /// The content as HTML, without scripts and styles.
    Html,
    /// The page as the site sent it.
    RawHtml,
    /// The URLs that the page links to.
    Links,
}

/// What a result has for a document, besides the content, the article and the links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedDocument {
    /// The requested formats.
    pub formats: Vec<DocumentFormat>,
    /// The content as HTML, if it was requested and the page is HTML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The language of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The absolute URL of the lead image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// A selector of elements, as in CSS: a name, classes and an id, such as `nav`, `.ad`, `#comments` or `div.note.wide`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ElementSelector {
    /// The name of the element, in lower case.
    pub name: Option<String>,
    /// The id of the element.
    pub id: Option<String>,
    /// Classes that the element must all have.
    pub classes: Vec<String>,
}

/// The error for a text that is not a supported selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "is not a supported selector; use an element name, .class, #id, or a compound such as div.note, without spaces, at \
     most 256 bytes"
)]
pub struct BadSelector;

impl FromStr for ElementSelector {
    type Err = BadSelector;

    fn from_str(text: &str) -> Result<ElementSelector, BadSelector> {
        if text.is_empty() || text.len() > MAX_SELECTOR_BYTES {
            return Err(BadSelector);
        }
        let name_bytes = text.find(['.', '#']).unwrap_or(text.len());
        let (name, mut rest) = text.split_at_checked(name_bytes).ok_or(BadSelector)?;
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !name.is_empty() && !is_name {
            return Err(BadSelector);
        }
        let name = (!name.is_empty()).then(|| name.to_ascii_lowercase());
        let mut selector = ElementSelector { name, id: None, classes: Vec::new() };
        while let Some(kind) = rest.chars().next() {
            let after = rest.get(1..).ok_or(BadSelector)?;
            let end = after.find(['.', '#']).unwrap_or(after.len());
            let (value, next) = after.split_at_checked(end).ok_or(BadSelector)?;
            if !is_identifier(value) {
                return Err(BadSelector);
            }
            match kind {
                '.' => selector.classes.push(value.to_owned()),
                _ if selector.id.is_some() => return Err(BadSelector),
                _ => selector.id = Some(value.to_owned()),
            }
            rest = next;
        }
        Ok(selector)
    }
}

/// Whether a text is a class or an id that needs no escapes in CSS.
fn is_identifier(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii();
    !text.is_empty() && text.chars().all(is_plain)
}

impl fmt::Display for ElementSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or_default())?;
        if let Some(id) = &self.id {
            write!(f, "#{id}")?;
        }
        self.classes.iter().try_for_each(|class| write!(f, ".{class}"))
    }
}

impl TryFrom<String> for ElementSelector {
    type Error = BadSelector;

    fn try_from(text: String) -> Result<ElementSelector, BadSelector> {
        text.parse()
    }
}

impl From<ElementSelector> for String {
    fn from(selector: ElementSelector) -> String {
        selector.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_selectors_are_read_and_written() {
        for (text, name, id, classes) in [
            ("nav", Some("nav"), None, &[][..]),
            ("NAV", Some("nav"), None, &[]),
            ("x-note", Some("x-note"), None, &[]),
            (".ad", None, None, &["ad"]),
            (".Ad_1.b-c", None, None, &["Ad_1", "b-c"]),
            ("#comments", None, Some("comments"), &[]),
            ("div#a.b.\u{fc}", Some("div"), Some("a"), &["b", "\u{fc}"]),
            ("div.b#a", Some("div"), Some("a"), &["b"]),
        ] {
            let selector: ElementSelector = text.parse().unwrap();
            assert_eq!(selector.name.as_deref(), name, "{text}");
            assert_eq!(selector.id.as_deref(), id, "{text}");
            assert_eq!(selector.classes, classes, "{text}");
            assert_eq!(selector.to_string().parse(), Ok(selector), "{text}");
        }
    }

    #[test]
    fn other_selectors_are_refused() {
        let long = "a".repeat(257);
        for text in [
            "",
            " ",
            "*",
            "nav, footer",
            "div p",
            "div > p",
            "a[href]",
            "p:first-child",
            ".",
            "#",
            "div.",
            "..a",
            "#a#b",
            "1a",
            ".a:b",
            "-a",
            "a_b",
            "*.ad",
            &long,
        ] {
            assert!(text.parse::<ElementSelector>().is_err(), "{text}");
        }
    }

    #[test]
    fn options_are_read_as_they_were_written() {
        let options = DocumentOptions {
            formats: vec![DocumentFormat::Markdown, DocumentFormat::RawHtml],
            whole_page: true,
            include: vec!["main".parse().unwrap()],
            exclude: vec![".ad".parse().unwrap()],
        };
        let json = serde_json::to_string(&options).unwrap();
        let expected = r#"{"formats":["markdown","rawHtml"],"whole_page":true,"include":["main"],"exclude":[".ad"]}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<DocumentOptions>(&json).unwrap(), options);
        assert!(
            serde_json::from_str::<DocumentOptions>(r#"{"formats":[],"include":["a b"]}"#).is_err()
        );
    }
}
