//! What a span says.

use std::time::Duration;

use fetchwell_policy::time::Time;

use super::ids::{SpanId, TraceId};

/// A stretch of time, and what went on in it.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    /// What it is part of.
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// By the wall clock.
    pub(super) began_at: Time,
    pub(super) took: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) failed: bool,
}

/// Who does what a span is about; the numbers are OTLP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// This program by itself.
    Internal = 1,
    /// This program, by asking a server.
    Client = 3,
}

/// What an attribute may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(i64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number)
    }
}
