//! `fetchwell feeds`.

pub(crate) mod args;
