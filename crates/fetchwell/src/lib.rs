//! The parts of the `fetchwell` binary: command line, commands, and one module per door.

pub mod cli;
mod commands;
mod console;
pub mod doors;
mod plant;
mod wiring;
