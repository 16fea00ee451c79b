//! The crawling policy as pure functions: no async, no I/O; time and random numbers are arguments.
//!
//! Everything here can be tested with tables and property tests. The engine applies it.

#![warn(missing_docs)]

pub mod address;
pub mod breaker;
pub mod chance;
pub mod crawl;
pub mod digest;
pub mod health;
pub mod orders;
pub mod outcome;
pub mod pace;
pub mod recent;
pub mod retry;
pub mod retry_after;
pub mod retry_budget;
pub mod rfc3339;
pub mod robots;
pub mod site;
pub mod surt;
pub mod text;
pub mod time;
pub mod tracking;
pub mod units;
pub mod url;
mod wildcard;
