//! The data of a span.

use std::time::Duration;

use fetchwell_policy::time::Time;
use serde_json::Value as Json;

use super::ids::{SpanId, TraceId};

/// A span of a trace.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Wall-clock time.
    pub(super) began_at: Time,
    pub(super) took: Duration,
    /// Each value is a string or an integer.
    pub(super) attributes: Vec<(&'static str, Json)>,
    pub(super) failed: bool,
}

/// The kind of a span; the numbers are those of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Work within this program.
    Internal = 1,
    /// A request to a server.
    Client = 3,
}
