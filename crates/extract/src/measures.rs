//! How much text stands in any subtree, and how much of it is links: prefix sums, so that each
//! question is one subtraction.

use std::ops::Range;

use crate::page::{NodeKind, Page, Tag};

/// The sums for one page.
pub(crate) struct Measures {
    text: Vec<usize>,
    linked: Vec<usize>,
}

impl Measures {
    pub(crate) fn of(page: &Page<'_>) -> Self {
        let mut sums = Measures { text: vec![0], linked: vec![0] };
        let (mut text, mut linked) = (0, 0);
        let mut link_end = 0;
        for (index, node) in page.nodes.iter().enumerate() {
            match &node.kind {
                NodeKind::Element(element) if element.tag == Tag::A => {
                    link_end = link_end.max(node.end);
                }
                NodeKind::Element(_) => {}
                NodeKind::Text(source) => {
                    let bytes = source.bytes().filter(|b| !b.is_ascii_whitespace()).count();
                    text += bytes;
                    linked += if index < link_end { bytes } else { 0 };
                }
            }
            sums.text.push(text);
            sums.linked.push(linked);
        }
        sums
    }

    /// Bytes of text in these nodes, white space not counted.
    pub(crate) fn text_bytes(&self, nodes: &Range<usize>) -> usize {
        difference(&self.text, nodes)
    }

    /// Of these the bytes that stand in links.
    pub(crate) fn linked_bytes(&self, nodes: &Range<usize>) -> usize {
        difference(&self.linked, nodes)
    }
}

fn difference(sums: &[usize], nodes: &Range<usize>) -> usize {
    let until = |index: usize| sums.get(index).copied().unwrap_or_default();
    until(nodes.end).saturating_sub(until(nodes.start))
}
