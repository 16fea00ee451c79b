//! `fetchwell pages`.

pub(crate) mod args;
