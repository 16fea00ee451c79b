//! Pages in, articles out.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod articles;
mod broken;
mod growth;
mod hostile;
mod kinds;
