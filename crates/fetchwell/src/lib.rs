//! The parts of the `fetchwell` binary: command line, commands, and one module per door.

pub mod cli;
mod commands;
mod console;
pub mod doors;
mod wiring;

// What commoncrawl calls it.
use wiring as plant;
