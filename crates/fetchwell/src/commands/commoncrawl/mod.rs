//! `fetchwell commoncrawl`.

pub(crate) mod archive;
pub(crate) mod args;
