//! The Model Context Protocol (MCP): tools that let language models read the web, for the clients of `serve` over HTTP
//! and for one client on standard input and output.
//!
//! | file | |
//! |---|---|
//! | `server` | the handler of the protocol: lists the tools, and calls them within limits |
//! | `tools` | names, descriptions and input schemas |
//! | `arguments` | the arguments of a call |
//! | `fetch`, `map`, `explain`, `archive` | the tools |
//! | `answer` | answers: bounded, with the text of pages marked as untrusted |
//! | `advice` | errors, with what the calling model should do next |
//! | `lookups` | what the tools need from the program |
//! | `endpoint`, `origin` | `POST /mcp` |
//! | `streams` | one client on a pair of streams |
//!
//! The protocol itself is in the crate `rmcp`.

mod advice;
mod answer;
mod archive;
mod arguments;
mod endpoint;
mod explain;
mod fetch;
mod lookups;
mod map;
mod origin;
mod server;
mod streams;
mod tools;

pub use lookups::{ArchiveQuery, ArchivedPage, Captures, LookupFailure, Lookups};
pub use streams::{Grace, StreamRules, serve_streams};

pub(super) use endpoint::{Endpoint, post};
