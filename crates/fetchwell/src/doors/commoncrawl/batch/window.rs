//! Blocks come back in any order; what is made of them goes on in that of `cluster.idx`.
//!
//! A window is what is cut into batches at once: a block, or with `--by-file` as many blocks in a row as
//! have so many pages. Batches never run over the end of a window. So a window's batches follow from its
//! blocks alone, and whoever begins again at its first line makes the same ones, with the same ids.

use std::collections::BTreeMap;
use std::mem::take;

use bytes::Bytes;
use tracing::warn;

use super::block::{BlockEnd, BlockYield, IndexBlock, Pages, PlacedPage};
use super::counts::Counts;

/// Of a block's malformed lines so many are named in the log; all are counted.
const MALFORMED_LINES_NAMED: usize = 3;

/// How pages are put into batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutting {
    /// Pages in a batch.
    pub(super) batch_size: usize,
    /// With `--by-file`: a window ends with the block that brings it to so many pages.
    pub(super) by_file_pages: Option<usize>,
}

/// A window that is whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Bytes of `cluster.idx` before it.
    pub(super) starts_at: u64,
    /// Bytes of `cluster.idx` up to its end.
    pub(super) ends_at: u64,
    /// The bodies of its batches.
    pub(super) batches: Vec<Bytes>,
    /// What was counted in it.
    pub(super) counts: Counts,
    /// Blocks that could not be read.
    pub(super) unread: Vec<(IndexBlock, String)>,
}

/// Puts blocks in order, and windows together.
pub(super) struct Windows {
    cutting: Cutting,
    /// The number of the first block that is not in a window yet.
    next: u64,
    /// Blocks that came before their turn.
    early: BTreeMap<u64, BlockEnd>,
    open: Option<Window>,
    pages: Vec<PlacedPage>,
}

impl Windows {
    pub(super) fn new(cutting: Cutting) -> Windows {
        Windows { cutting, next: 0, early: BTreeMap::new(), open: None, pages: Vec::new() }
    }

    /// Blocks that are in windows.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes a block, and gives the windows that are whole by now. One that comes again is ignored.
    pub(super) fn take(&mut self, end: BlockEnd) -> Vec<Window> {
        if end.block.number >= self.next {
            self.early.insert(end.block.number, end);
        }
        let mut whole = Vec::new();
        while let Some(end) = self.early.remove(&self.next) {
            self.next += 1;
            self.add(end);
            let is_whole = self.cutting.by_file_pages.is_none_or(|most| self.pages.len() >= most);
            whole.extend(is_whole.then(|| self.close()).flatten());
        }
        whole
    }

    /// The last window, when no more blocks come.
    pub(super) fn close(&mut self) -> Option<Window> {
        let mut window = self.open.take()?;
        if !self.pages.is_empty() {
            window.batches = by_file(take(&mut self.pages), self.cutting.batch_size);
        }
        Some(window)
    }

    fn add(&mut self, end: BlockEnd) {
        let BlockEnd { block, what } = end;
        let begin = || Window { starts_at: block.starts_at, ..Window::default() };
        let window = self.open.get_or_insert_with(begin);
        window.ends_at = block.ends_at;
        match what {
            BlockYield::Read { pages, sifted, wire_bytes } => {
                let named = sifted.first_malformed.iter().take(MALFORMED_LINES_NAMED);
                for line in named.clone() {
                    warn!("{}: passed over: {}", block.place_of(line), line.fault);
                }
                let more = sifted.malformed - named.len() as u64;
                if more > 0 {
                    warn!("and {more} more lines of that block");
                }
                window.counts.add_block(&sifted, wire_bytes);
                match pages {
                    Pages::Batches(batches) => window.batches = batches,
                    Pages::Single(pages) => self.pages.extend(pages),
                }
            }
            BlockYield::NoBlock(fault) => {
                warn!("cluster.idx at byte {}: passed over: {fault}", block.starts_at);
                window.counts.add_error("index_line", 1);
            }
            BlockYield::Unread { kind, reason } => {
                let line = block.line.as_ref().map_or("", String::as_str);
                warn!("the block {line:?} can't be read: {reason}");
                window.counts.add_error(kind, 1);
                window.unread.push((block, reason));
            }
        }
    }
}

