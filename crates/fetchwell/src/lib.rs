//! The parts of the `fetchwell` binary: command line, settings, and one module a door.

mod api;
pub mod cli;
mod demo;
#[cfg(test)]
mod documented;
pub mod doors;
mod explain;
mod plant;
mod prometheus;
pub mod settings;
mod signals;
mod telemetry;
mod timestamp;
