//! `fetchwell fetch`.

pub(crate) mod args;
