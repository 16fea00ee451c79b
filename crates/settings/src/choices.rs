//! Settings with a fixed set of values.

use fetchwell_policy::robots::WhenUnreachable;
use serde_json::Value as Json;

use super::fault::Wrong;
use super::features::Feature;
use super::kinds::{Kind, OneOf};
use super::layer::Raw;

pub(super) const WHEN_UNREACHABLE: OneOf<WhenUnreachable> = OneOf(&[
    ("defer", WhenUnreachable::Defer),
    ("allow", WhenUnreachable::Allow),
    ("disallow", WhenUnreachable::Disallow),
]);

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Human-readable lines.
    Pretty,
    /// One JSON object per line, for machines.
    Json,
}

pub(super) const LOG_FORMAT: OneOf<LogFormat> =
    OneOf(&[("pretty", LogFormat::Pretty), ("json", LogFormat::Json)]);

/// The format of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    /// One JSON object per line, compressed.
    JsonLines,
    Parquet,
}

const DOCUMENT_FORMAT: OneOf<DocumentFormat> =
    OneOf(&[("jsonl.zst", DocumentFormat::JsonLines), ("parquet", DocumentFormat::Parquet)]);

/// A document format that this build can write.
pub(super) struct WritableFormat(pub(super) Feature);

impl Kind for WritableFormat {
    type Value = DocumentFormat;

    fn read(&self, raw: &Raw) -> Result<DocumentFormat, Wrong> {
        let format = DOCUMENT_FORMAT.read(raw)?;
        if format == DocumentFormat::Parquet {
            self.0.require()?;
        }
        Ok(format)
    }

    fn show(&self, value: &DocumentFormat) -> Json {
        DOCUMENT_FORMAT.show(value)
    }
}
