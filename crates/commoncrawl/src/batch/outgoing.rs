//! Batches to publish, and what to record once each is confirmed. Pure.

use std::collections::VecDeque;

use bytes::Bytes;
use fetchwell_engine::ports::batches::Batch;
use fetchwell_policy::digest::sha256_hex;
use serde_json::value::RawValue;

use super::checkpoint::{Checkpoint, Cut, Position};
use super::window::{CutBatch, Window};

#[derive(Debug)]
struct Step {
    /// The batch to confirm; a window may have none.
    batch: Option<Batch>,
    pages: u64,
    /// The position after this step.
    after: Position,
    /// The window that this step ends.
    ends: Option<Box<Window>>,
    /// Set if a limit cut the batch.
    cut: Option<Cut>,
}

/// The remaining steps, in order.
pub(super) struct Outgoing {
    limit: Option<u64>,
    /// Pages in all steps so far, confirmed or not.
    pages: u64,
    /// Where an earlier run stopped, until that window arrives.
    resume: Option<Position>,
    steps: VecDeque<Step>,
    /// Whether the limit is reached, so that no more windows are needed.
    pub(super) is_full: bool,
}

impl Outgoing {
    /// Continues from a checkpoint.
    pub(super) fn after(done: &Checkpoint, limit: Option<u64>) -> Outgoing {
        let resume = Some(done.position.clone());
        let is_full = limit.is_some_and(|limit| done.pages >= limit);
        Outgoing { limit, pages: done.pages, resume, steps: VecDeque::new(), is_full }
    }

    pub(super) fn bytes(&self) -> u64 {
        let bytes = |step: &Step| step.batch.as_ref().map_or(0, |batch| batch.body.len() as u64);
        self.steps.iter().map(bytes).sum()
    }

    pub(super) fn add(&mut self, mut window: Window) {
        let cut = std::mem::take(&mut window.batches);
        let pages_of: Vec<u64> = cut.iter().map(|batch| batch.pages).collect();
        let batches: Vec<Batch> = cut.into_iter().map(|cut| batch(cut.body)).collect();
        let pending = if self.limit.is_some() { window.pending.clone() } else { Vec::new() };
        let done = self.done_before(&window, &batches);
        let mut at = Position::at(window.starts_at);
        let behind = Position::at(window.ends_at);
        let last = batches.len().checked_sub(1);
        let mut ends = Some(Box::new(window));
        for (place, (batch, pages)) in batches.into_iter().zip(pages_of).enumerate() {
            let before = at.clone();
            at = at.behind(&batch.id);
            if place < done {
                continue;
            }
            if self.is_full {
                return;
            }
            let is_last = last == Some(place);
            let after = if is_last { behind.clone() } else { at.clone() };
            let step = Step { batch: Some(batch), pages, after, ends: None, cut: None };
            let mut step = self.within_limit(step, before);
            if is_last && step.cut.is_none() {
                step.ends = ends.take();
            }
            self.steps.push_back(step);
        }
        if let (Some(window), false) = (ends, self.is_full) {
            let after = behind.clone();
            let ends = Some(window);
            self.steps.push_back(Step { batch: None, pages: 0, after, ends, cut: None });
        }
        self.cut_pending(&pending, behind);
    }

    /// If the pages that fill no batch reach the limit, they become the last batch, cut at the limit: nothing more is
    /// read to fill it.
    fn cut_pending(&mut self, pending: &[String], after: Position) {
        let Some(limit) = self.limit else { return };
        let room = limit.saturating_sub(self.pages);
        let within = usize::try_from(room).ok().and_then(|room| pending.get(..room));
        let Some(pages) = within.filter(|_| !self.is_full) else { return };
        let batch = Some(batch(CutBatch::of(pages).body));
        let cut = Some(Cut { limit, pages: room });
        self.is_full = true;
        self.steps.push_back(Step { batch, pages: 0, after, ends: None, cut });
    }

    /// The number of batches of this window that an earlier run published; 0 if the window would now produce other
    /// batches.
    fn done_before(&mut self, window: &Window, batches: &[Batch]) -> usize {
        let Some(resume) = self.resume.take() else { return 0 };
        let mut at = Position::at(window.starts_at);
        for batch in batches.iter().take(resume.batches) {
            at = at.behind(&batch.id);
        }
        if at == resume { resume.batches } else { 0 }
    }

