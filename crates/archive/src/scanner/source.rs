//! The content of a file, compressed or not, as segments of bytes.
//!
//! A plain file is one segment. In a compressed file each gzip member is one, unless it continues what the previous
//! member left incomplete.

use std::io::{self, Read};

use crate::buffer::Buffer;
use crate::format::{ArchiveFormat, START_BYTES};
use crate::gzip::members::{Begun, Members, Pulled, begins_with_record};
use crate::gzip::{InflateFault, MAGIC};
use crate::stored::Stored;
use crate::warc::{FilePosition, blank_bytes};

/// How far a file that begins with neither a record nor gzip is searched for one of them.
const MAX_PROLOGUE_BYTES: usize = 1024 * 1024;

/// The minimum size of the window on a compressed file: a member that is inflated in one call must fit.
const LEAST_WINDOW_BYTES: usize = 16 * 1024 * 1024;

/// What comes next in a source.
pub(super) enum Next {
    /// A segment, whose bytes can be read with `fill`.
    Segment,
    /// Bytes outside of gzip members.
    Stray { place: FilePosition, bytes: u64 },
    /// The end.
    End,
}

pub(super) struct Source<R> {
    format: ArchiveFormat,
    file: Stored<R>,
    members: Members,
    /// The inflated bytes; not used for a plain file.
    inflated: Buffer,
    framing: Framing,
    segment: Segment,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Unknown,
    Plain,
    Gzip,
}

/// The current segment.
#[derive(Default)]
struct Segment {
    place: FilePosition,
    /// Whether there may be more bytes.
    is_open: bool,
    fault: Option<InflateFault>,
}

impl<R: Read> Source<R> {
    /// A source that keeps up to `max_bytes` in memory at a time. For a compressed file, it also keeps some of the
    /// stored bytes: see [`MAX_AT_ONCE_BYTES`](crate::gzip::members::MAX_AT_ONCE_BYTES).
    pub(super) fn new(read: R, max_bytes: usize, format: ArchiveFormat) -> Source<R> {
        Source {
            format,
            file: Stored::new(read, max_bytes.max(LEAST_WINDOW_BYTES)),
            members: Members::new(format),
            inflated: Buffer::new(max_bytes),
            framing: Framing::Unknown,
            segment: Segment::default(),
        }
    }

    /// The bytes of the segment that were read and not consumed yet.
    pub(super) fn bytes(&self) -> &[u8] {
        match self.framing {
            Framing::Gzip => self.inflated.bytes(),
            Framing::Plain | Framing::Unknown => self.file.bytes(),
        }
    }

    /// The position of those bytes.
    pub(super) fn place(&self) -> FilePosition {
        self.segment.place
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        match self.framing {
            Framing::Gzip => {
                self.inflated.consume(bytes);
                self.segment.place.member_offset += bytes as u64;
            }
            Framing::Plain | Framing::Unknown => {
                self.file.consume(bytes);
                self.segment.place.file_offset = self.file.offset;
            }
        }
    }

    /// Reads from this segment until there are this many bytes. Returns whether there are.
    pub(super) fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        while self.bytes().len() < bytes && self.segment.is_open {
            if self.framing == Framing::Plain {
                self.segment.is_open = self.file.more()?;
            } else if let Pulled::Ended(fault) =
                self.members.pull(&mut self.file, &mut self.inflated)?
            {
                self.segment.is_open = false;
                self.segment.fault = fault;
            }
        }
        Ok(self.bytes().len() >= bytes)
    }

    /// Continues this segment with the next member, if that does not begin with a record.
    pub(super) fn join(&mut self) -> io::Result<bool> {
        let is_whole = self.segment.fault.is_none() && !self.segment.is_open;
        let goes_on = self.framing == Framing::Gzip
            && is_whole
            && self.members.is_continued(&mut self.file)?;
        self.segment.is_open |= goes_on;
        Ok(goes_on)
    }

    /// Whether there is nothing more to read.
    pub(super) fn is_ended(&self) -> bool {
        !self.segment.is_open
    }

    /// Why the segment ended too early; returned only once.
    pub(super) fn take_fault(&mut self) -> Option<InflateFault> {
        if self.segment.is_open { None } else { self.segment.fault.take() }
    }

    /// Moves to the next segment. All bytes of this one must have been consumed.
    pub(super) fn next_segment(&mut self) -> io::Result<Next> {
        match self.framing {
            Framing::Plain => return Ok(Next::End),
            Framing::Gzip => {}
            Framing::Unknown => self.framing = self.find_framing()?,
        }
        let place = FilePosition { file_offset: self.file.offset, member_offset: 0 };
        if self.framing == Framing::Gzip {
            match self.members.begin(&mut self.file)? {
                Begun::Member => {}
                Begun::Stray { bytes } => return Ok(Next::Stray { place, bytes }),
                Begun::End => return Ok(Next::End),
            }
        }
        self.segment = Segment { place, is_open: true, fault: None };
        Ok(Next::Segment)
    }

    fn find_framing(&mut self) -> io::Result<Framing> {
        let bytes = self.file.at_least(START_BYTES)?;
        if bytes.starts_with(&MAGIC) {
            return Ok(Framing::Gzip);
        }
        if self.format.starts_record(bytes) {
            return Ok(Framing::Plain);
        }
        let bytes = self.file.at_least(MAX_PROLOGUE_BYTES)?;
        if self.format.starts_record(&bytes[blank_bytes(bytes)..]) {
            return Ok(Framing::Plain);
        }
        let plain = self.format.next_start(bytes).unwrap_or(usize::MAX);
        let mut members = memchr::memmem::find_iter(bytes, &MAGIC).take_while(|at| *at < plain);
        let is_gzip = members.any(|at| begins_with_record(&bytes[at..], self.format));
        Ok(if is_gzip { Framing::Gzip } else { Framing::Plain })
    }
}
