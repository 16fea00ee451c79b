//! What a file came to, record by record and byte by byte.

use super::reader::Stretch;
use super::{Flaw, Record};
use crate::gzip::InflateFault;

/// Counts. Every record is in exactly one of the first four, and so is every stretch that is no
/// record; every byte of what the file holds is in exactly one of the next three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records that are whole.
    pub ok: u64,
    /// Records whose end is missing.
    pub truncated: u64,
    /// Stretches that are no record, and records whose gzip member is damaged.
    pub malformed: u64,
    /// Records of a type that is not known.
    pub skipped: u64,
    /// Bytes of records, heads included.
    pub record_bytes: u64,
    /// Bytes that are no record.
    pub malformed_bytes: u64,
    /// Line ends between records.
    pub padding_bytes: u64,
    /// Bytes of the file that are in no gzip member, where others are.
    pub stray_bytes: u64,
}

impl Tally {
    /// Records and stretches together.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.ok + self.truncated + self.malformed + self.skipped
    }

    pub(super) fn count_record(&mut self, record: &Record<'_>) {
        let count = match &record.flaw {
            Some(
                Flaw::Cut { .. } | Flaw::TooLong { .. } | Flaw::Damaged(InflateFault::Truncated),
            ) => &mut self.truncated,
            Some(Flaw::Damaged(_)) => &mut self.malformed,
            None if record.kind().is_none() => &mut self.skipped,
            None => &mut self.ok,
        };
        *count += 1;
    }

    pub(super) fn count_stretch(&mut self, stretch: &Stretch) {
        self.malformed += 1;
        if stretch.is_stray() {
            self.stray_bytes += stretch.bytes;
        } else {
            self.malformed_bytes += stretch.bytes;
        }
    }
}
