//! How much text stands in any subtree, how much of it is links, and how much is prose: prefix
//! sums, so that each question is one subtraction.

use std::ops::Range;

use crate::page::{NodeKind, Page, Tag};

/// A block with at least so much text of its own is prose.
const MIN_PROSE_BYTES: usize = 80;

/// The sums for one page.
pub(crate) struct Measures {
    sums: Vec<Sums>,
    widest_column_bytes: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    text: usize,
    linked: usize,
    prose: usize,
}

impl Measures {
    /// Sums up the page, without the subtrees of dropped nodes.
    pub(crate) fn of(page: &Page<'_>, dropped: &[bool]) -> Self {
        let mut sums = Vec::with_capacity(page.nodes.len() + 1);
        sums.push(Sums::default());
        let mut total = Sums::default();
        let (mut link_end, mut drop_end) = (0, 0);
        // The text and the linked text before the block that is being read.
        let mut block = Sums::default();
        // The open elements: where each ends, and the prose of the paragraphs directly in it.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut widest_column_bytes = 0;
        for (index, node) in page.nodes.iter().enumerate() {
            if dropped.get(index) == Some(&true) {
                drop_end = drop_end.max(node.end);
            }
            while let Some((_, column)) = open.pop_if(|(end, _)| *end <= index) {
                widest_column_bytes = widest_column_bytes.max(column);
            }
            match &node.kind {
                NodeKind::Element(element) => {
                    if element.tag.is_block() {
                        open.push((node.end, 0));
                    }
                    if element.tag == Tag::A {
                        link_end = link_end.max(node.end);
                    }
                    if element.tag.is_block() {
                        block = total;
                    }
                }
                NodeKind::Text(source) if index >= drop_end => {
                    let bytes = source.bytes().filter(|b| !b.is_ascii_whitespace()).count();
                    total.text += bytes;
                    total.linked += if index < link_end { bytes } else { 0 };
                    let own = (total.text - block.text) - (total.linked - block.linked);
                    if own >= MIN_PROSE_BYTES {
                        let counted = total.prose - block.prose;
                        total.prose += own - counted.min(own);
                        if let Some((_, column)) =
                            open.len().checked_sub(2).and_then(|parent| open.get_mut(parent))
                        {
                            *column += own - counted.min(own);
                        }
                    }
                }
                NodeKind::Text(_) => {}
            }
            sums.push(total);
        }
        let rest = open.iter().map(|(_, column)| *column).max().unwrap_or_default();
        Measures { sums, widest_column_bytes: widest_column_bytes.max(rest) }
    }

    /// Bytes of text in these nodes, white space not counted.
    pub(crate) fn text_bytes(&self, nodes: &Range<usize>) -> usize {
        self.difference(nodes, |sums| sums.text)
    }

    /// Of these the bytes that stand in links.
    pub(crate) fn linked_bytes(&self, nodes: &Range<usize>) -> usize {
        self.difference(nodes, |sums| sums.linked)
    }

    /// Of these the bytes that stand in no link.
    pub(crate) fn own_bytes(&self, nodes: &Range<usize>) -> usize {
        self.text_bytes(nodes) - self.linked_bytes(nodes)
    }

    /// Bytes of text in long blocks, links not counted.
    pub(crate) fn prose_bytes(&self, nodes: &Range<usize>) -> usize {
        self.difference(nodes, |sums| sums.prose)
    }

    /// Prose in the paragraphs that stand directly in one element, of the element with the most.
    pub(crate) fn widest_column_bytes(&self) -> usize {
        self.widest_column_bytes
    }

    fn difference(&self, nodes: &Range<usize>, which: impl Fn(&Sums) -> usize) -> usize {
        let until = |index: usize| self.sums.get(index).map(&which).unwrap_or_default();
        until(nodes.end).saturating_sub(until(nodes.start))
    }
}
