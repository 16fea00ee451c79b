//! Results on their way to the store.

use fetchwell_policy::time::Time;

use crate::ports::finish::Finished;
use crate::ports::job::LeaseId;

/// The part of the byte budget that the pages of one batch may hold, unless it is a single page.
const MOST_BATCH_BYTES: usize = 16 << 20;

/// Results that are not in the store yet. One batch is stored at a time; the next one collects meanwhile.
pub(super) struct Outbox<R> {
    ready: Vec<Finished<R>>,
    /// The number of pages that are ready or being stored.
    pages: usize,
    /// The batch that is being stored.
    storing: Option<Storing>,
    /// No batch is stored before this.
    not_before: Time,
    /// How many of the first entries are stored one at a time, because one of them was too large for their batch.
    singly: usize,
    /// How many of the first entries may already be in the store, because the answer was lost.
    unanswered: usize,
    /// The store does not even accept leases that are handed back, and no retry can change that.
    is_refused: bool,
}

/// What happens while a batch is being stored.
#[derive(Default)]
struct Storing {
    /// How many of its results may already be in the store.
    unanswered: usize,
    /// The jobs that were handed out since.
    handed_out: Vec<LeaseId>,
    /// This instance lost its leases.
    is_lost: bool,
}

impl<R> Outbox<R> {
    pub(super) fn new(now: Time) -> Outbox<R> {
        Outbox {
            ready: Vec::new(),
            pages: 0,
            storing: None,
            not_before: now,
            singly: 0,
            unanswered: 0,
            is_refused: false,
        }
    }

    pub(super) fn push(&mut self, finished: Finished<R>) {
        self.pages += usize::from(finished.is_page());
        self.ready.push(finished);
    }

