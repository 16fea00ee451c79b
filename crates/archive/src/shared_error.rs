//! Library errors in error types that are cloned and compared.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A library error that can be cloned; two are equal if their messages are.
#[derive(Debug)]
pub struct SharedError<E>(Arc<E>);

impl<E> From<E> for SharedError<E> {
    fn from(error: E) -> SharedError<E> {
        SharedError(Arc::new(error))
    }
}

impl<E> Clone for SharedError<E> {
    fn clone(&self) -> SharedError<E> {
        SharedError(self.0.clone())
    }
}

impl<E: fmt::Display> fmt::Display for SharedError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl<E: fmt::Display> PartialEq for SharedError<E> {
    fn eq(&self, other: &SharedError<E>) -> bool {
        self.to_string() == other.to_string()
    }
}

impl<E: fmt::Display> Eq for SharedError<E> {}

impl<E: Error> Error for SharedError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
