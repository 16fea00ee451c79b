//! `fetchwell commoncrawl batch`, `find` and `get` as their users run them: real processes on archives that
//! the tests make, in a folder and on a server of ranges.

pub(crate) mod archive;
mod batches;
mod broker;
mod filters;
mod lookup;
mod malformed;
mod memory;
mod refusals;
mod resume;
mod rig;
