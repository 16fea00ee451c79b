//! `fetchwell commoncrawl`.

pub(crate) mod args;
