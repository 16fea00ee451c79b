//! From settings to what commands work with.

mod dashboard;
mod listeners;
mod sites;

pub(crate) use dashboard::{crawl_progress, system_info};
pub(crate) use listeners::{connection_rules, listen, listen_for_metrics};
pub(crate) use sites::open_sites;
