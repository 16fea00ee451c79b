//! `fetchwell mcp`: the tools for language models, on standard input and output.
//!
//! `run` is the server, `own_store` its store in the user's data folder, and `standard_streams` its input and output.
//! `lookups` implements the port of the tools, also for `serve`.

mod lookups;
mod own_store;
mod run;
mod standard_streams;

pub(crate) use lookups::ProgramLookups;
pub(crate) use own_store::own_store;
pub(crate) use run::run;
