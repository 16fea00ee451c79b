//! `fetchwell articles`.

pub(crate) mod args;
