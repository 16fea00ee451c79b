//! The HTTP client over loopback, against servers that follow a script to the byte.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on may panic")]

mod bodies;
mod budget;
mod client;
mod encoding;
mod faults;
mod guard;
mod http2;
mod keep_alive;
mod leave;
mod line;
mod requests;
mod script;
mod time_limits;
mod tls;
