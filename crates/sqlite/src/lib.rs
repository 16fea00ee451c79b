//! One SQLite connection in its own thread, with group commits and classified errors.

pub mod db;
pub mod errors;
pub mod statements;
