//! Whether the archive is where the settings say it is.
//!
//! A wrong base answers every range with 404, a whole file or an error page. Each of these is an ordinary fault of
//! one page, and a worker that took them for that would acknowledge every batch and write nothing. So until the
//! first record has come, batches that find nothing go back to the end of the queue, and once several of them have
//! found nothing the worker stops.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};

use crate::archive::NO_ARCHIVE;

/// The worker stops when this many different batches have found nothing and no record has come. Fewer batches
/// prove nothing: they may name files that this archive lacks.
const EMPTY_BATCHES: usize = 3;

/// What is known of the archive. All batches of a worker share it.
#[derive(Debug)]
pub struct BaseCheck {
    /// Where the archive is, as it was typed.
    base: String,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    has_records: bool,
    /// The batches that found nothing, by name, and how often each was tried. After [`EMPTY_BATCHES`] the worker stops;
    /// only batches that are still under way then may be added.
    empty: BTreeMap<String, u32>,
}

/// What to do with a batch that found nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Others found records: the batch names files that are missing.
    Archive,
    /// Not known yet; this batch was tried this many times.
    Unknown { looks: u32 },
    /// The worker stops, for this reason.
    NoArchive(String),
}

impl BaseCheck {
    /// Nothing is known yet of the archive at this place.
    #[must_use]
    pub fn of(base: &impl ToString) -> BaseCheck {
        BaseCheck { base: base.to_string(), known: Mutex::default() }
    }

    /// A record came: there is an archive.
    pub(super) fn record_came(&self) {
        self.known().has_records = true;
    }

    /// Records that this batch found no record, only answers such as `answer`.
    pub(super) fn batch_was_empty(&self, name: &str, answer: &str) -> Verdict {
        let mut known = self.known();
        if known.has_records {
            return Verdict::Archive;
        }
        let looks = known.empty.entry(name.to_owned()).or_default();
        *looks = looks.saturating_add(1);
        let looks = *looks;
        if known.empty.len() < EMPTY_BATCHES {
            return Verdict::Unknown { looks };
        }
        let base = &self.base;
        Verdict::NoArchive(format!(
            "{NO_ARCHIVE}{base}: the first {EMPTY_BATCHES} batches found no record there, and the last answer was \
             {answer}. Check --base (commoncrawl.base): it must contain the files named in the batches, such as \
             crawl-data/…/….warc.gz. No batch was acknowledged; all of them are back on the queue"
        ))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}
