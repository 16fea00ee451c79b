//! Blocks arrive in any order; their pages are batched in the order of `cluster.idx`.
//!
//! A window is what is cut into batches at once: one block, or with `--by-file` as many consecutive blocks as hold a
//! given number of pages. Pages that fill no batch are carried over to the next window, so that all batches but the
//! last are full. The checkpoint records these pages: a run that starts again at a window's first line with them makes
//! the same batches with the same IDs.

use std::collections::BTreeMap;
use std::mem::take;

use bytes::Bytes;
use tracing::warn;

use super::block::{BlockEnd, BlockYield, IndexBlock, PageList, Pages, PlacedPage};
use super::checkpoint::Checkpoint;
use super::counts::Counts;

/// The number of malformed lines of a block that are logged; all are counted.
const MALFORMED_LINES_NAMED: usize = 3;

/// How pages are cut into batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutting {
    pub(super) batch_size: usize,
    /// With `--by-file`, a window ends with the block that brings it to this many pages.
    pub(super) by_file_pages: Option<usize>,
    /// Whether batches are filled across windows. Checkpoints of earlier versions are finished without this, so that
    /// their batches keep their IDs.
    pub(super) across_windows: bool,
}

/// A complete window.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Its offset in `cluster.idx`.
    pub(super) starts_at: u64,
    /// The offset of its end.
    pub(super) ends_at: u64,
    pub(super) batches: Vec<CutBatch>,
    /// The pages carried over to the next window, as JSON.
    pub(super) pending: Vec<String>,
    pub(super) counts: Counts,
    pub(super) unread: Vec<(IndexBlock, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutBatch {
    pub(super) body: Bytes,
    pub(super) pages: u64,
}

/// Orders blocks and builds windows.
pub(super) struct Windows {
    cutting: Cutting,
    /// The number of blocks that are in windows, which is also the number of the first block that is not.
    pub(super) next: u64,
    /// The offset of the end of the last block in a window.
    ends_at: u64,
    /// Blocks that arrived before their turn.
    early: BTreeMap<u64, BlockEnd>,
    open: Option<Window>,
    /// The pages of the open window: those of its one block, or with `--by-file` those of several.
    in_order: PageList,
    placed: Vec<PlacedPage>,
    /// Pages carried over from earlier windows.
    pending: Vec<String>,
}

impl Windows {
    /// Continues from a checkpoint.
    pub(super) fn after(done: &Checkpoint, cutting: Cutting) -> Windows {
        Windows {
            cutting,
            next: 0,
            ends_at: done.position.index_offset,
            early: BTreeMap::new(),
            open: None,
            in_order: PageList::default(),
            placed: Vec::new(),
            pending: done.pending.clone(),
        }
    }

    /// Takes a block and returns the windows that are now complete. A block that comes again is ignored.
    pub(super) fn take(&mut self, end: BlockEnd) -> Vec<Window> {
        if end.block.number >= self.next {
            self.early.insert(end.block.number, end);
        }
        let mut whole = Vec::new();
        while let Some(end) = self.early.remove(&self.next) {
            self.next += 1;
            self.add(end);
            let is_whole = self.cutting.by_file_pages.is_none_or(|most| self.placed.len() >= most);
            if is_whole && let Some(window) = self.open.take() {
                whole.push(self.close(window, !self.cutting.across_windows));
            }
        }
        whole
    }

    /// The last window, after the last block: no page is carried over.
    pub(super) fn close_last(&mut self) -> Option<Window> {
        let rest = Window { starts_at: self.ends_at, ends_at: self.ends_at, ..Window::default() };
        let rest = (!self.pending.is_empty()).then_some(rest);
        let last = self.open.take().or(rest)?;
        Some(self.close(last, true))
    }

    /// Cuts the pages of a window into batches; with `to_the_end`, including an incomplete last one.
    fn close(&mut self, mut window: Window, to_the_end: bool) -> Window {
        let earlier = take(&mut self.pending);
        let in_order = take(&mut self.in_order);
        let mut placed = take(&mut self.placed);
        // So that the pages of a batch are close together in the archive.
        placed.sort();
        let own = in_order.iter().chain(placed.iter().map(|page| page.json.as_slice()));
        let pages: Vec<&[u8]> = earlier.iter().map(String::as_bytes).chain(own).collect();
        let batch_size = self.cutting.batch_size.max(1);
        let rest = if to_the_end { 0 } else { pages.len() % batch_size };
        let (cut, pending) = pages.split_at(pages.len() - rest);
        window.batches = cut.chunks(batch_size).map(CutBatch::of).collect();
        self.pending = pending.iter().map(|page| String::from_utf8_lossy(page).into()).collect();
        window.pending = self.pending.clone();
        window
    }

    fn add(&mut self, end: BlockEnd) {
        let BlockEnd { block, what } = end;
        let begin = || Window { starts_at: block.starts_at, ..Window::default() };
        let window = self.open.get_or_insert_with(begin);
        window.ends_at = block.ends_at;
        self.ends_at = block.ends_at;
        match what {
            BlockYield::Read { pages, sifted, wire_bytes } => {
                let named = sifted.first_malformed.iter().take(MALFORMED_LINES_NAMED);
                for line in named.clone() {
                    warn!("{}: skipped: {}", block.place_of(line), line.fault);
                }
                let more = sifted.malformed - named.len() as u64;
                if more > 0 {
                    warn!("skipped {more} more lines of that block");
                }
                window.counts.add_block(&sifted, wire_bytes);
                match pages {
                    Pages::InOrder(pages) => self.in_order = pages,
                    Pages::Placed(pages) => self.placed.extend(pages),
                }
            }
            BlockYield::NoBlock(fault) => {
                warn!("cluster.idx at byte {}: skipped: {fault}", block.starts_at);
                window.counts.add_error("index_line", 1);
            }
            BlockYield::Unread { kind, reason } => {
                let line = block.line.as_ref().map_or("", String::as_str);
                warn!("cannot read the block {line:?}: {reason}");
                window.counts.add_error(kind, 1);
                window.unread.push((block, reason));
            }
        }
    }
}

impl CutBatch {
    pub(super) fn of<P: AsRef<[u8]>>(pages: &[P]) -> CutBatch {
        let bytes = pages.iter().map(|page| page.as_ref().len() + 1).sum::<usize>();
        let mut body = Vec::with_capacity(bytes + 1);
        for page in pages {
            body.push(if body.is_empty() { b'[' } else { b',' });
            body.extend_from_slice(page.as_ref());
        }
        body.push(b']');
        CutBatch { body: body.into(), pages: pages.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_archive::cdxj::Sifted;
    use proptest::prelude::*;

    use super::*;

    const BY_FILE: Cutting =
        Cutting { batch_size: 50, by_file_pages: Some(10), across_windows: true };
    const IN_ORDER: Cutting = Cutting { by_file_pages: None, ..BY_FILE };

    /// A block with pages in these files.
    fn block(number: u64, files: &[u8], cutting: Cutting) -> BlockEnd {
        let json = |(at, file): (usize, &u8)| format!("\"{file}-{number}-{at}\"").into_bytes();
        let pages = match cutting.by_file_pages {
            None => Pages::InOrder(files.iter().enumerate().map(json).collect()),
            Some(_) => {
                let place = |(at, file): (usize, &u8)| PlacedPage {
                    file: file.to_string(),
                    offset: number,
                    json: json((at, file)),
                };
                Pages::Placed(files.iter().enumerate().map(place).collect())
            }
        };
        let sifted = Sifted { wanted: files.len() as u64, ..Sifted::default() };
        let line = Ok(String::new());
        let block = IndexBlock { number, starts_at: number * 10, ends_at: number * 10 + 10, line };
        BlockEnd { block, what: BlockYield::Read { pages, sifted, wire_bytes: 1 } }
    }

    fn windows(cutting: Cutting, blocks: Vec<BlockEnd>) -> Vec<Window> {
        let mut windows = Windows::after(&Checkpoint::default(), cutting);
        let mut whole: Vec<Window> =
            blocks.into_iter().flat_map(|block| windows.take(block)).collect();
        whole.extend(windows.close_last());
        whole
    }

    fn pages_of(batch: &CutBatch) -> Vec<String> {
        let pages: Vec<String> = serde_json::from_slice(&batch.body).unwrap();
        assert_eq!(batch.pages, pages.len() as u64);
        pages
    }

    proptest! {
        #[test]
        fn whatever_the_order_the_windows_are_the_same_and_nothing_is_lost(
            files in prop::collection::vec(prop::collection::vec(0u8..5, 0..6), 1..20),
            batch_size in 1usize..5,
            by_file_pages in prop::option::of(1usize..12),
            across_windows: bool,
            swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20),
        ) {
            let cutting = Cutting { batch_size, by_file_pages, across_windows };
            let blocks: Vec<BlockEnd> =
                (0..).zip(&files).map(|(number, files)| block(number, files, cutting)).collect();
            let mut shuffled = blocks.clone();
            for (a, b) in swaps {
                shuffled.swap(a.index(files.len()), b.index(files.len()));
            }
            shuffled.push(blocks[0].clone());
            let in_order = windows(cutting, blocks);
            prop_assert_eq!(&windows(cutting, shuffled), &in_order);
            prop_assert_eq!(in_order.first().map(|window| window.starts_at), Some(0));
            prop_assert!(in_order.windows(2).all(|two| two[0].ends_at == two[1].starts_at));
            let batches: Vec<Vec<String>> =
                in_order.iter().flat_map(|window| window.batches.iter().map(pages_of)).collect();
            prop_assert!(batches.iter().all(|pages| (1..=batch_size).contains(&pages.len())));
            let mut made = batches.concat();
            if across_windows {
                let all_but_the_last = batches.split_last().map_or(&[][..], |(_, others)| others);
                prop_assert!(all_but_the_last.iter().all(|pages| pages.len() == batch_size));
            } else if by_file_pages.is_some() {
                for window in &in_order {
                    let pages = window.batches.iter().flat_map(pages_of);
                    let files: Vec<char> = pages.filter_map(|page| page.chars().next()).collect();
                    prop_assert!(files.is_sorted(), "by file");
                }
            }
            let mut want: Vec<String> = Vec::new();
            for (number, files) in files.iter().enumerate() {
                let page = |(at, file): (usize, &u8)| format!("{file}-{number}-{at}");
                want.extend(files.iter().enumerate().map(page));
            }
            if by_file_pages.is_some() {
                made.sort();
                want.sort();
            }
            prop_assert_eq!(made, want);
            prop_assert!(in_order.last().is_none_or(|last| last.pending.is_empty()));
        }
    }

    #[test]
    fn a_window_is_a_block_unless_pages_are_sorted() {
        let read = |number| block(number, &[1], IN_ORDER);
        let mut unread = read(1);
        unread.what = BlockYield::Unread { kind: "gzip", reason: "cut off".to_owned() };
        let mut garbage = read(2);
        garbage.what = BlockYield::NoBlock("no fields".to_owned());
        let blocks = vec![read(3), unread, garbage, read(0)];
        let earlier_version = Cutting { across_windows: false, ..IN_ORDER };
        let made = windows(earlier_version, blocks.clone());
        let batches: Vec<usize> = made.iter().map(|window| window.batches.len()).collect();
        assert_eq!(batches, [1, 0, 0, 1]);
        assert_eq!(made[1].unread.len(), 1);
        assert_eq!(made[2].counts.errors.get("index_line"), Some(&1));
        let made = windows(IN_ORDER, blocks);
        let batches: Vec<usize> = made.iter().map(|window| window.batches.len()).collect();
        assert_eq!(batches, [0, 0, 0, 0, 1], "one that is not full comes at the end");
        let pending: Vec<usize> = made.iter().map(|window| window.pending.len()).collect();
        assert_eq!(pending, [1, 1, 1, 2, 0]);
        assert_eq!((made[4].starts_at, made[4].ends_at), (40, 40));
    }

    #[test]
    fn the_last_batch_of_sorted_pages_has_what_is_left() {
        let blocks = (0..3).map(|number| block(number, &[2, 1], BY_FILE)).collect();
        let made = windows(BY_FILE, blocks);
        assert_eq!(made.len(), 1);
        assert_eq!(pages_of(&made[0].batches[0])[..2], ["1-0-1", "1-1-1"]);
    }
}
