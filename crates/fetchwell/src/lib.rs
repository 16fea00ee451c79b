//! The parts of the `fetchwell` binary: command line, settings, and one module a door.

pub mod settings;
