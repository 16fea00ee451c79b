//! Results on their way to the store.

use fetchwell_policy::time::Time;

use crate::ports::finish::Finished;

/// What the pages of one batch may hold of the byte budget, unless it is a single one.
const MOST_BATCH_BYTES: usize = 16 << 20;

/// What is done and not in the store yet. One batch is on its way at a time, and the next gathers meanwhile.
pub(super) struct Outbox<R> {
    ready: Vec<Finished<R>>,
    /// Pages that are ready or on their way.
    pages: usize,
    is_storing: bool,
    /// Nothing is handed over before this.
    not_before: Time,
    /// How many of the first entries go one at a time, because one of them was too large for their batch.
    singly: usize,
    /// The store refuses even to take leases back, and no retry can change that.
    is_refused: bool,
}

impl<R> Outbox<R> {
    pub(super) fn new(now: Time) -> Outbox<R> {
        Outbox {
            ready: Vec::new(),
            pages: 0,
            is_storing: false,
            not_before: now,
            singly: 0,
            is_refused: false,
        }
    }

    pub(super) fn push(&mut self, finished: Finished<R>) {
        self.pages += usize::from(finished.is_page());
        self.ready.push(finished);
    }

    /// How many wait for the next batch.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Whether nothing waits and nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && !self.is_storing
    }

    /// Pages that are here and not in the store yet.
    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    /// Whether the store failed a moment ago, and is not asked again yet.
    pub(super) fn is_resting(&self, now: Time) -> bool {
        now < self.not_before
    }

    /// When the next batch may go; `None`: there is none, or one is on its way.
    pub(super) fn next_due(&self) -> Option<Time> {
        (!self.is_storing && !self.ready.is_empty()).then_some(self.not_before)
    }

    /// Begins the next batch, if it is due.
    pub(super) fn begin(&mut self, now: Time, most: usize) -> Option<Vec<Finished<R>>> {
        let is_due = self.next_due().is_some_and(|at| at <= now);
        if !is_due || self.is_refused {
            return None;
        }
        self.is_storing = true;
        let many = self.batch_size(most);
        self.singly = self.singly.saturating_sub(many);
        Some(self.ready.drain(..many).collect())
    }

    /// How many go in the next batch: a sink may hold all of it a second time, in its own form.
    fn batch_size(&self, most: usize) -> usize {
        if self.singly > 0 {
            return 1;
        }
        let mut bytes = 0_usize;
        let fits = |finished: &&Finished<R>| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(finished.share.bytes());
            is_first || bytes <= MOST_BATCH_BYTES
        };
        self.ready.iter().take(most).take_while(fits).count()
    }

    /// The batch came back, stored or not.
    pub(super) fn ended(&mut self) {
        self.is_storing = false;
    }

    /// One of a batch is in the store, or does not belong there any more.
    pub(super) fn settled(&mut self, finished: &Finished<R>) {
        self.pages -= usize::from(finished.is_page());
    }

    /// The batch goes again, not before then.
    pub(super) fn put_back(&mut self, batch: Vec<Finished<R>>, not_before: Time) {
        self.not_before = not_before;
        self.ready.splice(0..0, batch);
    }

    /// The batch goes again, one at a time.
    pub(super) fn put_back_singly(&mut self, batch: Vec<Finished<R>>, now: Time) {
        self.singly += batch.len();
        self.put_back(batch, now);
    }

    /// Nothing more is handed over.
    pub(super) fn refuse(&mut self) {
        self.is_refused = true;
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// What waits is not ours any more.
    pub(super) fn forget_all(&mut self) {
        self.pages -= self.ready.drain(..).filter(Finished::is_page).count();
        self.singly = 0;
    }
}
