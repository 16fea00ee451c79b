//! Batches on their way to the queue, and what is so once each is confirmed. Pure.

use std::collections::VecDeque;

use bytes::Bytes;
use fetchwell_engine::batches::Batch;
use serde_json::value::RawValue;

use super::checkpoint::{Checkpoint, Cut, Position};
use super::window::Window;
use crate::doors::notation::sha256_hex;

/// A step of a batcher.
#[derive(Debug)]
struct Step {
    /// What is to be confirmed; a window may have nothing.
    batch: Option<Batch>,
    pages: u64,
    /// Where we are then.
    after: Position,
    /// The window that ends with it.
    ends: Option<Box<Window>>,
    /// Whether a limit cut it.
    cut: Option<Cut>,
}

/// The steps that are still to be taken, in order.
pub(super) struct Outgoing {
    batch_size: usize,
    limit: Option<u64>,
    /// Pages in all steps so far, taken or not.
    pages: u64,
    /// Where an earlier run stopped, until its window has come.
    resume: Option<Position>,
    steps: VecDeque<Step>,
    is_full: bool,
}

impl Outgoing {
    /// Goes on where a checkpoint stopped.
    pub(super) fn after(done: &Checkpoint, batch_size: usize, limit: Option<u64>) -> Outgoing {
        let resume = Some(done.position.clone());
        let is_full = limit.is_some_and(|limit| done.pages >= limit);
        Outgoing { batch_size, limit, pages: done.pages, resume, steps: VecDeque::new(), is_full }
    }

    /// Whether the limit is reached: no more windows are wanted.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |step: &Step| step.batch.as_ref().map_or(0, |batch| batch.body.len() as u64);
        self.steps.iter().map(bytes).sum()
    }

    /// Adds the batches of a window.
    pub(super) fn add(&mut self, mut window: Window) {
        let bodies = std::mem::take(&mut window.batches);
        let batches: Vec<Batch> = bodies.into_iter().map(batch).collect();
        let done = self.done_before(&window, &batches);
        let mut at = Position::at(window.starts_at);
        let (mut left, behind) = (window.counts.wanted, Position::at(window.ends_at));
        let last = batches.len().checked_sub(1);
        let mut ends = Some(Box::new(window));
        for (place, batch) in batches.into_iter().enumerate() {
            let pages = left.min(self.batch_size as u64);
            left -= pages;
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
            let ends = Some(window);
            self.steps.push_back(Step { batch: None, pages: 0, after: behind, ends, cut: None });
        }
    }

    /// Batches that an earlier run published of this window; none where it would make others now.
    fn done_before(&mut self, window: &Window, batches: &[Batch]) -> usize {
        let Some(resume) = self.resume.take() else { return 0 };
        let mut at = Position::at(window.starts_at);
        for batch in batches.iter().take(resume.batches) {
            at = at.behind(&batch.id);
        }
        if at == resume { resume.batches } else { 0 }
    }

    /// A batch that goes over the limit is cut there, and is the last one.
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

    /// Whether nothing is left to do.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether something is left to be published.
    pub(super) fn has_batches(&self) -> bool {
        self.steps.iter().any(|step| step.batch.is_some())
    }

    /// The next batches that go together, at most so many.
    pub(super) fn next(&self, most: usize) -> Vec<Batch> {
        let steps = self.steps.iter().take(self.together(most));
        steps.filter_map(|step| step.batch.clone()).collect()
    }

    /// What [`Outgoing::next`] gave is confirmed.
    pub(super) fn confirm(&mut self, most: usize, checkpoint: &mut Checkpoint) {
        for step in self.steps.drain(..self.together(most)) {
            checkpoint.position = step.after;
            checkpoint.batches += u64::from(step.batch.is_some());
            checkpoint.pages += step.pages;
            checkpoint.cut = step.cut;
            let Some(window) = step.ends else { continue };
            checkpoint.counts.add(&window.counts);
            for (block, reason) in &window.unread {
                let line = block.line.as_ref().map_or("", String::as_str);
                checkpoint.note_unread(line, reason);
            }
        }
    }

    /// How many steps have so many batches.
    fn together(&self, most: usize) -> usize {
        let mut batches = 0;
        let fits = |step: &&Step| {
            batches += usize::from(step.batch.is_some());
            batches <= most
        };
        self.steps.iter().take_while(fits).count()
    }
}

/// Its id is its content's, so that a batch that is made again has the same.
fn batch(body: Bytes) -> Batch {
    Batch { id: sha256_hex(&body), body }
}

/// The first pages of a batch, as they are written.
fn shortened(whole: &Batch, pages: u64) -> Batch {
    let elements: Vec<&RawValue> = serde_json::from_slice(&whole.body).unwrap_or_default();
    let pages = usize::try_from(pages).unwrap_or(usize::MAX);
    let elements: Vec<&&RawValue> = elements.iter().take(pages).collect();
    batch(serde_json::to_vec(&elements).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A window with so many pages, two a batch.
    fn window(number: u64, pages: u64) -> Window {
        let page = |at: u64| format!("\"{number}-{at}\"");
        let pages_of: Vec<String> = (0..pages).map(page).collect();
        let body = |pages: &[String]| Bytes::from(format!("[{}]", pages.join(",")));
        let mut window = Window {
            starts_at: number * 10,
            ends_at: number * 10 + 10,
            batches: pages_of.chunks(2).map(body).collect(),
            ..Window::default()
        };
        window.counts.wanted = pages;
        window
    }

    fn pages_of(batches: &[Batch]) -> Vec<String> {
        let read = |batch: &Batch| serde_json::from_slice::<Vec<String>>(&batch.body).unwrap();
        batches.iter().flat_map(read).collect()
    }

    /// Publishes windows from a checkpoint on, and stops after so many calls.
    fn run(
        checkpoint: &mut Checkpoint,
        pages: &[u64],
        limit: Option<u64>,
        most: usize,
        calls: usize,
    ) -> Vec<Batch> {
        let mut outgoing = Outgoing::after(checkpoint, 2, limit);
        let windows = (0..).zip(pages).map(|(number, pages)| window(number, *pages));
        for window in windows.filter(|window| window.starts_at >= checkpoint.position.index_offset)
        {
            if !outgoing.is_full() {
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
        ) {
            let whole = run(&mut Checkpoint::default(), &pages, None, most, usize::MAX);
            let mut checkpoint = Checkpoint::default();
            let mut published = Vec::new();
            for calls in calls {
                published.extend(run(&mut checkpoint, &pages, None, most, calls));
            }
            published.extend(run(&mut checkpoint, &pages, None, most, usize::MAX));
            prop_assert_eq!(&published, &whole);
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
        ) {
            let all = pages_of(&run(&mut Checkpoint::default(), &pages, None, 3, usize::MAX));
            let mut checkpoint = Checkpoint::default();
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
    fn a_window_that_is_made_otherwise_is_published_from_its_beginning() {
        let mut checkpoint = Checkpoint::default();
        let published = run(&mut checkpoint, &[6], None, 1, 2);
        assert_eq!((published.len(), checkpoint.position.batches), (2, 2));
        // A block of the window could not be read the first time.
        let mut outgoing = Outgoing::after(&checkpoint, 2, None);
        let mut other = window(0, 8);
        other.batches.rotate_left(1);
        outgoing.add(other);
        assert_eq!(outgoing.next(9).len(), 4);
    }
}
