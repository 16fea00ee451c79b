//! `fetchwell pages` as its users run it: real processes on a simulated web, embedded and on servers.
//!
//! What needs Redis, Kafka or Python says that it skips where they are not named.

mod backlog;
mod door;
mod end_to_end;
mod failures;
mod metrics;
mod outage;
mod refusals;
