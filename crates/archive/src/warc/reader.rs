//! Reads all records of a file, and the malformed parts between them.

use std::io::{self, Read};

use super::head::{MAX_VERSION_LINE_BYTES, RecordHead, next_head, next_start};
use super::source::{Next, Source};
use super::{FilePosition, Flaw, Record, Tally, WarcFault, blank_bytes};
use crate::gzip::InflateFault;
use crate::headers::MAX_HEAD_BYTES;
use crate::record_start::{is_truncated_start, starts_record};

/// How much of a head is read first; most heads are shorter.
const COMMON_HEAD_BYTES: usize = 4 * 1024;

/// How much is read after a block to see whether a record follows.
const TAIL_BYTES: usize = 64;

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
    /// They are between gzip members.
    #[error("the bytes are not part of a gzip member")]
    Stray,
}

impl Stretch {
    pub(super) fn is_stray(&self) -> bool {
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
    source: Source<R>,
    limits: WarcLimits,
    tally: Tally,
    /// The record that was returned last, which is still to be skipped.
    given: Extent,
}

/// The extent of a record, from the current position of the source.
#[derive(Clone, Copy, Default)]
struct Extent {
    head_bytes: usize,
    /// Bytes of the block in memory.
    block_bytes: usize,
    /// Bytes of the block after those.
    left_bytes: u64,
}

/// The result before anything is borrowed.
enum Found {
    Record(Extent, Option<Flaw>),
    Stretch(Stretch),
}

impl<R: Read> WarcReader<R> {
    pub fn new(read: R, limits: WarcLimits) -> WarcReader<R> {
        let max_bytes = limits.max_block_bytes + MAX_HEAD_BYTES + TAIL_BYTES;
        let source = Source::new(read, max_bytes);
        WarcReader { source, limits, tally: Tally::default(), given: Extent::default() }
    }

    /// The counts so far. The bytes of a record are counted when the next one is requested.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The next record or malformed part; `None` at the end. An error means that the file could not be read.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> io::Result<Option<WarcItem<'_>>> {
        self.pass_over_given()?;
        let (extent, flaw) = match self.find()? {
            Some(Found::Record(extent, flaw)) => (extent, flaw),
            Some(Found::Stretch(stretch)) => {
                self.tally.count_stretch(&stretch);
                return Ok(Some(WarcItem::Malformed(stretch)));
            }
            None => return Ok(None),
        };
        self.given = extent;
        let bytes = self.source.bytes();
        let Ok(head) = RecordHead::parse(bytes) else { return Ok(None) };
        let block = &bytes[extent.head_bytes..extent.head_bytes + extent.block_bytes];
        let place = self.source.place();
        let version = head.version;
        let headers = head.headers;
        let record = Record { place, version, headers, block, flaw };
        self.tally.count_record(&record);
        Ok(Some(WarcItem::Record(record)))
    }

    fn pass_over_given(&mut self) -> io::Result<()> {
        let given = std::mem::take(&mut self.given);
        let in_memory = given.head_bytes + given.block_bytes;
        self.source.consume(in_memory);
        self.tally.record_bytes += in_memory as u64;
        let mut left = given.left_bytes;
        while left > 0 && (self.source.fill(1)? || self.source.join()?) {
            let here = usize::try_from(left).unwrap_or(usize::MAX).min(self.source.bytes().len());
            self.source.consume(here);
            self.tally.record_bytes += here as u64;
            left -= here as u64;
        }
        Ok(())
    }

    fn find(&mut self) -> io::Result<Option<Found>> {
        loop {
            self.pass_over_blank()?;
            if !self.source.bytes().is_empty() {
                let place = self.source.place();
                return Ok(Some(match self.measure()? {
                    Ok((extent, flaw)) => Found::Record(extent, flaw),
                    Err(fault) => Found::Stretch(self.stretch(place, fault)?),
                }));
            }
            if let Some(fault) = self.source.take_fault() {
                let place = self.source.place();
                let fault = StretchFault::Inflate(fault);
                return Ok(Some(Found::Stretch(Stretch { place, bytes: 0, fault })));
            }
            match self.source.next_segment()? {
                Next::Segment => {}
                Next::Stray { place, bytes } => {
                    let fault = StretchFault::Stray;
                    return Ok(Some(Found::Stretch(Stretch { place, bytes, fault })));
                }
                Next::End => return Ok(None),
            }
        }
    }

