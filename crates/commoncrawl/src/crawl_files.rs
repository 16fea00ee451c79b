//! How far batchers and workers have come, by the files that they leave in folders.

use std::path::PathBuf;

use fetchwell_engine::ports::crawl_progress::{BatcherStanding, CrawlProgress, FolderStanding};

use crate::batch::standing::batchers;
use crate::work::standing::folder;

/// The folders of batchers and workers.
pub struct CrawlFiles {
    /// Where the checkpoints of batchers are.
    pub checkpoints: PathBuf,
    /// Where workers write documents.
    pub output: PathBuf,
}

impl CrawlProgress for CrawlFiles {
    fn batchers(&self) -> Vec<BatcherStanding> {
        batchers(&self.checkpoints)
    }

    fn folder(&self) -> Option<FolderStanding> {
        folder(&self.output)
    }

    fn output(&self) -> String {
        self.output.display().to_string()
    }
}
