//! Real processes that are killed, stopped and timed.
//!
//! The test command runs the short form; `scripts/soak` runs the long one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod crawl;
mod fetch;
mod known_web;
mod mcp;
mod pages;
mod politeness;
mod serve;
mod shared;
