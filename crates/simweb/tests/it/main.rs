//! The simulated web, in process and over TCP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod conditional;
mod json;
mod politeness;
mod program;
mod scripts;
mod tcp;