    /// The number of results that wait for the next batch.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Whether nothing waits and nothing is being stored.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.storing.is_none()
    }

    /// The number of pages that are not in the store yet.
    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    /// Whether the store may already have some of the results, because its answer was lost. While it has, no job is
    /// handed out, so that no result is stored for a newer lease than its own.
    pub(super) fn has_unanswered(&self) -> bool {
        self.unanswered + self.storing.as_ref().map_or(0, |storing| storing.unanswered) > 0
    }

    /// Whether the store failed a moment ago and is not retried yet.
    pub(super) fn is_resting(&self, now: Time) -> bool {
        now < self.not_before
    }

    /// When the next batch may be stored; `None` if there is none, or one is being stored.
    pub(super) fn next_due(&self) -> Option<Time> {
        (self.storing.is_none() && !self.ready.is_empty()).then_some(self.not_before)
    }

    /// Begins the next batch, if it is due.
    pub(super) fn begin(&mut self, now: Time, most: usize) -> Option<Vec<Finished<R>>> {
        let is_due = self.next_due().is_some_and(|at| at <= now);
        if !is_due || self.is_refused {
            return None;
        }
        let many = self.batch_size(most);
        let unanswered = self.unanswered.min(many);
        self.unanswered -= unanswered;
        self.storing = Some(Storing { unanswered, ..Storing::default() });
        Some(self.ready.drain(..many).collect())
    }

    /// The size of the next batch. It is limited, because a sink may hold a second copy of it in its own format.
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

    /// A batch of `many` results is in the store.
    pub(super) fn stored(&mut self, many: usize) {
        self.storing = None;
        self.singly = self.singly.saturating_sub(many);
    }

    /// A result of a batch is in the store, or no longer belongs there.
    pub(super) fn settled(&mut self, finished: &Finished<R>) {
        self.pages -= usize::from(finished.is_page());
    }

    /// Puts a batch back, to be stored again at `not_before` or later.
    pub(super) fn put_back(&mut self, batch: Vec<Finished<R>>, not_before: Time) {
        let storing = self.storing.take().unwrap_or_default();
        if storing.is_lost {
            self.pages -= batch.iter().filter(|finished| finished.is_page()).count();
            return;
        }
        self.unanswered += storing.unanswered;
        self.not_before = not_before;
        self.ready.splice(0..0, batch);
    }

    /// Puts back a batch whose answer was lost. Returns the results that must be in the store, because their jobs were
    /// handed out again.
    pub(super) fn put_back_unanswered(
        &mut self,
        batch: Vec<Finished<R>>,
        not_before: Time,
    ) -> Vec<Finished<R>> {
        let storing = self.storing.get_or_insert_default();
        let is_stored = |finished: &Finished<R>| {
            !storing.is_lost && storing.handed_out.contains(&finished.lease.id)
        };
        let (stored, batch): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_stored);
        storing.unanswered = batch.len();
        self.put_back(batch, not_before);
        stored
    }

    /// A job was handed out. This instance held its lease, so the store can hand it out again only after storing the
    /// earlier result, even though the answer was lost. That result is removed and returned: storing it again would end
    /// the new lease.
    pub(super) fn on_handed_out(&mut self, job: LeaseId) -> Option<Finished<R>> {
        if let Some(storing) = &mut self.storing {
            storing.handed_out.push(job);
        }
        let mut unanswered = self.ready.iter().take(self.unanswered);
        let at = unanswered.position(|finished| finished.lease.id == job)?;
        self.unanswered -= 1;
        self.singly -= usize::from(at < self.singly);
        Some(self.ready.remove(at))
    }

    /// Puts a batch back, to be stored one result at a time.
    pub(super) fn put_back_singly(&mut self, batch: Vec<Finished<R>>, now: Time) {
        // A result that was stored alone is already counted, unless it was the only one of its batch.
        self.singly = self.singly.max(batch.len());
        self.put_back(batch, now);
    }

    /// Stops storing for good.
    pub(super) fn refuse(&mut self) {
        self.is_refused = true;
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Drops what waits, because this instance lost its leases.
    pub(super) fn forget_all(&mut self) {
        self.pages -= self.ready.drain(..).filter(Finished::is_page).count();
        self.singly = 0;
        self.unanswered = 0;
        if let Some(storing) = &mut self.storing {
            storing.is_lost = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Share;
    use crate::ports::finish::Settlement;
    use crate::ports::job::{Job, Lane, Lease};
    use crate::web::Phases;

    const NOW: Time = Time::EPOCH;
    const MOST: usize = 10;

    fn outbox_of(count: LeaseId) -> Outbox<()> {
        let mut outbox = Outbox::new(NOW);
        for id in 1..=count {
            let url = "http://a.test/".to_owned();
            let payload = Vec::new();
            let job = Job { url, site: None, lane: Lane::default(), payload, deadline: None };
            let history = Default::default();
            outbox.push(Finished {
                lease: Lease { id, job, history, interruptions: 0, accepted_at: NOW },
                records: Vec::new(),
                settlement: Settlement::Done,
                phases: Phases::default(),
                share: Share::none(),
            });
        }
        outbox
    }

    #[test]
    fn a_store_that_fails_meanwhile_does_not_end_the_storing_one_at_a_time() {
        let mut outbox = outbox_of(3);
        let batch = outbox.begin(NOW, MOST).unwrap();
        assert_eq!(batch.len(), 3);
        outbox.put_back_singly(batch, NOW);
        for _ in 0..5 {
            let batch = outbox.begin(NOW, MOST).unwrap();
            assert_eq!(batch.len(), 1, "its store is away");
            outbox.put_back(batch, NOW);
        }
        for left in [2, 1, 0] {
            let batch = outbox.begin(NOW, MOST).unwrap();
            assert_eq!((batch.len(), outbox.waiting()), (1, left));
            outbox.stored(batch.len());
        }
        assert!(outbox.is_empty());
        assert_eq!(outbox.singly, 0, "the next go in batches again");
    }

    #[test]
    fn one_that_was_too_large_and_has_changed_goes_alone_once_more() {
        let mut outbox = outbox_of(2);
        let batch = outbox.begin(NOW, MOST).unwrap();
        outbox.put_back_singly(batch, NOW);
        let too_large = outbox.begin(NOW, MOST).unwrap();
        outbox.put_back_singly(too_large, NOW);
        for _ in 0..2 {
            let batch = outbox.begin(NOW, MOST).unwrap();
            assert_eq!(batch.len(), 1);
            outbox.stored(batch.len());
        }
        assert_eq!((outbox.singly, outbox.waiting()), (0, 0));
    }

    #[test]
    fn a_job_that_is_handed_out_again_confirms_its_unanswered_result() {
        let id = |finished: Finished<()>| finished.lease.id;
        let mut outbox = outbox_of(4);
        assert_eq!(outbox.on_handed_out(1).map(id), None, "it was never sent");
        let batch = outbox.begin(NOW, 3).unwrap();
        assert_eq!(outbox.on_handed_out(2).map(id), None, "its answer may still come");
        let stored = outbox.put_back_unanswered(batch, NOW);
        assert_eq!(stored.into_iter().map(id).collect::<Vec<_>>(), [2]);
        assert_eq!(outbox.on_handed_out(3).map(id), Some(3));
        assert_eq!(outbox.on_handed_out(4).map(id), None, "it was never sent");
        assert!(outbox.has_unanswered());
        let batch = outbox.begin(NOW, MOST).unwrap();
        assert!(outbox.has_unanswered(), "until it is answered");
        outbox.stored(batch.len());
        assert!(!outbox.has_unanswered());
        assert_eq!(batch.into_iter().map(id).collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn what_was_being_stored_when_the_leases_were_lost_confirms_nothing() {
        let mut outbox = outbox_of(2);
        let batch = outbox.begin(NOW, MOST).unwrap();
        outbox.forget_all();
        assert!(outbox.on_handed_out(1).is_none());
        assert!(outbox.put_back_unanswered(batch, NOW).is_empty());
        assert!(outbox.is_empty() && !outbox.has_unanswered());
        assert_eq!(outbox.pages(), 0);
    }

    #[test]
    fn one_batch_goes_at_a_time_and_none_before_its_time() {
        let mut outbox = outbox_of(2);
        let batch = outbox.begin(NOW, 1).unwrap();
        assert!(outbox.begin(NOW, 1).is_none() && outbox.next_due().is_none());
        let later = Time::from_secs(1);
        outbox.put_back(batch, later);
        assert!(outbox.begin(NOW, MOST).is_none() && outbox.is_resting(NOW));
        assert_eq!(outbox.next_due(), Some(later));
        assert_eq!(outbox.begin(later, MOST).map(|batch| batch.len()), Some(2));
    }
}
