//! The parts of the `fetchwell` binary: command line, commands, console, and the wiring from settings to all of them.

pub mod cli;
mod commands;
mod console;
pub mod doors;
mod wiring;

// What commoncrawl calls it.
use wiring as plant;
