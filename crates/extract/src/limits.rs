//! What reading a page may cost.

use std::cell::Cell;
use std::fmt;

/// How often the time is looked at, in steps: a look costs more than a step.
const STEPS_A_LOOK: u32 = 512;

/// The bounds of one extraction.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Bytes of text, as it stands in the page with all that surrounds the article. What follows is left out.
    pub max_text_bytes: usize,
    /// Whether the time for the page is up. Asked now and then.
    pub is_over: &'a dyn Fn() -> bool,
}

impl Limits<'_> {
    /// No bounds but those that every page has: on its bytes, its nodes and its depth.
    pub const NONE: Limits<'static> = Limits { max_text_bytes: usize::MAX, is_over: &|| false };
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("max_text_bytes", &self.max_text_bytes)
            .finish_non_exhaustive()
    }
}

/// The time was up before the page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TookTooLong;

impl fmt::Display for TookTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reading the page took too long")
    }
}

impl std::error::Error for TookTooLong {}

/// Looks at the time while a page is read.
pub(crate) struct Watch<'a> {
    is_over: &'a dyn Fn() -> bool,
    steps: Cell<u32>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(limits: &Limits<'a>) -> Self {
        Watch { is_over: limits.is_over, steps: Cell::new(0) }
    }

    /// One step of many: the time is looked at now and then.
    pub(crate) fn step(&self) -> Result<(), TookTooLong> {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_A_LOOK) { self.look() } else { Ok(()) }
    }

    /// Looks at the time.
    pub(crate) fn look(&self) -> Result<(), TookTooLong> {
        if (self.is_over)() { Err(TookTooLong) } else { Ok(()) }
    }
}
