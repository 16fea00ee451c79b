//! The parts of the `fetchwell` binary: command line, settings, and one module a door.

mod api;
pub mod cli;
mod dashboard;
mod demo;
mod descriptors;
mod doctor;
#[cfg(test)]
mod documented;
pub mod doors;
mod explain;
mod health;
mod listener;
mod measures;
mod operator_client;
mod plant;
mod prometheus;
pub mod settings;
mod signals;
mod telemetry;
mod terminal;
mod timestamp;
mod traces;
