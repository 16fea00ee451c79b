//! Counts of the records and bytes of a file.

use super::Flaw;
use super::reader::Stretch;
use crate::gzip::InflateFault;

/// Counts. Every record and every malformed part is in exactly one of the first four; every byte of the content is in
/// exactly one of the next three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Complete records.
    pub ok: u64,
    /// Records whose end is missing.
    pub truncated: u64,
    /// Malformed parts, and records whose gzip member is damaged.
    pub malformed: u64,
    /// Records of an unknown type.
    pub skipped: u64,
    /// Bytes of records, including their heads.
    pub record_bytes: u64,
    /// Bytes that are not part of a record.
    pub malformed_bytes: u64,
    /// Line breaks between records.
    pub padding_bytes: u64,
    /// Bytes outside of gzip members in a compressed file.
    pub stray_bytes: u64,
}

impl Tally {
    /// The number of records and malformed parts.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.ok + self.truncated + self.malformed + self.skipped
    }

    pub(crate) fn count_record(&mut self, flaw: Option<&Flaw>, is_known_kind: bool) {
        let count = match flaw {
            Some(
                Flaw::Cut { .. } | Flaw::TooLong { .. } | Flaw::Damaged(InflateFault::Truncated),
            ) => &mut self.truncated,
            Some(Flaw::Damaged(_)) => &mut self.malformed,
            None if !is_known_kind => &mut self.skipped,
            None => &mut self.ok,
        };
        *count += 1;
    }

    pub(crate) fn count_stretch(&mut self, stretch: &Stretch) {
        self.malformed += 1;
        if stretch.is_stray() {
            self.stray_bytes += stretch.bytes;
        } else {
            self.malformed_bytes += stretch.bytes;
        }
    }
}
