//! Faults in one direction of a connection.

use std::time::Duration;

/// The faults in one direction. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Each byte arrives this much later.
    pub delay: Duration,
    /// Nothing arrives until this is reset.
    pub is_stalled: bool,
    /// Bytes arrive in pieces of at most this size.
    pub slice_bytes: Option<usize>,
    /// The maximum rate at which bytes arrive.
    pub bytes_per_second: Option<u64>,
    /// After this many bytes, the connection is cut. They are counted from when these faults were set, or from the
    /// start of a later connection.
    pub cut_after: Option<(u64, Cut)>,
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It is closed, as if the peer had closed it.
    Close,
    /// It is reset, as if the peer had crashed.
    Reset,
}

impl Faults {
    /// Everything arrives this much later.
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

    /// Only this many bytes arrive.
    pub fn cut_after(bytes: u64, cut: Cut) -> Faults {
        Faults { cut_after: Some((bytes, cut)), ..Faults::default() }
    }
}
