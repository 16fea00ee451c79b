//! How much text any subtree has, how much of it is links, and how much is prose. These are prefix sums, so each query
//! is one subtraction.

use std::ops::Range;

use crate::page::{NodeKind, Page, Tag};

/// A block with at least this much text of its own is prose.
const MIN_PROSE_BYTES: usize = 80;

/// The sums for one page.
pub(crate) struct TextStats {
    sums: Vec<Sums>,
    /// The largest amount of prose in the paragraphs that are direct children of one element.
    pub(crate) widest_column_bytes: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    text: usize,
    linked: usize,
    prose: usize,
}

impl Sums {
    fn own(self) -> usize {
        self.text - self.linked
    }
}

impl TextStats {
    /// Sums up the page.
    pub(crate) fn of(page: &Page<'_>) -> Self {
        TextStats::sum_up(page, |_, text| bytes_without_space(text), &[])
    }

    /// The same without the subtrees of the dropped nodes.
    pub(crate) fn without(&self, page: &Page<'_>, dropped: &[bool]) -> Self {
        // The text of each node has already been measured.
        let bytes = |index: usize, _: &str| self.text_bytes(&(index..index + 1));
        TextStats::sum_up(page, bytes, dropped)
    }

    fn sum_up(page: &Page<'_>, bytes: impl Fn(usize, &str) -> usize, dropped: &[bool]) -> Self {
        let mut summing = Summing::with_room_for(page.nodes.len());
        let mut drop_end = 0;
        for (index, node) in page.nodes.iter().enumerate() {
            if dropped.get(index) == Some(&true) {
                drop_end = drop_end.max(node.end);
            }
            match &node.kind {
                NodeKind::Element(element) => summing.element(element.tag, index, node.end),
                NodeKind::Text(text) if index >= drop_end => {
                    summing.text(index, bytes(index, text));
                }
                NodeKind::Text(_) => {}
            }
            summing.sums.push(summing.total);
        }
        summing.close_until(usize::MAX);
        TextStats { sums: summing.sums, widest_column_bytes: summing.widest_column_bytes }
    }

    /// Bytes of text in these nodes, without white space.
    pub(crate) fn text_bytes(&self, nodes: &Range<usize>) -> usize {
        self.difference(nodes, |sums| sums.text)
    }

    /// The part of `text_bytes` in links.
    pub(crate) fn linked_bytes(&self, nodes: &Range<usize>) -> usize {
        self.difference(nodes, |sums| sums.linked)
    }

    /// The part of `text_bytes` outside of links.
    pub(crate) fn own_bytes(&self, nodes: &Range<usize>) -> usize {
        self.text_bytes(nodes) - self.linked_bytes(nodes)
    }

    /// Bytes of text in long blocks, without links.
    pub(crate) fn prose_bytes(&self, nodes: &Range<usize>) -> usize {
        self.difference(nodes, |sums| sums.prose)
    }

    fn difference(&self, nodes: &Range<usize>, which: impl Fn(&Sums) -> usize) -> usize {
        let until = |index: usize| self.sums.get(index).map(&which).unwrap_or_default();
        until(nodes.end).saturating_sub(until(nodes.start))
    }
}

/// The number of bytes above the space. The count of a chunk fits into a byte, so the compiler compares and counts
/// sixteen bytes at once.
fn bytes_without_space(text: &str) -> usize {
    const CHUNK_BYTES: usize = 128;
    let count_in =
        |chunk: &[u8]| chunk.iter().fold(0_u8, |count, byte| count + u8::from(*byte > b' '));
    text.as_bytes().chunks(CHUNK_BYTES).map(|chunk| usize::from(count_in(chunk))).sum()
}

struct Summing {
    sums: Vec<Sums>,
    total: Sums,
    /// The total at the beginning of the current block.
    block: Sums,
    link_end: usize,
    /// The open blocks: the end of each, and the prose of the paragraphs directly in it.
    open: Vec<(usize, usize)>,
    widest_column_bytes: usize,
}

impl Summing {
    fn with_room_for(nodes: usize) -> Self {
        let mut sums = Vec::with_capacity(nodes + 1);
        sums.push(Sums::default());
        Summing {
            sums,
            total: Sums::default(),
            block: Sums::default(),
            link_end: 0,
            open: Vec::new(),
            widest_column_bytes: 0,
        }
    }

    fn element(&mut self, tag: Tag, index: usize, end: usize) {
        if tag == Tag::A {
            self.link_end = self.link_end.max(end);
        } else if tag.is_block() {
            self.close_until(index);
            self.open.push((end, 0));
            self.block = self.total;
        }
    }

    fn text(&mut self, index: usize, bytes: usize) {
        self.total.text += bytes;
        self.total.linked += if index < self.link_end { bytes } else { 0 };
        let own = self.total.own() - self.block.own();
        if own < MIN_PROSE_BYTES {
            return;
        }
        let added = own - (self.total.prose - self.block.prose).min(own);
        self.total.prose += added;
        self.close_until(index);
        let parent = self.open.len().checked_sub(2);
        if let Some((_, column)) = parent.and_then(|parent| self.open.get_mut(parent)) {
            *column += added;
        }
    }

    fn close_until(&mut self, index: usize) {
        while let Some((_, column)) = self.open.pop_if(|(end, _)| *end <= index) {
            self.widest_column_bytes = self.widest_column_bytes.max(column);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_count_as_the_whole(text in "[a \n\u{E9}]{0,600}") {
            let want = text.bytes().filter(|byte| *byte > b' ').count();
            prop_assert_eq!(bytes_without_space(&text), want);
        }
    }
}
