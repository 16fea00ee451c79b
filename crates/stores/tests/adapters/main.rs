//! The adapters, on real servers where they need one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod articles;
mod clock_jumps;
mod conformance;
mod crawls;
mod error_kinds;
mod events;
mod frontier;
mod kafka;
mod pages;
mod postgres_faults;
mod postgres_upgrade;
mod postgres_views;
mod rabbitmq;
mod redis_queue;
mod shared_politeness;
mod waiting;
