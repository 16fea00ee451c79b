//! Whether the archive is where the settings say it is.
//!
//! A wrong base answers every range with 404, a whole file or an error page. Each of these is an ordinary fault of
//! one page, and a worker that took them for that would acknowledge every batch and write nothing. So until the
//! first record has come, batches that find nothing of the kind are handed back; after a few of them the worker
//! stops.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The start of the error message when a worker stops because its base is wrong.
pub(in crate::doors::commoncrawl) const NO_ARCHIVE: &str = "no archive was found at ";

/// So many batches may find nothing before the first record. Several, since a single one may name files that its
/// archive does not have.
const EMPTY_BATCHES: usize = 3;

/// What is known of the archive. All batches of a worker share it.
#[derive(Debug)]
pub struct BaseCheck {
    /// Where the archive is, as it was typed.
    base: String,
    has_records: AtomicBool,
    empty_batches: AtomicUsize,
}

impl BaseCheck {
    /// Nothing is known yet of the archive at this place.
    #[must_use]
    pub fn of(base: &impl ToString) -> BaseCheck {
        let has_records = AtomicBool::new(false);
        let empty_batches = AtomicUsize::new(0);
        BaseCheck { base: base.to_string(), has_records, empty_batches }
    }

    /// A record came: there is an archive.
    pub(super) fn record_came(&self) {
        self.has_records.store(true, Ordering::Relaxed);
    }

    /// Whether a record has come so far.
    pub(super) fn has_records(&self) -> bool {
        self.has_records.load(Ordering::Relaxed)
    }

    /// A batch found nothing but `answer` and the like. Gives the reason to stop, if it is time for that.
    pub(super) fn batch_was_empty(&self, answer: &str) -> Option<String> {
        let empty = self.empty_batches.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let base = &self.base;
        (empty >= EMPTY_BATCHES).then(|| {
            format!(
                "{NO_ARCHIVE}{base}: the first batches found no record there, and the last answer was {answer}. \
                 Check --base (commoncrawl.base): it must have the files that batches name, such as \
                 crawl-data/…/….warc.gz. No batch was acknowledged: all are on the queue again"
            )
        })
    }
}
