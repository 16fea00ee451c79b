//! The page as a flat array of nodes in document order.

mod attributes;
mod builder;
mod tag;
mod tokenizer;

pub(crate) use attributes::parse as parse_attributes;
pub(crate) use tag::Tag;

use std::borrow::Cow;
use std::ops::Range;

use crate::entities;
use crate::fold::one_line;
use crate::limits::{TookTooLong, Watch};

/// A parsed page.
pub(crate) struct Page<'a> {
    /// In document order: the descendants of a node follow it directly.
    pub(crate) nodes: Vec<Node<'a>>,
    /// The scripts with linked data about the page.
    pub(crate) json_ld: Vec<&'a str>,
    /// What the page shows if scripts are turned off.
    pub(crate) noscript: Vec<&'a str>,
    /// Whether there is more text than requested.
    pub(crate) is_cut: bool,
}

/// An element or a piece of text, and the end of its subtree.
pub(crate) struct Node<'a> {
    pub(crate) kind: NodeKind<'a>,
    /// One past the last descendant: always greater than the node's own index.
    pub(crate) end: usize,
}

pub(crate) enum NodeKind<'a> {
    Element(Element<'a>),
    /// As in the source, with character references.
    Text(&'a str),
}

/// An element's name and attributes; the attributes are parsed on demand.
#[derive(Clone, Copy)]
pub(crate) struct Element<'a> {
    pub(crate) tag: Tag,
    /// A number this small takes no more memory than the tag alone. The source has at most 16 MiB.
    name_bytes: u32,
    /// The name and the attributes.
    source: &'a str,
}

/// The maximum number of nodes whose texts are read as pieces.
const MAX_PIECES: usize = 50;

impl<'a> Page<'a> {
    /// Parses any input, up to this many bytes of text. It never fails because of the input.
    pub(crate) fn parse(
        html: &'a str,
        max_text_bytes: usize,
        watch: &Watch<'_>,
    ) -> Result<Self, TookTooLong> {
        builder::build(html, max_text_bytes, watch)
    }

    /// Every element with its index, in document order.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (usize, &Element<'a>)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| match &node.kind {
            NodeKind::Element(element) => Some((index, element)),
            NodeKind::Text(_) => None,
        })
    }

    /// A node and its descendants; empty for an index outside of the page.
    pub(crate) fn subtree(&self, index: usize) -> Range<usize> {
        index..self.nodes.get(index).map_or(index, |node| node.end)
    }

    /// The text of a subtree, with a line feed for each `br`. Buttons are left out, unless there is no other text.
    pub(crate) fn raw_text(&self, index: usize) -> String {
        self.short_text(index, usize::MAX).unwrap_or_default()
    }

    /// The same, if it has no more bytes and no more nodes than this. For elements that may be nested in each other:
    /// without the limit, each would be read as often as it is deep.
    pub(crate) fn short_text(&self, index: usize, max_bytes: usize) -> Option<String> {
        let nodes = self.subtree(index);
        if nodes.len() > max_bytes {
            return None;
        }
        let text = self.text_within(nodes.clone(), max_bytes, false)?;
        if text.trim().is_empty() { self.text_within(nodes, max_bytes, true) } else { Some(text) }
    }

    /// The texts between the tags of an element, each on one line. Further nodes of a large element are not examined.
    pub(crate) fn pieces(&self, index: usize) -> impl Iterator<Item = String> {
        let nodes = self.nodes.get(self.subtree(index)).unwrap_or_default();
        let texts = nodes.iter().take(MAX_PIECES).filter_map(|node| match &node.kind {
            NodeKind::Text(text) => Some(one_line(&entities::decode(text))),
            NodeKind::Element(_) => None,
        });
        texts.filter(|text| !text.is_empty())
    }

    fn text_within(
        &self,
        nodes: Range<usize>,
        max_bytes: usize,
        with_buttons: bool,
    ) -> Option<String> {
        let mut out = String::new();
        let mut index = nodes.start;
        while let Some(node) = self.nodes.get(index).filter(|_| index < nodes.end) {
            index += 1;
            match &node.kind {
                NodeKind::Text(text) if text.len() > max_bytes.saturating_sub(out.len()) => {
                    return None;
                }
                NodeKind::Text(text) => out.push_str(&entities::decode(text)),
                NodeKind::Element(element) if element.tag == Tag::Br => out.push('\n'),
                NodeKind::Element(element) if element.tag == Tag::Button && !with_buttons => {
                    index = node.end;
                }
                NodeKind::Element(_) => {}
            }
        }
        Some(out)
    }
}

impl<'a> Element<'a> {
    fn new(tag: Tag, name_bytes: usize, source: &'a str) -> Element<'a> {
        Element { tag, name_bytes: u32::try_from(name_bytes).unwrap_or(u32::MAX), source }
    }

    /// The name as in the source.
    pub(crate) fn name(&self) -> &'a str {
        self.source.get(..self.name_bytes as usize).unwrap_or_default()
    }

    /// The size of the name and the attributes in the source.
    pub(crate) fn source_bytes(&self) -> usize {
        self.source.len()
    }

    fn attribute_source(&self) -> &'a str {
        self.source.get(self.name_bytes as usize..).unwrap_or_default()
    }

    /// Names and raw values, in source order.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        attributes::parse(self.attribute_source())
    }

    /// The decoded value of an attribute, named in lower case; empty if it has no value.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let (_, value) = self.attributes().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(entities::decode(value))
    }

    /// Whether a word occurs anywhere in the attributes, case-sensitively: a fast check before a slow one.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        memchr::memmem::find(self.attribute_source().as_bytes(), word.as_bytes()).is_some()
    }

    /// Whether an attribute contains this word; words are separated by spaces.
    pub(crate) fn attribute_has(&self, name: &str, word: &str) -> bool {
        self.attribute(name)
            .is_some_and(|value| value.split_whitespace().any(|w| w.eq_ignore_ascii_case(word)))
    }
}
