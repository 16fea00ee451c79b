//! `fetchwell articles` as its users run it: real processes on a simulated web, embedded and on Redis.
//!
//! What needs Redis says that it skips where none is named.

mod commands;
mod cycle;
mod door;
mod failures;
mod keys;
mod runs;
mod watch;
