//! The engine as a whole, and HTTP as it meets it. No server is needed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod dns;
mod events;
mod failures;
mod fatal_errors;
mod flow;
mod gate;
mod groups;
mod guard;
mod http;
mod last_report;
mod limiter;
mod recovery;
mod unpaced;
mod waits;
