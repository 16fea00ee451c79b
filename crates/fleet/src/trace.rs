//! What happened in a run, as lines of text, and the hash that tells two runs apart.

use std::fmt::{self, Write};
use std::time::Duration;

use crate::dice::fnv1a;

/// Lines beyond this are hashed but not kept, so that a run that never ends does not fill the memory.
const MAX_LINES: usize = 2_000_000;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: Duration,
    /// The machine, `site` or `fleet`.
    pub who: String,
    pub what: &'static str,
    pub detail: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(out, self.at, &self.who, self.what, format_args!("{}", self.detail))
    }
}

fn write_line(
    out: &mut impl Write,
    at: Duration,
    who: &str,
    what: &str,
    detail: fmt::Arguments<'_>,
) -> fmt::Result {
    write!(out, "{:>10.3} {who:<6} {what:<10} {detail}", at.as_secs_f64())
}

/// What becomes of the events of a run. Writing them as text takes most of the time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// Nothing.
    Off,
    /// They are counted and hashed.
    Hashed,
    /// They are also kept.
    Kept,
}

/// The events of a run.
pub(crate) struct Trace {
    tracing: Tracing,
    hash: u64,
    events: u64,
    line: String,
    entries: Vec<Entry>,
}

impl Trace {
    pub(crate) fn new(tracing: Tracing) -> Trace {
        Trace { tracing, hash: 0, events: 0, line: String::new(), entries: Vec::new() }
    }

    pub(crate) fn note(
        &mut self,
        at: Duration,
        who: &str,
        what: &'static str,
        detail: fmt::Arguments<'_>,
    ) {
        if self.tracing == Tracing::Off {
            return;
        }
        self.line.clear();
        if write_line(&mut self.line, at, who, what, detail).is_err() {
            return; // Writing to a string cannot fail.
        }
        self.hash = fnv1a(self.hash, self.line.as_bytes());
        self.events += 1;
        if self.tracing == Tracing::Kept && self.entries.len() < MAX_LINES {
            let who = who.to_owned();
            self.entries.push(Entry { at, who, what, detail: detail.to_string() });
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn take_entries(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }
}
