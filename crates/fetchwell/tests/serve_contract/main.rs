//! The API of `fetchwell serve` against its own OpenAPI document and against everything that it must refuse.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on may panic")]

mod access;
mod bad_bodies;
mod bad_fields;
mod bad_urls;
#[path = "../serve_api/client.rs"]
mod client;
mod clocks;
mod connections;
mod document;
mod place;
mod refused;
mod schemathesis;
mod store_gone;
