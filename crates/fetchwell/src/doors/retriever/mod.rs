//! `fetchwell serve`: messages come in by an API, their pages are fetched, results go to the outbox.

mod callers;
mod counted;
mod deliveries;
mod fetching;
mod first_start;
#[cfg(feature = "postgres")]
mod migrate;
#[cfg(not(feature = "postgres"))]
#[path = "migrate_off.rs"]
mod migrate;
mod plan;
mod serve;
mod storied;

pub use plan::{obituary, plan, retry_rule};

pub(crate) use callers::{add as add_caller, run as callers};
pub(crate) use fetching::{flow, messages};
pub(crate) use migrate::run as migrate;
pub(crate) use serve::serve;
