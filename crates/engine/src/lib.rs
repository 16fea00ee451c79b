//! The engine: one flow from a queued URL to a settled result, whatever the door.
//!
//! Read [`pipeline`] first. A door brings a [`ports::Source`], a [`ports::Plan`] and a
//! [`ports::Finish`]; the engine brings the loop, the politeness and the only HTTP client.

pub mod adapters;
pub mod articles;
pub mod batches;
pub mod clock;
pub mod dead_letters;
pub mod errands;
pub mod feeds;
pub mod gate;
pub mod http;
pub mod inbox;
pub mod journey;
pub mod links;
pub mod oversight;
pub mod pipeline;
pub mod ports;
mod readable;
pub mod rounds;
pub mod sites;
pub mod store_health;
pub mod web;
pub mod workbench;
