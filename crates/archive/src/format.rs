//! How records of WARC and ARC files begin, and how to detect the format of a file.

use crate::arc::head as arc;
use crate::gzip::{MAGIC, members};
use crate::warc::head as warc;
use crate::warc::{StretchFault, blank_bytes};

/// Enough bytes to recognize the start of a record.
pub(crate) const START_BYTES: usize = 64;

/// How much of a compressed file is inflated to detect its format. The line of an ARC record must fit.
const DETECTION_BYTES: usize = 4 * 1024;

/// A format of web archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFormat {
    Warc,
    /// The format before WARC.
    Arc,
}

impl ArchiveFormat {
    /// The format of a file that begins with these bytes, compressed or not; `None` if it is not an archive. A few
    /// kilobytes are enough.
    #[must_use]
    pub fn detect(beginning: &[u8]) -> Option<ArchiveFormat> {
        if beginning.starts_with(&MAGIC) {
            return ArchiveFormat::of_content(&members::first_bytes::<DETECTION_BYTES>(beginning));
        }
        ArchiveFormat::of_content(beginning)
    }

    fn of_content(content: &[u8]) -> Option<ArchiveFormat> {
        let record = &content[blank_bytes(content)..];
        if warc::starts_record(record) {
            return Some(ArchiveFormat::Warc);
        }
        arc::begins_file(record).then_some(ArchiveFormat::Arc)
    }

    /// Whether the input begins like a record.
    pub(crate) fn starts_record(self, bytes: &[u8]) -> bool {
        match self {
            ArchiveFormat::Warc => warc::starts_record(bytes),
            ArchiveFormat::Arc => arc::starts_record(bytes),
        }
    }

    /// Whether the input is empty or ends within the first bytes of a record.
    pub(crate) fn is_truncated_start(self, bytes: &[u8]) -> bool {
        match self {
            ArchiveFormat::Warc => warc::is_truncated_start(bytes),
            ArchiveFormat::Arc => arc::is_truncated_start(bytes),
        }
    }

    /// The next line, after the first byte, that looks like the start of a record.
    pub(crate) fn next_start(self, bytes: &[u8]) -> Option<usize> {
        match self {
            ArchiveFormat::Warc => warc::next_start(bytes),
            ArchiveFormat::Arc => arc::next_head(bytes),
        }
    }

    /// The same, but so strict that the content of a page is not taken for a record.
    pub(crate) fn next_head(self, bytes: &[u8]) -> Option<usize> {
        match self {
            ArchiveFormat::Warc => warc::next_head(bytes),
            ArchiveFormat::Arc => arc::next_head(bytes),
        }
    }

    /// The longest line that [`next_start`](Self::next_start) recognizes.
    pub(crate) fn max_start_line_bytes(self) -> usize {
        match self {
            ArchiveFormat::Warc => warc::MAX_VERSION_LINE_BYTES,
            ArchiveFormat::Arc => arc::MAX_LINE_BYTES,
        }
    }

    /// The head of the record at the start of the input.
    pub(crate) fn measure_head(self, record: &[u8]) -> Result<HeadExtent, StretchFault> {
        match self {
            ArchiveFormat::Warc => warc::RecordHead::parse(record)
                .map(|head| HeadExtent { bytes: head.bytes, declared_bytes: head.declared_bytes })
                .map_err(StretchFault::Record),
            ArchiveFormat::Arc => arc::ArcHead::parse(record)
                .map(|head| HeadExtent { bytes: head.bytes, declared_bytes: head.declared_bytes }),
        }
    }
}

/// The length of a head, and of the block that it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadExtent {
    pub(crate) bytes: usize,
    pub(crate) declared_bytes: u64,
}