    /// A batch that exceeds the limit is cut there and becomes the last one.
    fn within_limit(&mut self, mut step: Step, before: Position) -> Step {
        let Some(limit) = self.limit else { return step };
        let room = limit.saturating_sub(self.pages);
        self.is_full = step.pages >= room;
        if step.pages > room {
            step.batch = step.batch.map(|whole| shortened(&whole, room));
            step.cut = Some(Cut { limit, pages: room });
            (step.pages, step.after) = (0, before);
        }
        self.pages += step.pages;
        step
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn has_batches(&self) -> bool {
        self.steps.iter().any(|step| step.batch.is_some())
    }

    /// The next batches to publish together, at most `most`.
    pub(super) fn next(&self, most: usize) -> Vec<Batch> {
        let steps = self.steps.iter().take(self.together(most));
        steps.filter_map(|step| step.batch.clone()).collect()
    }

    /// Records that the batches of [`Outgoing::next`] were confirmed.
    pub(super) fn confirm(&mut self, most: usize, checkpoint: &mut Checkpoint) {
        for step in self.steps.drain(..self.together(most)) {
            checkpoint.position = step.after;
            checkpoint.batches += u64::from(step.batch.is_some());
            checkpoint.pages += step.pages;
            checkpoint.cut = step.cut;
            let Some(window) = step.ends else { continue };
            checkpoint.counts.add(&window.counts);
            checkpoint.pending = window.pending;
            for (block, reason) in &window.unread {
                let line = block.line.as_ref().map_or("", String::as_str);
                checkpoint.note_unread(line, reason);
            }
        }
    }

    /// The number of steps that contain at most `most` batches.
    fn together(&self, most: usize) -> usize {
        let mut batches = 0;
        let fits = |step: &&Step| {
            batches += usize::from(step.batch.is_some());
            batches <= most
        };
        self.steps.iter().take_while(fits).count()
    }
}

/// The ID is the hash of the content, so a batch that is made again has the same one.
fn batch(body: Bytes) -> Batch {
    Batch { id: sha256_hex(&body), body }
}

/// The first pages of a batch, unchanged.
fn shortened(whole: &Batch, pages: u64) -> Batch {
    let elements: Vec<&RawValue> = serde_json::from_slice(&whole.body).unwrap_or_default();
    let pages = usize::try_from(pages).unwrap_or(usize::MAX);
    let elements: Vec<&&RawValue> = elements.iter().take(pages).collect();
    batch(serde_json::to_vec(&elements).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use fetchwell_archive::cdxj::Sifted;
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::block::{BlockEnd, BlockYield, IndexBlock, Pages};
    use super::super::checkpoint::ACROSS_BLOCKS;
    use super::super::window::{Cutting, Windows};
    use super::*;

    /// A window with so many pages, two a batch.
    fn window(number: u64, pages: u64) -> Window {
        let page = |at: u64| format!("\"{number}-{at}\"");
        let pages_of: Vec<String> = (0..pages).map(page).collect();
        let mut window = Window {
            starts_at: number * 10,
            ends_at: number * 10 + 10,
            batches: pages_of.chunks(2).map(CutBatch::of).collect(),
            ..Window::default()
        };
        window.counts.wanted = pages;
        window
    }

    fn pages_of(batches: &[Batch]) -> Vec<String> {
        let read = |batch: &Batch| serde_json::from_slice::<Vec<String>>(&batch.body).unwrap();
        batches.iter().flat_map(read).collect()
    }

    /// The windows of blocks with so many pages, from where a checkpoint stopped.
    fn windows_after(done: &Checkpoint, pages: &[u64]) -> Vec<Window> {
        let numbers = (0..).zip(pages).map(|(number, pages)| (number, *pages));
        let left = numbers.filter(|(number, _)| number * 10 >= done.position.index_offset);
        if !done.is_across_blocks() {
            return left.map(|(number, pages)| window(number, pages)).collect();
        }
        let cutting = Cutting { batch_size: 2, by_file_pages: None, across_windows: true };
        let mut windows = Windows::after(done, cutting);
        let read = |(place, (number, pages)): (u64, (u64, u64))| {
            let json = (0..pages).map(|page| format!("\"{number}-{page}\""));
            let sifted = Sifted { wanted: pages, ..Sifted::default() };
            let pages = Pages::InOrder(json.collect());
            let block = IndexBlock {
                number: place,
                starts_at: number * 10,
                ends_at: number * 10 + 10,
                line: Ok(String::new()),
            };
            BlockEnd { block, what: BlockYield::Read { pages, sifted, wire_bytes: 1 } }
        };
        let mut made: Vec<Window> =
            (0..).zip(left).map(read).flat_map(|end| windows.take(end)).collect();
        made.extend(windows.close_last());
        made
    }

    /// Nothing is done yet.
    fn nothing_done(across_blocks: bool) -> Checkpoint {
        let selection = json!({ACROSS_BLOCKS: across_blocks});
        Checkpoint { selection, ..Checkpoint::default() }
    }

    /// Publishes windows from a checkpoint on, and stops after so many calls.
    fn run(
        checkpoint: &mut Checkpoint,
        pages: &[u64],
        limit: Option<u64>,
        most: usize,
        calls: usize,
    ) -> Vec<Batch> {
        let mut outgoing = Outgoing::after(checkpoint, limit);
        for window in windows_after(checkpoint, pages) {
            if !outgoing.is_full {
                outgoing.add(window);
            }
        }
        let mut published = Vec::new();
        for _ in 0..calls {
            if outgoing.is_empty() {
                break;
            }
            published.extend(outgoing.next(most));
            outgoing.confirm(most, checkpoint);
        }
        published
    }

    proptest! {
        #[test]
        fn stopped_anywhere_each_batch_is_published_once_and_in_order(
            pages in prop::collection::vec(0u64..8, 1..10),
            calls in prop::collection::vec(1usize..4, 1..12),
            most in 1usize..4,
            across: bool,
        ) {
            let whole = run(&mut nothing_done(across), &pages, None, most, usize::MAX);
            let mut checkpoint = nothing_done(across);
            let mut published = Vec::new();
            for calls in calls {
                published.extend(run(&mut checkpoint, &pages, None, most, calls));
            }
            published.extend(run(&mut checkpoint, &pages, None, most, usize::MAX));
            prop_assert_eq!(&published, &whole);
            let is_full = |batch: &Batch| pages_of(std::slice::from_ref(batch)).len() == 2;
            let all_but_the_last = whole.split_last().map_or(&[][..], |(_, others)| others);
            prop_assert!(!across || all_but_the_last.iter().all(is_full));
            prop_assert!(checkpoint.pending.is_empty());
            prop_assert_eq!(checkpoint.pages, pages.iter().sum::<u64>());
            prop_assert_eq!(checkpoint.batches, whole.len() as u64);
            prop_assert_eq!(checkpoint.counts.wanted, checkpoint.pages);
            prop_assert_eq!(checkpoint.position, Position::at(pages.len() as u64 * 10));
        }

        #[test]
        fn a_limit_is_kept_to_the_page(
            pages in prop::collection::vec(0u64..8, 1..10),
            limit in 1u64..40,
            raised_by in 1u64..40,
            across: bool,
        ) {
            let all = pages_of(&run(&mut nothing_done(across), &pages, None, 3, usize::MAX));
            let mut checkpoint = nothing_done(across);
            let first = run(&mut checkpoint, &pages, Some(limit), 3, usize::MAX);
            let within = all.len().min(limit as usize);
            prop_assert_eq!(&pages_of(&first)[..], &all[..within]);
            prop_assert_eq!(checkpoint.pages_published(), within as u64);
            let cut = checkpoint.cut.map_or(0, |cut| cut.pages) as usize;
            let more = run(&mut checkpoint, &pages, Some(limit + raised_by), 3, usize::MAX);
            let further = all.len().min((limit + raised_by) as usize);
            prop_assert_eq!(&pages_of(&more)[..], &all[within - cut..further], "a cut one comes whole");
        }
    }

    #[test]
    fn a_limit_that_is_reached_before_a_batch_is_full_ends_the_reading() {
        let mut checkpoint = nothing_done(true);
        let mut outgoing = Outgoing::after(&checkpoint, Some(1));
        let windows = windows_after(&checkpoint, &[1, 0, 0, 7]);
        let mut read = 0;
        for window in windows {
            if !outgoing.is_full {
                outgoing.add(window);
                read += 1;
            }
        }
        assert_eq!((read, pages_of(&outgoing.next(9))), (1, vec!["0-0".to_owned()]));
        outgoing.confirm(9, &mut checkpoint);
        assert_eq!((checkpoint.pages, checkpoint.pages_published()), (0, 1));
        assert_eq!((checkpoint.pending.len(), checkpoint.position), (1, Position::at(10)));
    }

    #[test]
    fn a_window_that_is_made_otherwise_is_published_from_its_beginning() {
        let mut checkpoint = Checkpoint::default();
        let published = run(&mut checkpoint, &[6], None, 1, 2);
        assert_eq!((published.len(), checkpoint.position.batches), (2, 2));
        // A block of the window could not be read the first time.
        let mut outgoing = Outgoing::after(&checkpoint, None);
        let mut other = window(0, 8);
        other.batches.rotate_left(1);
        outgoing.add(other);
        assert_eq!(outgoing.next(9).len(), 4);
    }
}
