//! The simulated fleet: that a seed can be repeated, that the checks find planted bugs, and that there are no others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod plants;
mod seeds;
