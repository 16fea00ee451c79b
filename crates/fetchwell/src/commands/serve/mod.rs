//! `fetchwell serve`.

pub(crate) mod args;
