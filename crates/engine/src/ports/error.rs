//! Why a store did not do what it was asked.

use thiserror::Error;

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// The store could not be reached or is busy: try again.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The store answered something that it never should.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store is not one that this program can use.
    #[error("this store cannot be used: {0}")]
    Unfit(String),
    /// What was to be written is larger than the store can hold: it never will be.
    #[error("the store can't hold it: {0}")]
    TooLarge(String),
}
