//! Rules that take more than one module.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod hidden_addresses;
mod orders;
