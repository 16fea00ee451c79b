//! The parts of the `fetchwell` binary: command line, commands, console, and the wiring from settings to all of them.

pub mod cli;
mod commands;
mod console;
mod wiring;
