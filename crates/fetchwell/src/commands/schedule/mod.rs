//! `fetchwell schedule`.

pub(crate) mod args;
