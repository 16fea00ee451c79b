//! The gzip members of a file, one by one, whatever became of some of them.
//!
//! Most are inflated at once, which is much faster than bit by bit. That needs their end, which the
//! file does not tell: the next member's beginning is looked for, and the size that stands before it
//! is tried. Where that fails, or the member is long, it is inflated bit by bit.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use memchr::memmem;

use super::{
    InflateFault, LEAST_MEMBER_BYTES, MAGIC, WINDOW_BITS, ends_with_its_member, stated_size,
};
use crate::buffer::Buffer;
use crate::stored::Stored;

/// The longest member (compressed) that is inflated at once.
pub(crate) const MAX_AT_ONCE_BYTES: usize = 8 * 1024 * 1024;

/// Beginnings of a next member that are tried; any three bytes may look like one.
const MAX_GUESSES: usize = 3;

/// What is inflated at a time when it goes bit by bit.
const STREAM_BYTES: usize = 64 * 1024;

/// Enough of a member to inflate its first words.
const PEEK_BYTES: usize = 4 * 1024;

/// Bytes of broken members that may be gone through a second time. Whole members give them back, so
/// that a file made of nothing but broken ones costs no more than its length.
const MAX_REWORK_BYTES: usize = 16 * 1024 * 1024;

/// What the file has next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// A member.
    Member,
    /// Bytes that are no member.
    Stray {
        /// How many.
        bytes: u64,
    },
    /// Nothing.
    End,
}

/// What became of the member under way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// There may be more.
    More,
    /// It is whole, or has a fault.
    Ended(Option<InflateFault>),
}

pub(crate) struct Members {
    whole: Decompressor,
    magic: memmem::Finder<'static>,
    stream: Option<Stream>,
    rework_bytes: usize,
}

/// A member that is inflated bit by bit.
struct Stream {
    inflate: Decompress,
    /// How much of the window it has taken.
    taken: usize,
    /// Whether its beginning is no more in the window.
    is_long: bool,
}

impl Members {
    pub(crate) fn new() -> Members {
        Members {
            whole: Decompressor::new(),
            magic: memmem::Finder::new(&MAGIC),
            stream: None,
            rework_bytes: MAX_REWORK_BYTES,
        }
    }

    /// Looks what is next. Stray bytes are passed over.
    pub(crate) fn begin<R: Read>(&self, file: &mut Stored<R>) -> io::Result<Begun> {
        let next = file.at_least(MAGIC.len())?;
        if next.is_empty() {
            return Ok(Begun::End);
        }
        if next.starts_with(&MAGIC) {
            return Ok(Begun::Member);
        }
        Ok(Begun::Stray { bytes: self.pass_over(file, 0)? })
    }

    /// Inflates some of the member that has begun.
    pub(crate) fn pull<R: Read>(
        &mut self,
        file: &mut Stored<R>,
        content: &mut Buffer,
    ) -> io::Result<Pulled> {
        if self.stream.is_none() {
            if self.at_once(file, content)? {
                return Ok(Pulled::Ended(None));
            }
            let inflate = Decompress::new_gzip(WINDOW_BITS);
            self.stream = Some(Stream { inflate, taken: 0, is_long: false });
        }
        let Some(stream) = &mut self.stream else { return Ok(Pulled::More) };
        let fault = match stream.pull(file, content)? {
            Pulled::More => return Ok(Pulled::More),
            Pulled::Ended(fault) => fault,
        };
        self.leave(file, fault.is_some())?;
        Ok(Pulled::Ended(fault))
    }

    /// Whether a member is next that begins with something else than a record: it goes on with
    /// what the one before it left unfinished. (Blank lines may be part of that.)
    pub(crate) fn is_continued<R: Read>(&self, file: &mut Stored<R>) -> io::Result<bool> {
        let next = file.at_least(PEEK_BYTES)?;
        Ok(next.starts_with(&MAGIC) && !first_words(next).starts_with(b"WARC/"))
    }

    fn at_once<R: Read>(&mut self, file: &mut Stored<R>, content: &mut Buffer) -> io::Result<bool> {
        let mut from = LEAST_MEMBER_BYTES;
        for _ in 0..MAX_GUESSES {
            let Some(end) = self.next_magic(file, from)? else { return Ok(false) };
            let member = &file.bytes()[..end];
            if let Some(size) = stated_size(member)
                && self.fits(member, size, content)
            {
                content.filled(size);
                file.consume(end);
                self.rework_bytes = MAX_REWORK_BYTES.min(self.rework_bytes + end);
                return Ok(true);
            }
            from = end + 1;
        }
        Ok(false)
    }

