//! The future type of commands, printing to standard output, and the folders of output files.

use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;

use serde::Serialize;

use crate::console::exit::Exit;

/// The future of a running command.
///
/// Each command boxes its future in its own module, so that its code is generated there, separately from the others;
/// otherwise all of it would be generated where commands are dispatched.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Exit, Exit>> + 'a>>;

/// Prints data to standard output.
pub(crate) fn print(data: impl AsRef<[u8]>) -> Result<Exit, Exit> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(data.as_ref()).and_then(|()| stdout.flush()) {
        // The reader has closed the pipe: this is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
        written => written.map(|()| Exit::Ok).map_err(Exit::from),
    }
}

/// With `--json`, prints `json` as one line; otherwise, prints `text`.
pub(crate) fn print_either(
    as_json: bool,
    json: impl Serialize,
    text: impl AsRef<[u8]>,
) -> Result<Exit, Exit> {
    if !as_json {
        return print(text);
    }
    let line = serde_json::to_string(&json).map_err(io::Error::from)?;
    print(format!("{line}\n"))
}

/// A value as a line of JSON.
pub(crate) fn json_line(value: impl Serialize) -> String {
    format!("{}\n", serde_json::to_string(&value).unwrap_or_default())
}

/// The folder of a file: the current one if its path names none.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The exit of a command that cannot open its output file.
pub(crate) fn cannot_use(output: &Path, error: &io::Error) -> Exit {
    Exit::Usage(format!(
        "cannot use the output {}: {error}; use another file with --output",
        output.display()
    ))
}
