//! WARC files, ARC files and indexes, read and written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod arc;
mod bodies;
mod index;
mod reader;
mod records;
mod writer;
