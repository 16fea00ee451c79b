//! Checks whether `--base` points to an archive.
//!
//! A wrong base answers every range with 404, a whole file or an error page. Each of these is an ordinary error of one
//! page, so a worker would acknowledge every batch and write nothing. Therefore, until the first record arrives,
//! batches without any record go back to the end of the queue, and after several of them the worker stops.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::archive::NO_ARCHIVE;

/// The worker stops when this many different batches had no record and none has arrived at all. Fewer prove nothing:
/// they may name files that this archive lacks.
const EMPTY_BATCHES: usize = 3;

/// What is known about the archive. All batches of a worker share it.
#[derive(Debug)]
pub struct BaseCheck {
    /// The archive, as given by the user.
    base: String,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    has_records: bool,
    /// The batches without any record, by name, with the number of attempts. After [`EMPTY_BATCHES`] the worker stops;
    /// only batches already in flight may still be added then.
    empty: BTreeMap<String, u32>,
}

/// What to do with a batch without any record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Other batches found records, so this one names files that are missing.
    Archive,
    /// Not known yet; `looks` counts the attempts at this batch.
    Unknown { looks: u32 },
    /// The worker stops for this reason.
    NoArchive(String),
}

impl BaseCheck {
    #[must_use]
    pub fn of(base: &impl ToString) -> BaseCheck {
        BaseCheck { base: base.to_string(), known: Mutex::default() }
    }

    /// A record arrived, so there is an archive.
    pub(super) fn record_came(&self) {
        self.known.lock().has_records = true;
    }

    /// Notes that a batch found no record, only responses such as `answer`.
    pub(super) fn batch_was_empty(&self, name: &str, answer: &str) -> Verdict {
        let mut known = self.known.lock();
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
}
