//! What a file holds, whether it is compressed or not, as segments of bytes.
//!
//! A plain file is one segment. In a compressed one each gzip member is one, unless it goes on with
//! what the member before it left unfinished.

use std::io::{self, Read};

use super::Place;
use super::head::{BEGINNING, next_beginning};
use crate::buffer::Buffer;
use crate::gzip::members::{Begun, Members, Pulled, begins_with_record};
use crate::gzip::{InflateFault, MAGIC};
use crate::stored::Stored;

/// How far into a file that begins with neither a record nor gzip either is looked for.
const MAX_PROLOGUE_BYTES: usize = 1024 * 1024;

/// The least bound of the window on a compressed file: a member that is inflated at once fits.
const LEAST_WINDOW_BYTES: usize = 16 * 1024 * 1024;

/// What a source has next.
pub(super) enum Next {
    /// A segment, whose bytes can be filled in.
    Segment,
    /// Bytes that are in no gzip member.
    Stray {
        /// Where they are.
        place: Place,
        /// How many.
        bytes: u64,
    },
    /// Nothing.
    End,
}

pub(super) struct Source<R> {
    file: Stored<R>,
    members: Members,
    /// What was inflated; not used where the file is plain.
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

/// The segment under way.
#[derive(Default)]
struct Segment {
    place: Place,
    /// Whether more may come.
    is_open: bool,
    fault: Option<InflateFault>,
}

impl<R: Read> Source<R> {
    /// A source that has up to `max_bytes` in memory at a time. Of a compressed file it has some
    /// more as it is stored: see [`MAX_AT_ONCE_BYTES`](crate::gzip::members::MAX_AT_ONCE_BYTES).
    pub(super) fn new(read: R, max_bytes: usize) -> Source<R> {
        Source {
            file: Stored::new(read, max_bytes.max(LEAST_WINDOW_BYTES)),
            members: Members::new(),
            inflated: Buffer::new(max_bytes),
            framing: Framing::Unknown,
            segment: Segment::default(),
        }
    }

    /// The bytes of the segment that were filled in and not used up.
    pub(super) fn bytes(&self) -> &[u8] {
        match self.framing {
            Framing::Gzip => self.inflated.bytes(),
            Framing::Plain | Framing::Unknown => self.file.bytes(),
        }
    }

    /// Where those bytes begin.
    pub(super) fn place(&self) -> Place {
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
                self.segment.place.file_offset = self.file.offset();
            }
        }
    }

    /// Fills in bytes of this segment until there are so many. Returns whether there are.
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

    /// Goes on in the next member as part of this segment, if it does not begin with a record.
    pub(super) fn join(&mut self) -> io::Result<bool> {
        let is_whole = self.segment.fault.is_none() && !self.segment.is_open;
        let goes_on = self.framing == Framing::Gzip
            && is_whole
            && self.members.is_continued(&mut self.file)?;
        self.segment.is_open |= goes_on;
        Ok(goes_on)
    }

    /// Whether nothing more can be filled in.
    pub(super) fn is_ended(&self) -> bool {
        !self.segment.is_open
    }

    /// Why the segment ended too soon; told once.
    pub(super) fn take_fault(&mut self) -> Option<InflateFault> {
        if self.segment.is_open { None } else { self.segment.fault.take() }
    }

    /// Goes to the next segment. All bytes of this one must be used up.
    pub(super) fn next_segment(&mut self) -> io::Result<Next> {
        match self.framing {
            Framing::Plain => return Ok(Next::End),
            Framing::Gzip => {}
            Framing::Unknown => self.framing = self.find_framing()?,
        }
        let place = Place { file_offset: self.file.offset(), member_offset: 0 };
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
        let bytes = self.file.at_least(BEGINNING.len())?;
        if bytes.starts_with(&MAGIC) {
            return Ok(Framing::Gzip);
        }
        if bytes.starts_with(BEGINNING) {
            return Ok(Framing::Plain);
        }
        let bytes = self.file.at_least(MAX_PROLOGUE_BYTES)?;
        if bytes[super::blank_bytes(bytes)..].starts_with(BEGINNING) {
            return Ok(Framing::Plain);
        }
        let plain = next_beginning(bytes).unwrap_or(usize::MAX);
        let mut members = memchr::memmem::find_iter(bytes, &MAGIC).take_while(|at| *at < plain);
        let is_gzip = members.any(|at| begins_with_record(&bytes[at..]));
        Ok(if is_gzip { Framing::Gzip } else { Framing::Plain })
    }
}
