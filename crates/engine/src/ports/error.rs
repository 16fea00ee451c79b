//! The error type of all stores, and its kinds.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// How the caller should react to a store error; as text, the beginning of its message. Each adapter maps its driver's
/// error codes to these in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StoreErrorKind {
    /// The store cannot be reached, is busy, or has no room left: the same call may work later.
    #[error("the store is not available")]
    Transient,
    /// The store holds or returned invalid data.
    #[error("the store is damaged")]
    Corrupt,
    /// This program cannot use the store as configured: wrong version, wrong schema or missing permissions.
    #[error("this store cannot be used")]
    Incompatible,
    /// The value is larger than the store can ever hold.
    #[error("the store cannot hold it")]
    TooLarge,
    /// This program sent an invalid request, or failed internally.
    #[error("this is a bug in Fetchwell")]
    Bug,
}

/// A failed store call. The message says what failed, on what, why, and what to do next.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    /// What the store was working on, such as the server or the file.
    context: Cow<'static, str>,
    /// Shared, because every waiter of a batched call gets its error.
    source: Option<Arc<dyn Error + Send + Sync>>,
    /// What to do next; may be empty.
    advice: Cow<'static, str>,
}

impl StoreError {
    /// Creates an error. `context` names the server, the file or the operation.
    pub fn new(kind: StoreErrorKind, context: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError { kind, context: context.into(), source: None, advice: Cow::Borrowed("") }
    }

    /// The store is unreachable, busy or full; the call may be retried.
    pub fn transient(context: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError::new(StoreErrorKind::Transient, context)
    }

    /// The store holds invalid data.
    pub fn corrupt(context: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError::new(StoreErrorKind::Corrupt, context)
    }

    /// This program cannot use the store as configured.
    pub fn incompatible(context: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError::new(StoreErrorKind::Incompatible, context)
    }

    /// The value is larger than the store can ever hold.
    pub fn too_large(context: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError::new(StoreErrorKind::TooLarge, context)
    }

    /// A bug in this program.
    pub fn bug(context: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError::new(StoreErrorKind::Bug, context)
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> StoreError {
        StoreError { source: Some(Arc::new(source)), ..self }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_advice(self, advice: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError { advice: advice.into(), ..self }
    }

    /// Overrides the kind, for callers that know more than the driver.
    #[must_use]
    pub fn with_kind(self, kind: StoreErrorKind) -> StoreError {
        StoreError { kind, ..self }
    }

    /// How the caller should react.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same call may work later. Only such calls are retried.
    pub fn is_transient(&self) -> bool {
        self.kind == StoreErrorKind::Transient
    }

    /// The message without the prefix for its kind.
    pub fn detail(&self) -> String {
        let mut text = self.context.to_string();
        if let Some(source) = &self.source {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&source.to_string());
        }
        if !self.advice.is_empty() {
            text.push_str("; ");
            text.push_str(&self.advice);
        }
        text
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail())
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_text_says_on_what_why_and_what_to_do() {
        let full = io::Error::other("no space is left");
        let error = StoreError::transient("SQLite file x.db")
            .with_source(full)
            .with_advice("free some space on its disk");
        assert_eq!(
            error.to_string(),
            "the store is not available: SQLite file x.db: no space is left; free some space on its disk"
        );
        assert!(error.is_transient() && error.clone().source().is_some());
        let plain = StoreError::bug("the engine panicked: x");
        assert_eq!(plain.to_string(), "this is a bug in Fetchwell: the engine panicked: x");
        assert!(!plain.is_transient() && plain.source().is_none());
    }
}
