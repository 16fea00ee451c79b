//! Feeds of every format, sound and hostile.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod formats;
mod hostile;
