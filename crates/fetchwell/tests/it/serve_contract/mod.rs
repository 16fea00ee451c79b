//! The API of `fetchwell serve` against its own OpenAPI document and against everything that it must refuse.

mod access;
mod bad_bodies;
mod bad_fields;
mod bad_urls;
mod clocks;
mod connections;
mod document;
mod place;
mod refused;
mod schemathesis;
mod store_gone;

pub(crate) use bad_urls::URLS;
pub(crate) use place::{accepted, audit_of, no_way_out};
pub(crate) use refused::send;
