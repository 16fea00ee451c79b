//! The engine: one pipeline from a queued URL to a settled result, for every door.
//!
//! Read [`pipeline`] first. A door brings a [`ports::source::Source`], a [`ports::plan::Plan`] and a
//! [`ports::finish::Finish`]; the engine brings the loop, the politeness and the only HTTP client.

pub mod budget;
pub mod clock;
pub mod coalescer;
pub mod descriptors;
pub mod finish;
pub mod gate;
pub mod http;
pub mod internal_fetch;
pub mod memory;
pub mod pipeline;
pub mod plan;
pub mod ports;
pub mod seed;
pub mod shared_politeness;
pub mod store_health;
pub mod web;
pub mod workbench;
pub mod wrapped_source;
