//! A look into an archive: `find` says what it has, `get` brings one page back.
//!
//! `pattern` is what is looked for, `search` finds its place in `cluster.idx` by halves, `captures` reads
//! the blocks from there on, and `errand` takes all of it through the one flow.

mod captures;
mod errand;
mod find;
mod get;
mod pattern;
mod search;

pub(crate) use find::find;
pub(crate) use get::get;
