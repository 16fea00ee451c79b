//! The dashboard as visitors meet it: over HTTP, and in a real browser.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that can't go on may panic, and one that can't begin says so"
)]

mod access;
mod acting;
mod browser;
#[expect(dead_code, reason = "shared with the tests of the API, which use all of it")]
#[path = "../serve_api/client.rs"]
mod client;
mod letters;
mod place;
mod rendering;
mod visit;
