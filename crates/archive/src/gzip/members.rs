//! The gzip members of a file, one by one, even if some are damaged.
//!
//! Most are inflated in one call, which is much faster than streaming. That requires the end of the member, which the
//! file does not state: the start of the next member is searched for, and the size before it is tried. If that fails,
//! or if the member is long, it is inflated by streaming.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use memchr::memmem;

use super::{
    InflateFault, LEAST_MEMBER_BYTES, MAGIC, WINDOW_BITS, ends_with_its_member, stated_size,
};
use crate::buffer::Buffer;
use crate::format::{ArchiveFormat, START_BYTES};
use crate::stored::Stored;
use crate::warc::blank_bytes;

/// The longest member (compressed) that is inflated in one call.
pub(crate) const MAX_AT_ONCE_BYTES: usize = 8 * 1024 * 1024;

/// How many possible starts of the next member are tried; any three bytes may look like one.
const MAX_GUESSES: usize = 3;

/// How much is inflated at a time when streaming.
const STREAM_BYTES: usize = 64 * 1024;

/// Enough of a member to inflate its first bytes.
const PEEK_BYTES: usize = 4 * 1024;

/// How many bytes of broken members may be read a second time. Complete members restore this allowance, so that a file
/// with nothing but broken ones costs no more than its length.
const MAX_REWORK_BYTES: usize = 16 * 1024 * 1024;

/// What comes next in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// A member.
    Member,
    /// Bytes that are not a member.
    Stray { bytes: u64 },
    /// The end of the file.
    End,
}

/// The state of the current member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// There may be more.
    More,
    /// It is complete, or has an error.
    Ended(Option<InflateFault>),
}

pub(crate) struct Members {
    format: ArchiveFormat,
    whole: Decompressor,
    magic: memmem::Finder<'static>,
    stream: Option<Stream>,
    rework_bytes: usize,
}

/// A member that is inflated by streaming.
struct Stream {
    inflate: Decompress,
    /// How much of the window it has consumed.
    taken: usize,
    /// Whether its start is no longer in the window.
    is_long: bool,
}

impl Members {
    pub(crate) fn new(format: ArchiveFormat) -> Members {
        Members {
            format,
            whole: Decompressor::new(),
            magic: memmem::Finder::new(&MAGIC),
            stream: None,
            rework_bytes: MAX_REWORK_BYTES,
        }
    }

    /// Determines what comes next. Stray bytes are skipped.
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

    /// Inflates some of the current member.
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

    /// Whether the next member does not begin with a record, so that it continues what the previous one left
    /// incomplete. (Blank lines may be part of that.)
    pub(crate) fn is_continued<R: Read>(&self, file: &mut Stored<R>) -> io::Result<bool> {
        let next = file.at_least(PEEK_BYTES)?;
        Ok(next.starts_with(&MAGIC)
            && !self.format.starts_record(&first_bytes::<START_BYTES>(next)))
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

    /// The possible start of the next member, or the end of the file; `None` if that is too far away.
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
            // A start may cross the end of what had been read.
            from = from.max((known + 1).saturating_sub(MAGIC.len()));
        }
    }

    /// Whether these bytes are exactly one member of this size; if so, its content is in the free space of the buffer.
    fn fits(&mut self, member: &[u8], size: usize, content: &mut Buffer) -> bool {
        let Some(room) = content.room(size).get_mut(..size) else { return false };
        self.whole.gzip_decompress(member, room) == Ok(size) && ends_with_its_member(member)
    }

    /// Moves past the current member.
    fn leave<R: Read>(&mut self, file: &mut Stored<R>, is_broken: bool) -> io::Result<()> {
        let Some(stream) = self.stream.take() else { return Ok(()) };
        if !is_broken {
            file.consume(stream.taken);
            return Ok(());
        }
        // The inflated input may have included the start of the next member.
        let is_affordable = !stream.is_long && stream.taken <= self.rework_bytes;
        if is_affordable {
            self.rework_bytes -= stream.taken;
        }
        let from = if is_affordable { 1 } else { stream.taken };
        self.pass_over(file, from).map(drop)
    }

    /// Skips bytes, at least `from`, up to a member that begins with a record. Returns how many were skipped.
    fn pass_over<R: Read>(&self, file: &mut Stored<R>, mut from: usize) -> io::Result<u64> {
        let began = file.offset;
        loop {
            let window = file.bytes();
            let found = window.get(from..).and_then(|rest| self.magic.find(rest));
            if let Some(found) = found {
                file.consume(from + found);
                if begins_with_record(file.at_least(PEEK_BYTES)?, self.format) {
                    return Ok(file.offset - began);
                }
                from = 1;
                continue;
            }
            // A start may cross the end of what has been read.
            file.consume((window.len() + 1).saturating_sub(MAGIC.len()).max(from));
            from = 0;
            if !file.more()? {
                file.consume(MAGIC.len());
                return Ok(file.offset - began);
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

    /// Reads more input, and discards the start of the member when the window is full of it.
    fn read_on<R: Read>(&mut self, file: &mut Stored<R>) -> io::Result<bool> {
        if file.bytes().len() >= MAX_AT_ONCE_BYTES {
            file.consume(self.taken);
            self.taken = 0;
            self.is_long = true;
        }
        file.more()
    }
}

/// Whether there is a member here that begins with a record, possibly after blank lines.
pub(crate) fn begins_with_record(bytes: &[u8], format: ArchiveFormat) -> bool {
    let content = first_bytes::<START_BYTES>(bytes);
    format.starts_record(&content[blank_bytes(&content)..])
}

/// The first bytes of a member, as far as they can be inflated; the rest is zeros.
pub(crate) fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut content = [0; N];
    let mut inflate = Decompress::new_gzip(WINDOW_BITS);
    // If the member is damaged further on, the part before that is still used.
    drop(inflate.decompress(bytes, &mut content, FlushDecompress::None));
    content
}
