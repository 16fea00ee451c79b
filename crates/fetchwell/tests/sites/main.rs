//! Sites and orders to them: the real program, by commands and by its API, judged at the origin.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on may panic")]

#[expect(dead_code, reason = "other tests need more of it")]
#[path = "../serve_api/client.rs"]
mod client;

mod api;
mod commands;
mod orders;
