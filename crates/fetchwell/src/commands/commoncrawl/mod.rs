//! `fetchwell commoncrawl`.

pub(crate) mod archive;
pub(crate) mod args;
mod find;
mod get;
mod lookup;

pub(crate) use find::find;
pub(crate) use get::get;
