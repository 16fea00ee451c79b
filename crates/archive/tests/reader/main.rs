//! WARC files of our own making, whole and broken, read from one end to the other.

#![expect(clippy::unwrap_used, reason = "a helper of tests is test code")]

mod broken;
mod files;
mod mutation;
mod round_trip;
mod sound;
