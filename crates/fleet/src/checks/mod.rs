//! The invariants of every run, checked from outside: by what the stores carried out and what the sites saw.

pub(crate) mod jobs;
pub(crate) mod messages;
pub(crate) mod requests;
