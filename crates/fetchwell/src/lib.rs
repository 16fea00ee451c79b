//! The parts of the `fetchwell` binary: command line, commands, and one module a door.

mod api;
mod audit;
mod auth;
pub mod cli;
mod commands;
mod console;
mod dashboard;
pub mod doors;
mod metrics_server;
mod plant;
mod problem;
mod server;
mod sites;
mod views;
mod wiring;
