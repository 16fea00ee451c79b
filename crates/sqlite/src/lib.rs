//! One SQLite connection in a thread of its own, commits in groups, and what its errors mean.

pub mod db;
pub mod errors;
