//! The result of a job of a crawl.

use std::sync::Arc;

use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::ports::frontier::{Discoveries, Discovers};

use crate::fetch::FetchRow;

/// The result of a page, of a sitemap or of a robots.txt.
pub struct CrawlRecord {
    /// The row of a page.
    pub row: Option<FetchRow>,
    pub(super) found: Arc<Discoveries>,
    /// Why a sitemap was not read.
    pub failure: Option<String>,
}

impl CrawlRecord {
    /// The record of a page with no links to follow.
    pub(super) fn of_row(row: FetchRow) -> CrawlRecord {
        CrawlRecord { row: Some(row), found: Arc::default(), failure: None }
    }
}

impl Discovers for CrawlRecord {
    fn discoveries(&self) -> &Arc<Discoveries> {
        &self.found
    }
}

impl Weighed for CrawlRecord {
    fn weight(&self) -> usize {
        let pages = self.found.pages.iter().map(|page| page.url.len() + size_of_val(page));
        let jobs = self.found.jobs.iter().map(|new| new.job.url.len() + size_of_val(new));
        let row = self.row.as_ref().map_or(0, Weighed::weight);
        pages.chain(jobs).sum::<usize>().saturating_add(row)
    }
}
