//! What a dashboard shows that only the settings name.

use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_engine::ports::crawl_progress::CrawlProgress;
use fetchwell_settings::Settings;

use crate::doors::commoncrawl::CrawlFiles;

/// How far batchers that were started in this folder, and workers by these settings, have come.
pub(crate) fn crawl_progress(settings: &Settings) -> Arc<dyn CrawlProgress> {
    let output = settings.values.commoncrawl_output.clone();
    Arc::new(CrawlFiles { checkpoints: PathBuf::from("."), output })
}
