//! A window on a stored file.

use std::io::{self, ErrorKind, Read};

use crate::buffer::Buffer;

/// How much is read from the file at once.
const READ_BYTES: usize = 128 * 1024;

/// A window on the part of a file that is needed at once.
pub(crate) struct Stored<R> {
    read: R,
    window: Buffer,
    /// The offset of the window in the file.
    pub(crate) offset: u64,
    is_ended: bool,
}

impl<R: Read> Stored<R> {
    /// A window of at most this many bytes.
    pub(crate) fn new(read: R, max_bytes: usize) -> Stored<R> {
        Stored { read, window: Buffer::new(max_bytes), offset: 0, is_ended: false }
    }

    /// The bytes in the window.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.window.bytes()
    }

    /// Moves the start of the window.
    pub(crate) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes().len());
        self.offset += bytes as u64;
        self.window.consume(bytes);
    }

    /// Reads more into the window. Returns false at the end of the file, or if the window is full.
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

    /// Reads until the window has this many bytes, if the file is long enough and they fit.
    pub(crate) fn at_least(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.bytes().len() < bytes && self.more()? {}
        Ok(self.bytes())
    }
}
