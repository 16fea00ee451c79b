//! The parts of a dashboard that come from the settings.

use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_commoncrawl::CrawlFiles;
use fetchwell_engine::ports::crawl_progress::CrawlProgress;
use fetchwell_service::dashboard::{SettingRow, SystemInfo};
use fetchwell_settings::{Effective, Settings, ValueOrigin};

/// The stores and all settings.
pub(crate) fn system_info(settings: &Settings) -> SystemInfo {
    let values = &settings.values;
    let politeness = values.politeness.as_ref();
    SystemInfo {
        store: values.store.to_string(),
        politeness: politeness.map_or("the store itself".to_owned(), ToString::to_string),
        settings: settings.effective().iter().map(setting_row).collect(),
    }
}

fn setting_row(setting: &Effective) -> SettingRow {
    SettingRow {
        key: setting.key.clone(),
        value: setting.value.to_string(),
        origin: setting.origin.to_string(),
        is_default: setting.origin == ValueOrigin::Default,
    }
}

/// The progress of batchers in the current folder, and of workers in the output folder of the settings.
pub(crate) fn crawl_progress(settings: &Settings) -> Arc<dyn CrawlProgress> {
    let output = settings.values.commoncrawl_output.clone();
    Arc::new(CrawlFiles { checkpoints: PathBuf::from("."), output })
}
