//! The parts of the `fetchwell` binary: command line, commands, and one module a door.

mod api;
pub mod cli;
mod commands;
mod console;
mod dashboard;
pub mod doors;
mod listener;
mod metrics_server;
mod plant;
mod views;
mod wiring;
