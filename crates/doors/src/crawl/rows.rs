//! One row per page, even if others redirect to it: decides which rows have no content, because another row has it.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled};
use fetchwell_engine::ports::frontier::Frontier;
use fetchwell_policy::crawl::PageKey;
use parking_lot::Mutex;

use super::CrawlRecord;
use super::fetch_rows::FetchRows;
use super::run::CrawlContext;

/// The size of each of the two generations of remembered pages. Redirects to forgotten pages are followed.
const MAX_REMEMBERED: usize = 100_000;

/// Pages that have or get a row, as far as this process knows. A redirect to one of them need not be followed.
#[derive(Debug)]
pub(super) struct KnownRows {
    remembered: Mutex<Remembered>,
    max_remembered: usize,
}

impl Default for KnownRows {
    fn default() -> KnownRows {
        KnownRows::remembering(MAX_REMEMBERED)
    }
}

/// The oldest are forgotten, many at once.
#[derive(Debug, Default)]
struct Remembered {
    new: HashSet<PageKey>,
    old: HashSet<PageKey>,
}

impl KnownRows {
    /// Remembers up to twice as many pages.
    pub(super) fn remembering(max_remembered: usize) -> KnownRows {
        KnownRows { remembered: Mutex::default(), max_remembered }
    }

    pub(super) fn add(&self, page: PageKey) {
        let mut remembered = self.remembered.lock();
        if remembered.new.len() >= self.max_remembered {
            remembered.old = std::mem::take(&mut remembered.new);
        }
        remembered.new.insert(page);
    }

    pub(super) fn has(&self, page: &PageKey) -> bool {
        let remembered = self.remembered.lock();
        remembered.new.contains(page) || remembered.old.contains(page)
    }
}

/// Asks the frontier which pages are taken, before their rows are written.
pub(super) struct OneRowPerPage {
    pub(super) frontier: Arc<dyn Frontier>,
    pub(super) crawl: Arc<CrawlContext<FetchRows>>,
    pub(super) inner: Arc<dyn Finish<CrawlRecord>>,
}

impl OneRowPerPage {
    async fn compare(&self, batch: &[Finished<CrawlRecord>]) -> Result<(), StoreError> {
        let records = batch.iter().flat_map(|finished| &finished.records);
        let redirected: Vec<(PageKey, &CrawlRecord)> =
            records.filter_map(|record| Some((record.found.takes?, record))).collect();
        if redirected.is_empty() {
            return Ok(());
        }
        let pages: Vec<PageKey> = redirected.iter().map(|(page, _)| *page).collect();
        let taken = self.frontier.are_taken(pages).await?;
        let mut taken_in_batch = HashSet::new();
        for ((page, record), is_taken) in redirected.into_iter().zip(taken) {
            let is_first = taken_in_batch.insert(page);
            record.set_elsewhere(is_taken || !is_first);
            self.crawl.known_rows.add(page);
        }
        Ok(())
    }
}

#[async_trait]
impl Finish<CrawlRecord> for OneRowPerPage {
    async fn finish(&self, batch: &[Finished<CrawlRecord>]) -> Result<Vec<Settled>, StoreError> {
        self.compare(batch).await?;
        self.inner.finish(batch).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> PageKey {
        let mut key = PageKey::default();
        key[..8].copy_from_slice(&n.to_le_bytes());
        key
    }

    #[test]
    fn the_latest_rows_are_remembered_and_old_ones_forgotten() {
        let rows = KnownRows::default();
        (0..5 * MAX_REMEMBERED / 2).for_each(|n| rows.add(key(n)));
        assert!((MAX_REMEMBERED..5 * MAX_REMEMBERED / 2).all(|n| rows.has(&key(n))));
        assert!(!rows.has(&key(0)));
        let remembered = rows.remembered.lock();
        assert!(remembered.new.len() + remembered.old.len() <= 2 * MAX_REMEMBERED);
    }
}
