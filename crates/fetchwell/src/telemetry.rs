//! Logs: to standard error, so that standard output is data only.

use std::fmt;
use std::io::{self, IsTerminal};

use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::cli::GlobalFlags;
use crate::settings::LogFormat;
use crate::terminal::printable;

/// Starts logging. Called once, before anything is worth a line.
pub(crate) fn start(flags: &GlobalFlags, format: LogFormat) {
    let level = match (flags.quiet, flags.verbose) {
        (0, 0) => LevelFilter::INFO,
        (0, 1) => LevelFilter::DEBUG,
        (0, _) => LevelFilter::TRACE,
        (1, _) => LevelFilter::ERROR,
        _ => LevelFilter::OFF,
    };
    let no_color = flags.no_color || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    // lapin logs as errors what it also returns as such: a queue that is not there yet, for one.
    let filter = tracing_subscriber::EnvFilter::builder()
        .parse_lossy(format!("warn,lapin=off,fetchwell={level},fetchwell_engine={level}"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Pretty => builder
            .with_target(false)
            .with_ansi(!no_color && io::stderr().is_terminal())
            .fmt_fields(debug_fn(write_field).delimited(" "))
            .try_init(),
    };
    // It fails when a test started logging before: then that one stays.
    drop(started);
}

/// An event is one line, and nothing in it moves the cursor: URLs come from anywhere.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = format!("{value:?}");
    match field.name() {
        "message" => write!(writer, "{}", printable(&text)),
        name => write!(writer, "{name}={}", printable(&text)),
    }
}
