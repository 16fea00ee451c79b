//! A file as it is stored, as much of it as is looked at together.

use std::io::{self, ErrorKind, Read};

use crate::buffer::Buffer;

/// What is asked of the file at once.
const READ_BYTES: usize = 128 * 1024;

/// A window on a file.
pub(crate) struct Stored<R> {
    read: R,
    window: Buffer,
    offset: u64,
    is_ended: bool,
}

impl<R: Read> Stored<R> {
    /// A window of at most so many bytes.
    pub(crate) fn new(read: R, max_bytes: usize) -> Stored<R> {
        Stored { read, window: Buffer::new(max_bytes), offset: 0, is_ended: false }
    }

    /// What is in the window.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.window.bytes()
    }

    /// Where in the file the window begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves the beginning of the window.
    pub(crate) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes().len());
        self.offset += bytes as u64;
        self.window.consume(bytes);
    }

    /// Reads more into the window. Returns false where the file ends, or the window is full.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        let room = self.window.room(READ_BYTES);
        if self.is_ended || room.is_empty() {
            return Ok(false);
        }
        loop {
            match self.read.read(room) {
                Ok(0) => {
                    self.is_ended = true;
                    return Ok(false);
                }
                Ok(bytes) => {
                    self.window.filled(bytes);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until the window has so many bytes, if the file has them and the window takes them.
    pub(crate) fn at_least(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.bytes().len() < bytes && self.more()? {}
        Ok(self.bytes())
    }
}
