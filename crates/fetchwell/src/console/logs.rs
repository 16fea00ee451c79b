//! Logs go to standard error, so that standard output has only data.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use clap::{ArgAction, Args};
use fetchwell_settings::LogFormat;
use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::console::terminal::printable;

/// How much is logged, and whether in colour.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LogOptions {
    /// Log more (-v: debug, -vv: trace)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Log less (-q: errors only, -qq: nothing)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) quiet: u8,
    /// Disable colours (or set NO_COLOR)
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// Starts logging. Called once, before anything is logged.
pub(crate) fn start(options: LogOptions, format: LogFormat) {
    let level = match (options.quiet, options.verbose) {
        (0, 0) => LevelFilter::INFO,
        (0, 1) => LevelFilter::DEBUG,
        (0, _) => LevelFilter::TRACE,
        (1, _) => LevelFilter::ERROR,
        _ => LevelFilter::OFF,
    };
    // lapin logs errors that it also returns, such as a queue that does not exist yet; rmcp warns of whatever a client
    // does wrong.
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(format!(
        "warn,lapin=off,rmcp=error,fetchwell={level},fetchwell_engine={level}"
    ));
    // tracing-subscriber reports its own errors with `eprintln!`, which panics when standard error is closed.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Lossy(io::stderr()))
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Pretty => builder
            .with_target(false)
            .with_ansi(!options.no_color && io::stderr().is_terminal())
            .fmt_fields(debug_fn(write_field).delimited(" "))
            .try_init(),
    };
    // This fails if a test has already started logging; that logger stays in place.
    drop(started);
}

/// Keeps an event on one line and free of control characters: URLs may contain anything.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = format!("{value:?}");
    match field.name() {
        "message" => write!(writer, "{}", printable(&text)),
        name => write!(writer, "{name}={}", printable(&text)),
    }
}

/// Prints a line to standard error, whether or not anyone reads it.
pub(crate) fn say(line: &str) {
    Lossy(io::stderr()).put(format!("{line}\n").as_bytes());
}

/// A writer that never fails. The reader of standard error may go away at any time (`2>&1 | head`), or its disk may be
/// full: only log lines are lost then.
struct Lossy<W>(W);

impl<W: Write> Lossy<W> {
    fn put(&mut self, line: &[u8]) {
        drop(self.0.write_all(line));
    }
}

impl<W: Write> Write for Lossy<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        drop(self.0.flush());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_closed_log_loses_lines_and_fails_nobody() {
        let mut log = Lossy(Closed);
        assert_eq!(log.write(b"a line\n").unwrap(), 7);
        log.write_all(b"another\n").unwrap();
        log.flush().unwrap();
        let mut open = Lossy(Vec::new());
        open.write_all(b"a line\n").unwrap();
        assert_eq!(open.0, b"a line\n");
    }
}
