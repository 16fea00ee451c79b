//! The progress of batchers and workers, read from their files.

use std::path::PathBuf;

use fetchwell_engine::ports::crawl_progress::{BatcherStanding, CrawlProgress, FolderStanding};

use crate::batch::standing::batchers;
use crate::work::standing::folder;

/// The folders of batchers and workers.
pub struct CrawlFiles {
    /// The folder with the checkpoints of batchers.
    pub checkpoints: PathBuf,
    /// The folder that workers write documents to.
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
