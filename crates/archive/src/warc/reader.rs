//! Reads all records of a file, and the malformed parts between them.

use std::io::{self, Read};

use super::head::RecordHead;
use super::{FilePosition, Record, Tally, WarcFault};
use crate::format::ArchiveFormat;
use crate::gzip::InflateFault;
use crate::scanner::{RecordScanner, Scanned, ScannedRecord};

/// Memory limits of a reader.
#[derive(Debug, Clone, Copy)]
pub struct WarcLimits {
    /// The longest block that is returned whole; longer ones are cut to this length.
    pub max_block_bytes: usize,
}

impl Default for WarcLimits {
    fn default() -> WarcLimits {
        WarcLimits { max_block_bytes: 16 * 1024 * 1024 }
    }
}

/// An item of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum WarcItem<'r> {
    /// A record, possibly with a flaw.
    Record(Record<'r>),
    /// Bytes that are not a record.
    Malformed(Stretch),
}

/// Bytes that are not a record, up to the start of the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Their position.
    pub place: FilePosition,
    /// Their number: in the file if they are outside of gzip members, else inflated.
    pub bytes: u64,
    /// Why they are not a record.
    pub fault: StretchFault,
}

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StretchFault {
    /// The record is invalid.
    #[error(transparent)]
    Record(WarcFault),
    /// The gzip member is damaged.
    #[error(transparent)]
    Inflate(InflateFault),
    /// The first line is not that of an ARC record.
    #[error("the record does not begin with an ARC header line")]
    ArcLine,
    /// The first line of an ARC record is too long.
    #[error("the ARC header line is longer than {} bytes", crate::arc::head::MAX_LINE_BYTES)]
    ArcLineTooLong,
    /// They are between gzip members.
    #[error("the bytes are not part of a gzip member")]
    Stray,
}

impl Stretch {
    pub(crate) fn is_stray(&self) -> bool {
        self.fault == StretchFault::Stray
    }
}

/// Reads WARC files: plain, compressed record by record, or compressed as a whole.
///
/// Errors in the file never stop it. A truncated record is returned as far as it goes; after invalid bytes, it searches
/// for the next record.
///
/// ```
/// use fetchwell_archive::warc::{WarcItem, WarcLimits, WarcReader};
///
/// let file = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 2\r\n\r\nhi\r\n\r\nwhat?";
/// let mut reader = WarcReader::new(file.as_slice(), WarcLimits::default());
/// while let Some(item) = reader.next()? {
///     match item {
///         WarcItem::Record(record) => assert_eq!(record.block, b"hi"),
///         WarcItem::Malformed(stretch) => assert_eq!(stretch.bytes, 5),
///     }
/// }
/// assert_eq!((reader.tally().ok, reader.tally().malformed), (1, 1));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WarcReader<R> {
    scanner: RecordScanner<R>,
}

impl<R: Read> WarcReader<R> {
    pub fn new(read: R, limits: WarcLimits) -> WarcReader<R> {
        WarcReader { scanner: RecordScanner::new(read, limits, ArchiveFormat::Warc) }
    }

    /// The counts so far. The bytes of a record are counted when the next one is requested.
    pub fn tally(&self) -> Tally {
        self.scanner.tally
    }

    /// The next record or malformed part; `None` at the end. An error means that the file could not be read.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> io::Result<Option<WarcItem<'_>>> {
        let flaw = match self.scanner.advance()? {
            Some(Scanned::Record(flaw)) => flaw,
            Some(Scanned::Malformed(stretch)) => return Ok(Some(WarcItem::Malformed(stretch))),
            None => return Ok(None),
        };
        let ScannedRecord { place, head, block, tally } = self.scanner.record();
        let Ok(head) = RecordHead::parse(head) else { return Ok(None) };
        let record = Record { place, version: head.version, headers: head.headers, block, flaw };
        tally.count_record(record.flaw.as_ref(), record.kind().is_some());
        Ok(Some(WarcItem::Record(record)))
    }
}
