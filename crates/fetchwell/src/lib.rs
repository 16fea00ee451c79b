//! The parts of the `fetchwell` binary: command line, and one module a door.

mod api;
pub mod cli;
mod dashboard;
mod demo;
mod descriptors;
mod doctor;
pub mod doors;
mod explain;
mod health;
mod listener;
mod plant;
mod signals;
mod telemetry;
mod terminal;
