//! Finds the records of a file of either format, and the malformed parts between them.

mod source;

use std::io::{self, Read};

use memchr::memrchr;

use crate::format::{ArchiveFormat, HeadExtent};
use crate::headers::MAX_HEAD_BYTES;
use crate::warc::{
    FilePosition, Flaw, Stretch, StretchFault, Tally, WarcFault, WarcLimits, blank_bytes,
};
use source::{Next, Source};

/// How much of a head is read first; most heads are shorter.
const COMMON_HEAD_BYTES: usize = 4 * 1024;

/// How much is read after a block to see whether a record follows.
const TAIL_BYTES: usize = 64;

/// Reads a file record by record.
pub(crate) struct RecordScanner<R> {
    source: Source<R>,
    format: ArchiveFormat,
    limits: WarcLimits,
    pub(crate) tally: Tally,
    /// The record that was returned last, which is still to be skipped.
    given: Extent,
}

/// What was found.
pub(crate) enum Scanned {
    /// A record, which [`RecordScanner::record`] returns.
    Record(Option<Flaw>),
    Malformed(Stretch),
}

/// A record, and the counts in which its reader includes it.
pub(crate) struct ScannedRecord<'a> {
    pub(crate) place: FilePosition,
    pub(crate) head: &'a [u8],
    pub(crate) block: &'a [u8],
    pub(crate) tally: &'a mut Tally,
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

/// The result before anything is skipped.
enum Found {
    Record(Extent, Option<Flaw>),
    Stretch(Stretch),
}

impl<R: Read> RecordScanner<R> {
    pub(crate) fn new(read: R, limits: WarcLimits, format: ArchiveFormat) -> RecordScanner<R> {
        let max_bytes = limits.max_block_bytes + MAX_HEAD_BYTES + TAIL_BYTES;
        let source = Source::new(read, max_bytes, format);
        RecordScanner { source, format, limits, tally: Tally::default(), given: Extent::default() }
    }

    /// Moves to the next record or malformed part; `None` at the end. The caller counts the record.
    pub(crate) fn advance(&mut self) -> io::Result<Option<Scanned>> {
        self.pass_over_given()?;
        Ok(match self.find()? {
            Some(Found::Record(extent, flaw)) => {
                self.given = extent;
                Some(Scanned::Record(flaw))
            }
            Some(Found::Stretch(stretch)) => {
                self.tally.count_stretch(&stretch);
                Some(Scanned::Malformed(stretch))
            }
            None => None,
        })
    }

    /// The current record.
    pub(crate) fn record(&mut self) -> ScannedRecord<'_> {
        let (head, rest) = self.source.bytes().split_at(self.given.head_bytes);
        let block = &rest[..self.given.block_bytes];
        ScannedRecord { place: self.source.place(), head, block, tally: &mut self.tally }
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
    fn measure(&mut self) -> io::Result<Result<(Extent, Option<Flaw>), StretchFault>> {
        let HeadExtent { bytes: head_bytes, declared_bytes } = match self.head()? {
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
        if is_there && self.is_followed_well(&bytes[end..]) {
            return Ok(Ok((whole, self.damage(end))));
        }
        let present = wanted.min(bytes.len() - head_bytes);
        // A head that begins in the block may end after it. Searching further would take quadratic time.
        let head_reach = self.format.max_start_line_bytes() + TAIL_BYTES;
        let searched = bytes.len().min(head_bytes + present + head_reach);
        let next = self.format.next_head(&bytes[head_bytes..searched]);
        let next = next.filter(|next| *next < present);
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

    /// The head at the current position.
    fn head(&mut self) -> io::Result<Result<HeadExtent, StretchFault>> {
        let mut wanted = COMMON_HEAD_BYTES;
        loop {
            let may_have_more = self.source.fill(wanted)?;
            let head = self.format.measure_head(self.source.bytes());
            if head != Err(StretchFault::Record(WarcFault::HeadCutOff)) {
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
    fn stretch(&mut self, place: FilePosition, fault: StretchFault) -> io::Result<Stretch> {
        let mut bytes = 0;
        loop {
            let known = self.source.bytes();
            if let Some(start) = self.format.next_start(known) {
                self.source.consume(start);
                bytes += start as u64;
                return Ok(Stretch { place, bytes, fault });
            }
            // A start may cross the end of what has been read.
            let last_line = memrchr(b'\n', known).map_or(0, |line_end| known.len() - line_end);
            let kept = if last_line <= self.format.max_start_line_bytes() { last_line } else { 0 };
            let passed = known.len() - kept;
            self.source.consume(passed);
            bytes += passed as u64;
            if !self.source.fill(kept + 1)? {
                self.source.consume(kept);
                bytes += kept as u64;
                let inflate = self.source.take_fault().map(StretchFault::Inflate);
                let fault = inflate.unwrap_or(fault);
                return Ok(Stretch { place, bytes, fault });
            }
        }
    }

    /// Whether a block is followed by blank lines, and then by a record or the end.
    fn is_followed_well(&self, rest: &[u8]) -> bool {
        let next = &rest[blank_bytes(rest)..];
        self.format.starts_record(next) || self.format.is_truncated_start(next)
    }
}
