//! Limits how far reading may get ahead of publishing, in blocks and in bytes.
//!
//! Blocks arrive in any order, and one that is ahead of its turn waits in memory. A block usually has about 1 MiB but
//! may have up to 16 MiB, so a block that arrives while too much is waiting is postponed and read again later. The next
//! block in order is never postponed. Several blocks are inflated at once, so room is reserved before inflating, by the
//! size that a block states.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::Outcome;
use fetchwell_policy::retry::History;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::block::{BlockEnd, BlockYield, IndexBlock, most_bytes};

/// When a postponed block is read again.
const PUT_OFF: Duration = Duration::from_secs(1);

/// Shared by the reader and the publisher.
pub(super) struct Ahead {
    pub(super) news: Arc<Notify>,
    /// The maximum number of blocks that are in flight or out of order.
    max_blocks: u64,
    max_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of blocks that are in order.
    in_order: u64,
    outgoing_bytes: u64,
    /// Blocks ahead of their turn: by number, the size of their pages.
    early: BTreeMap<u64, u64>,
}

impl Ahead {
    pub(super) fn new(max_blocks: u64, max_bytes: u64) -> Ahead {
        Ahead { news: Arc::default(), max_blocks, max_bytes, state: Mutex::default() }
    }

    /// Whether another block may be requested after `read` blocks.
    pub(super) fn has_room(&self, read: u64) -> bool {
        let state = self.state.lock();
        read.saturating_sub(state.in_order) < self.max_blocks && state.bytes() < self.max_bytes
    }

    /// Records the progress of publishing.
    pub(super) fn advance(&self, in_order: u64, outgoing_bytes: u64) {
        let mut state = self.state.lock();
        state.early = state.early.split_off(&in_order);
        (state.in_order, state.outgoing_bytes) = (in_order, outgoing_bytes);
    }

    /// Reserves room for a block that has arrived. Returns false if there is none.
    fn admit(&self, number: u64, bytes: u64) -> bool {
        let mut state = self.state.lock();
        let fits = number <= state.in_order || state.bytes() + bytes <= self.max_bytes;
        if fits {
            state.early.insert(number, bytes);
        }
        fits
    }

    /// Records the actual size of an admitted block.
    fn note(&self, number: u64, bytes: u64) {
        if let Some(taken) = self.state.lock().early.get_mut(&number) {
            *taken = bytes;
        }
    }
}

impl State {
    fn bytes(&self) -> u64 {
        self.outgoing_bytes + self.early.values().sum::<u64>()
    }
}

/// The plan of a block, limited by what else is waiting.
pub(super) struct Bounded {
    inner: Box<dyn Plan<BlockEnd>>,
    ahead: Arc<Ahead>,
    /// `None` for a job that is not a block and so has no pages.
    number: Option<u64>,
    history: History,
}

impl Bounded {
    pub(super) fn new(inner: Box<dyn Plan<BlockEnd>>, ahead: Arc<Ahead>, lease: &Lease) -> Bounded {
        let block = serde_json::from_slice::<IndexBlock>(&lease.job.payload);
        let number = block.ok().map(|block| block.number);
        Bounded { inner, ahead, number, history: lease.history }
    }
}

impl Plan<BlockEnd> for Bounded {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<BlockEnd> {
        let answer = last.as_ref().and_then(|outcome| outcome.answer.as_ref());
        let (Some(answer), Some(number)) = (answer, self.number) else {
            return self.inner.step(last, moment);
        };
        if !self.ahead.admit(number, most_bytes(&answer.body) as u64) {
            let later = Settlement::retry(moment.now + PUT_OFF, self.history);
            return Step::Finish(Vec::new(), later);
        }
        let step = self.inner.step(last, moment);
        let bytes = match &step {
            Step::Finish(ends, _) => ends.iter().map(|end| end.what.bytes()).sum(),
            Step::Fetch(_) | Step::Halt(_) => 0,
        };
        self.ahead.note(number, bytes);
        step
    }
}

impl BlockYield {
    /// The approximate size of its pages in memory.
    fn bytes(&self) -> u64 {
        match self {
            BlockYield::Read { pages, .. } => pages.bytes(),
            BlockYield::NoBlock(_) | BlockYield::Unread { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_archive::cdxj::Sifted;
    use fetchwell_policy::outcome::FetchOutcome;
    use fetchwell_testkit::samples::{MOMENT, lease, outcome};

    use super::super::block::Pages;
    use super::*;

    /// A plan of a block of ten bytes that states as many, and whether it came to an end.
    fn is_taken(ahead: &Arc<Ahead>, number: u64) -> bool {
        let line = Ok(String::new());
        let block = IndexBlock { number, starts_at: 0, ends_at: 0, line };
        let payload = serde_json::to_string(&block).unwrap();
        struct Ten(IndexBlock);
        impl Plan<BlockEnd> for Ten {
            fn step(&mut self, _: Option<Outcome>, _: Moment) -> Step<BlockEnd> {
                let pages = Pages::InOrder([[b'x'; 10]].into_iter().collect());
                let what = BlockYield::Read { pages, sifted: Sifted::default(), wire_bytes: 1 };
                let end = BlockEnd { block: self.0.clone(), what };
                Step::Finish(vec![end], Settlement::Done)
            }
        }
        let lease = lease("", &payload);
        let mut plan = Bounded::new(Box::new(Ten(block)), ahead.clone(), &lease);
        let member = format!("{}\u{a}\0\0\0", "x".repeat(14));
        match plan.step(Some(outcome(FetchOutcome::Answered(206), &member)), MOMENT) {
            Step::Finish(ends, Settlement::Done) => ends.len() == 1,
            Step::Finish(ends, Settlement::Retry { at, .. }) => {
                assert!(ends.is_empty() && at > MOMENT.now);
                false
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_comes_early_is_put_off_while_much_waits_and_the_next_never_is() {
        let ahead = Arc::new(Ahead::new(8, 20));
        assert!(is_taken(&ahead, 3) && is_taken(&ahead, 5));
        assert!(!is_taken(&ahead, 2), "two early ones of ten bytes are all that fits");
        assert!(!ahead.has_room(6), "nor is more asked for");
        assert!(is_taken(&ahead, 0), "its turn has come");
        ahead.advance(1, 10);
        assert!(!is_taken(&ahead, 2));
        assert!(is_taken(&ahead, 1));
        ahead.advance(2, 0);
        assert!(is_taken(&ahead, 2));
        ahead.advance(4, 0);
        assert!(is_taken(&ahead, 4) && is_taken(&ahead, 4), "that it comes again counts once");
        assert!(!is_taken(&ahead, 6));
        ahead.advance(6, 0);
        assert!(ahead.has_room(13) && !ahead.has_room(14));
    }
}
