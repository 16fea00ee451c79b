//! From settings to what commands work with.

mod dashboard;

pub(crate) use dashboard::{crawl_progress, system_info};
