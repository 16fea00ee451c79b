//! `fetchwell serve`, with `fetchwell callers` and `fetchwell migrate`: accepts messages through an API and fetches
//! their pages.
//!
//! `run` is the service, with the flow that it shares with `mcp` and the demo, `foundation` what the API is built on,
//! and `first_start` creates the first caller.

pub(crate) mod args;
mod callers;
mod first_start;
mod foundation;
#[cfg(feature = "postgres")]
mod migrate;
#[cfg(not(feature = "postgres"))]
#[path = "migrate_off.rs"]
mod migrate;
mod retailers;
mod run;

pub(crate) use callers::{add as add_caller, run as callers};
pub(crate) use foundation::ApiStore;
pub(crate) use migrate::run as migrate;
pub(crate) use run::{ending_all, messages, run};
