//! What may go wrong in one direction of a connection.

use std::time::Duration;

/// What goes wrong in one direction. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Each byte arrives so much later.
    pub delay: Duration,
    /// Nothing arrives, until this is taken back.
    pub is_stalled: bool,
    /// Bytes arrive in pieces of at most this size.
    pub slice_bytes: Option<usize>,
    /// Bytes arrive at this rate at the most.
    pub bytes_per_second: Option<u64>,
    /// So many bytes arrive, and then the connection is cut. They are counted from the moment that
    /// these faults were set, or from the beginning of a later connection.
    pub cut_after: Option<(u64, Cut)>,
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It is closed, as if the other side had wished it.
    Close,
    /// It is reset, as if the other side had crashed.
    Reset,
}

impl Faults {
    /// Everything arrives so much later.
    pub fn delay(delay: Duration) -> Faults {
        Faults { delay, ..Faults::default() }
    }

    /// Nothing arrives.
    pub fn stall() -> Faults {
        Faults { is_stalled: true, ..Faults::default() }
    }

    /// Everything arrives in small pieces.
    pub fn slices(bytes: usize) -> Faults {
        Faults { slice_bytes: Some(bytes), ..Faults::default() }
    }

    /// Everything arrives slowly.
    pub fn bytes_per_second(rate: u64) -> Faults {
        Faults { bytes_per_second: Some(rate), ..Faults::default() }
    }

    /// So many bytes arrive, and no more.
    pub fn cut_after(bytes: u64, cut: Cut) -> Faults {
        Faults { cut_after: Some((bytes, cut)), ..Faults::default() }
    }
}
