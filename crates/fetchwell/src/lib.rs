//! The parts of the `fetchwell` binary: command line, settings, and one module a door.

mod api;
pub mod cli;
mod demo;
pub mod doors;
mod explain;
mod measures;
mod plant;
mod prometheus;
pub mod settings;
mod signals;
mod telemetry;
mod timestamp;
mod traces;
