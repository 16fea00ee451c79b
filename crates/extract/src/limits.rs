//! Limits on the cost of reading a page.

use std::cell::Cell;
use std::fmt;

/// The clock is checked once in this many steps, because a check costs more than a step.
const STEPS_A_LOOK: u32 = 512;

/// Added regardless of size: even a small page may have long URLs and deep lists.
const FREE_BYTES: usize = 64 * 1024;

/// The limits of one extraction.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Bytes of text in the source, including what surrounds the article. The rest is left out.
    pub max_text_bytes: usize,
    /// Whether to use the content of `noscript` on a page with hardly any other text. This is a choice, not a limit.
    pub with_noscript: bool,
    /// Whether the time for the page is up. Called now and then.
    pub is_over: &'a dyn Fn() -> bool,
}

impl Limits<'_> {
    /// No limits except the fixed ones on bytes, nodes and depth.
    pub const NONE: Limits<'static> =
        Limits { max_text_bytes: usize::MAX, with_noscript: true, is_over: &|| false };

    /// The most bytes that resolved URLs may take, and that indentation may add: a short relative link can stand for
    /// a long absolute one, a hundred thousand times.
    pub(crate) fn max_added_bytes(&self, html: &str) -> usize {
        max_added_bytes(html.len(), self.max_text_bytes)
    }
}

pub(crate) fn max_added_bytes(html_bytes: usize, max_text_bytes: usize) -> usize {
    html_bytes.min(max_text_bytes).saturating_add(FREE_BYTES)
}

/// The time was up before the page had been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TookTooLong;

impl fmt::Display for TookTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reading the page took too long")
    }
}

impl std::error::Error for TookTooLong {}

/// Checks the time while a page is read.
pub(crate) struct Watch<'a> {
    is_over: &'a dyn Fn() -> bool,
    steps: Cell<u32>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(limits: &Limits<'a>) -> Self {
        Watch { is_over: limits.is_over, steps: Cell::new(0) }
    }

    /// Counts a step, and checks the time now and then.
    pub(crate) fn step(&self) -> Result<(), TookTooLong> {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_A_LOOK) { self.look() } else { Ok(()) }
    }

    /// Checks the time.
    pub(crate) fn look(&self) -> Result<(), TookTooLong> {
        if (self.is_over)() { Err(TookTooLong) } else { Ok(()) }
    }
}
