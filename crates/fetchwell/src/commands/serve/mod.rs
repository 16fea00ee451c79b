//! `fetchwell serve`, with `fetchwell callers` and `fetchwell migrate`: an API takes messages, and their pages are
//! fetched.
//!
//! `run` is the service, `fetching` the flow that it shares with the demo, `first_start` what is said when there is no
//! caller yet.

pub(crate) mod args;
mod callers;
mod fetching;
mod first_start;
#[cfg(feature = "postgres")]
mod migrate;
#[cfg(not(feature = "postgres"))]
#[path = "migrate_off.rs"]
mod migrate;
mod run;

pub(crate) use callers::{add as add_caller, run as callers};
pub(crate) use fetching::messages;
pub(crate) use migrate::run as migrate;
pub(crate) use run::run;
