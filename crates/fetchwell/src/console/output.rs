//! The future type of commands, and printing to standard output.

use std::io::{self, Write};
use std::pin::Pin;

use crate::console::exit::Exit;

/// The future of a running command.
///
/// Each command boxes its future in its own module, so that its code is generated there, separately from the others;
/// otherwise all of it would be generated where commands are dispatched.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Exit, Exit>> + 'a>>;

/// Prints data to standard output.
pub(crate) fn print(bytes: &[u8]) -> Result<Exit, Exit> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // The reader has closed the pipe: this is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
        written => written.map(|()| Exit::Ok).map_err(Exit::from),
    }
}