    fn pass_over_blank(&mut self) -> io::Result<()> {
        while self.source.fill(1)? {
            let blank = blank_bytes(self.source.bytes());
            self.source.consume(blank);
            self.tally.padding_bytes += blank as u64;
            if !self.source.bytes().is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Measures the record at the current position.
    fn measure(&mut self) -> io::Result<Result<(Extent, Option<Flaw>), WarcFault>> {
        let (head_bytes, declared_bytes) = match self.head()? {
            Ok(head) => head,
            Err(fault) => return Ok(Err(fault)),
        };
        let max_bytes = self.limits.max_block_bytes;
        let wanted = usize::try_from(declared_bytes).unwrap_or(usize::MAX).min(max_bytes);
        let end = head_bytes + wanted;
        while !self.source.fill(end)? && self.source.join()? {}
        self.source.fill(end + TAIL_BYTES)?;
        let whole = Extent { head_bytes, block_bytes: wanted, left_bytes: 0 };
        let bytes = self.source.bytes();
        let is_there = bytes.len() >= end;
        if is_there && declared_bytes > wanted as u64 {
            let left_bytes = declared_bytes - wanted as u64;
            let flaw = Flaw::TooLong { declared_bytes, max_bytes };
            return Ok(Ok((Extent { left_bytes, ..whole }, Some(flaw))));
        }
        if is_there && is_followed_well(&bytes[end..]) {
            return Ok(Ok((whole, self.damage(end))));
        }
        let present = wanted.min(bytes.len() - head_bytes);
        let next = next_head(&bytes[head_bytes..]).filter(|next| *next < present);
        let Some(block_bytes) = next.or((!is_there).then_some(present)) else {
            // No record follows, but none begins earlier either, so the declared length counts.
            return Ok(Ok((whole, None)));
        };
        if block_bytes == present {
            // The error of the gzip member is the reason for the truncation, so it is not reported again.
            self.source.take_fault();
        }
        let flaw = Flaw::Cut { declared_bytes, present_bytes: block_bytes as u64 };
        Ok(Ok((Extent { block_bytes, ..whole }, Some(flaw))))
    }

    /// The length of the head at the current position, and the block length that it declares.
    fn head(&mut self) -> io::Result<Result<(usize, u64), WarcFault>> {
        let mut wanted = COMMON_HEAD_BYTES;
        loop {
            let may_have_more = self.source.fill(wanted)?;
            let head = RecordHead::parse(self.source.bytes())
                .map(|head| (head.bytes, head.declared_bytes));
            if head != Err(WarcFault::HeadCutOff) {
                return Ok(head);
            }
            if may_have_more {
                wanted = (wanted * 4).min(MAX_HEAD_BYTES + 1);
            } else if !self.source.join()? {
                return Ok(head);
            }
        }
    }

    /// The error of the gzip member that ends with the record.
    fn damage(&mut self, end: usize) -> Option<Flaw> {
        let rest = &self.source.bytes()[end..];
        let is_last = self.source.is_ended() && blank_bytes(rest) == rest.len();
        if is_last { self.source.take_fault().map(Flaw::Damaged) } else { None }
    }

    /// Skips invalid bytes up to a line that looks like the start of a record, or up to the end of the segment.
    fn stretch(&mut self, place: FilePosition, fault: WarcFault) -> io::Result<Stretch> {
        let mut bytes = 0;
        loop {
            let known = self.source.bytes();
            if let Some(start) = next_start(known) {
                self.source.consume(start);
                bytes += start as u64;
                return Ok(Stretch { place, bytes, fault: StretchFault::Record(fault) });
            }
            // A start may cross the end of what has been read.
            let passed = known.len().saturating_sub(MAX_VERSION_LINE_BYTES);
            let kept = known.len() - passed;
            self.source.consume(passed);
            bytes += passed as u64;
            if !self.source.fill(kept + 1)? {
                self.source.consume(kept);
                bytes += kept as u64;
                let inflate = self.source.take_fault().map(StretchFault::Inflate);
                let fault = inflate.unwrap_or(StretchFault::Record(fault));
                return Ok(Stretch { place, bytes, fault });
            }
        }
    }
}

/// Whether a block is followed by blank lines, and then by a record or the end.
fn is_followed_well(rest: &[u8]) -> bool {
    let next = &rest[blank_bytes(rest)..];
    starts_record(next) || is_truncated_start(next)
}