    /// Where the next member may begin, or the file ends; none where that is too far away.
    fn next_magic<R: Read>(
        &self,
        file: &mut Stored<R>,
        mut from: usize,
    ) -> io::Result<Option<usize>> {
        loop {
            let window = file.bytes();
            let found = window.get(from..).and_then(|rest| self.magic.find(rest));
            if let Some(found) = found {
                return Ok(Some(from + found));
            }
            let known = window.len();
            if known >= MAX_AT_ONCE_BYTES {
                return Ok(None);
            }
            if !file.more()? {
                return Ok((known >= from).then_some(known));
            }
            // A beginning may lie across the end of what was known.
            from = from.max((known + 1).saturating_sub(MAGIC.len()));
        }
    }

    /// Whether these bytes are exactly one member of this size; then its content is in the room of
    /// the buffer.
    fn fits(&mut self, member: &[u8], size: usize, content: &mut Buffer) -> bool {
        let Some(room) = content.room(size).get_mut(..size) else { return false };
        self.whole.gzip_decompress(member, room) == Ok(size) && ends_with_its_member(member)
    }

    /// Goes to what follows the member under way.
    fn leave<R: Read>(&mut self, file: &mut Stored<R>, is_broken: bool) -> io::Result<()> {
        let Some(stream) = self.stream.take() else { return Ok(()) };
        if !is_broken {
            file.consume(stream.taken);
            return Ok(());
        }
        // What was inflated may have run over the beginning of the next member.
        let is_affordable = !stream.is_long && stream.taken <= self.rework_bytes;
        if is_affordable {
            self.rework_bytes -= stream.taken;
        }
        let from = if is_affordable { 1 } else { stream.taken };
        self.pass_over(file, from).map(drop)
    }

    /// Passes over bytes, at least `from`, up to a member that begins with a record. Returns how
    /// many they were.
    fn pass_over<R: Read>(&self, file: &mut Stored<R>, mut from: usize) -> io::Result<u64> {
        let began = file.offset();
        loop {
            let window = file.bytes();
            let found = window.get(from..).and_then(|rest| self.magic.find(rest));
            if let Some(found) = found {
                file.consume(from + found);
                if begins_with_record(file.at_least(PEEK_BYTES)?) {
                    return Ok(file.offset() - began);
                }
                from = 1;
                continue;
            }
            // A beginning may lie across the end of what is known.
            file.consume((window.len() + 1).saturating_sub(MAGIC.len()).max(from));
            from = 0;
            if !file.more()? {
                file.consume(MAGIC.len());
                return Ok(file.offset() - began);
            }
        }
    }
}

impl Stream {
    fn pull<R: Read>(&mut self, file: &mut Stored<R>, content: &mut Buffer) -> io::Result<Pulled> {
        loop {
            let input = file.bytes().get(self.taken..).unwrap_or_default();
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let room = content.room(STREAM_BYTES);
            let status = self.inflate.decompress(input, room, FlushDecompress::None);
            let taken = usize::try_from(self.inflate.total_in() - before.0).unwrap_or(0);
            let given = usize::try_from(self.inflate.total_out() - before.1).unwrap_or(0);
            self.taken += taken;
            content.filled(given);
            match status {
                Ok(Status::StreamEnd) => return Ok(Pulled::Ended(None)),
                Err(error) => {
                    return Ok(Pulled::Ended(Some(InflateFault::Corrupt(error.into()))));
                }
                Ok(_) if given > 0 => return Ok(Pulled::More),
                Ok(_) if taken > 0 => {}
                Ok(_) => {
                    if !self.read_on(file)? {
                        return Ok(Pulled::Ended(Some(InflateFault::Truncated)));
                    }
                }
            }
        }
    }

    /// Gets more input, and gives up the member's beginning when the window is full of it.
    fn read_on<R: Read>(&mut self, file: &mut Stored<R>) -> io::Result<bool> {
        if file.bytes().len() >= MAX_AT_ONCE_BYTES {
            file.consume(self.taken);
            self.taken = 0;
            self.is_long = true;
        }
        file.more()
    }
}

/// Whether a member begins here that begins with a WARC record, be it behind blank lines.
pub(crate) fn begins_with_record(bytes: &[u8]) -> bool {
    let words = first_words(bytes);
    let blank = words.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    words[blank..].starts_with(b"WARC/")
}

/// What a member begins with, as far as it can be inflated; the rest is zeros.
fn first_words(bytes: &[u8]) -> [u8; 64] {
    let mut words = [0; 64];
    let mut inflate = Decompress::new_gzip(WINDOW_BITS);
    // What is broken further on is salvaged up to there.
    drop(inflate.decompress(bytes, &mut words, FlushDecompress::None));
    words
}
