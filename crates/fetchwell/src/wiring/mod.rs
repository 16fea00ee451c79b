//! From settings to what commands work with.

mod dashboard;
mod sites;

pub(crate) use dashboard::{crawl_progress, system_info};
pub(crate) use sites::open_sites;