/// Sorted, so that whoever takes a batch finds its pages side by side.
fn by_file(mut pages: Vec<PlacedPage>, batch_size: usize) -> Vec<Bytes> {
    pages.sort();
    let array = |pages: &[PlacedPage]| {
        let mut body = Vec::with_capacity(pages.iter().map(|page| page.json.len() + 1).sum());
        for page in pages {
            body.push(if body.is_empty() { b'[' } else { b',' });
            body.extend_from_slice(&page.json);
        }
        body.push(b']');
        Bytes::from(body)
    };
    pages.chunks(batch_size.max(1)).map(array).collect()
}

#[cfg(test)]
mod tests {
    use fetchwell_archive::cdxj::Sifted;
    use proptest::prelude::*;

    use super::*;

    /// A block with pages in these files.
    fn block(number: u64, files: &[u8]) -> BlockEnd {
        let page = |(at, file): (usize, &u8)| PlacedPage {
            file: file.to_string(),
            offset: number,
            json: format!("\"{file}-{number}-{at}\"").into_bytes(),
        };
        let pages = Pages::Single(files.iter().enumerate().map(page).collect());
        let sifted = Sifted { wanted: files.len() as u64, ..Sifted::default() };
        let line = Ok(String::new());
        let block = IndexBlock { number, starts_at: number * 10, ends_at: number * 10 + 10, line };
        BlockEnd { block, what: BlockYield::Read { pages, sifted, wire_bytes: 1 } }
    }

    fn windows(cutting: Cutting, blocks: Vec<BlockEnd>) -> Vec<Window> {
        let mut windows = Windows::new(cutting);
        let mut whole: Vec<Window> =
            blocks.into_iter().flat_map(|block| windows.take(block)).collect();
        whole.extend(windows.close());
        whole
    }

    proptest! {
        #[test]
        fn whatever_the_order_the_windows_are_the_same_and_nothing_is_lost(
            files in prop::collection::vec(prop::collection::vec(0u8..5, 0..6), 1..20),
            batch_size in 1usize..5,
            most in 1usize..12,
            swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20),
        ) {
            let cutting = Cutting { batch_size, by_file_pages: Some(most) };
            let blocks: Vec<BlockEnd> =
                (0..).zip(&files).map(|(number, files)| block(number, files)).collect();
            let mut shuffled = blocks.clone();
            for (a, b) in swaps {
                shuffled.swap(a.index(files.len()), b.index(files.len()));
            }
            shuffled.push(blocks[0].clone());
            let in_order = windows(cutting, blocks);
            prop_assert_eq!(&windows(cutting, shuffled), &in_order);
            prop_assert_eq!(in_order.first().map(|window| window.starts_at), Some(0));
            prop_assert!(in_order.windows(2).all(|two| two[0].ends_at == two[1].starts_at));
            let mut made: Vec<String> = Vec::new();
            for window in &in_order {
                let mut places = Vec::new();
                for batch in &window.batches {
                    let pages: Vec<String> = serde_json::from_slice(batch).unwrap();
                    prop_assert!((1..=batch_size).contains(&pages.len()));
                    places.extend(pages.iter().map(|page| page.split('-').next().unwrap().to_owned()));
                    made.extend(pages);
                }
                prop_assert!(places.is_sorted(), "by file");
            }
            made.sort();
            let mut want: Vec<String> = Vec::new();
            for (number, files) in files.iter().enumerate() {
                let page = |(at, file): (usize, &u8)| format!("{file}-{number}-{at}");
                want.extend(files.iter().enumerate().map(page));
            }
            want.sort();
            prop_assert_eq!(made, want);
        }
    }

    #[test]
    fn a_window_is_a_block_unless_pages_are_sorted() {
        let read = |number| {
            let mut end = block(number, &[]);
            let pages = Pages::Batches(vec![Bytes::from_static(b"[]")]);
            end.what = BlockYield::Read { pages, sifted: Sifted::default(), wire_bytes: 1 };
            end
        };
        let mut unread = block(1, &[]);
        unread.what = BlockYield::Unread { kind: "gzip", reason: "cut off".to_owned() };
        let mut garbage = block(2, &[]);
        garbage.what = BlockYield::NoBlock("no fields".to_owned());
        let cutting = Cutting { batch_size: 50, by_file_pages: None };
        let made = windows(cutting, vec![read(3), unread, garbage, read(0)]);
        let batches: Vec<usize> = made.iter().map(|window| window.batches.len()).collect();
        assert_eq!(batches, [1, 0, 0, 1]);
        assert_eq!(made[1].unread.len(), 1);
        assert_eq!(made[2].counts.errors.get("index_line"), Some(&1));
    }
}
