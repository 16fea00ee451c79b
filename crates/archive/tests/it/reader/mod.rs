//! WARC files of our own making, whole and broken, read from one end to the other.

mod broken;
pub(crate) mod files;
mod mutation;
mod round_trip;
mod sound;
