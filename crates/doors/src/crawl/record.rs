//! The result of a job of a crawl.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::ports::frontier::{Discoveries, Discovers};

use crate::fetch::FetchRow;

/// The result of a page, of a sitemap or of a robots.txt.
#[derive(Default)]
pub struct CrawlRecord {
    pub(super) row: Option<FetchRow>,
    /// The row if the page was reached by a redirect, and another row has its content.
    pub(super) redirected: Option<FetchRow>,
    pub(super) is_elsewhere: AtomicBool,
    pub(super) found: Arc<Discoveries>,
    /// Why a sitemap was not read.
    pub failure: Option<String>,
}

impl CrawlRecord {
    /// The record of a page with no links to follow.
    pub(super) fn of_row(row: FetchRow) -> CrawlRecord {
        CrawlRecord { row: Some(row), ..CrawlRecord::default() }
    }

    /// The row of a page.
    pub fn row(&self) -> Option<&FetchRow> {
        let redirected = self.redirected.as_ref();
        redirected.filter(|_| self.is_elsewhere.load(Ordering::Relaxed)).or(self.row.as_ref())
    }

    /// Sets whether another row has the content of the page to which this one redirects.
    pub(super) fn set_elsewhere(&self, is_elsewhere: bool) {
        self.is_elsewhere.store(is_elsewhere, Ordering::Relaxed);
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
        let rows = self.row.iter().chain(&self.redirected).map(Weighed::weight);
        pages.chain(jobs).chain(rows).sum()
    }
}
