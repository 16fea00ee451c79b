//! The changes of one transaction to crawls through the API.

use std::collections::BTreeMap;

use fetchwell_engine::ports::crawls::{
    CrawlEnd, CrawlSpec, MAX_SITEMAPS_PER_CRAWL, lane_of_pages, lane_of_sitemaps,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::frontier::{CrawlBudget, Discoveries, PagePlace};
use fetchwell_engine::ports::inbox::{CrawlId, FetchResult};
use fetchwell_engine::ports::job::{Job, NewJob};
use fetchwell_policy::crawl::PageKey;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::errors::own_error;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};
use tracing::debug;

use crate::sqlite::frontier::{Admit, Crawl};
use crate::sqlite::moves::{MessageEnding, Moves};

/// Crawls in a transaction, with the queue of their jobs.
pub(super) struct CrawlChanges<'a> {
    tx: &'a Connection,
    pub(super) jobs: Moves<'a>,
    /// `None` for crawls that do not exist, or whose settings are unreadable.
    crawls: BTreeMap<CrawlId, Option<CrawlChange<'a>>>,
}

impl<'a> CrawlChanges<'a> {
    /// `jobs` are the moves in the queue of pages and sitemaps.
    pub(super) fn new(jobs: Moves<'a>) -> CrawlChanges<'a> {
        CrawlChanges { tx: jobs.tx, jobs, crawls: BTreeMap::new() }
    }

    /// A crawl, if it exists, and the queue of jobs.
    pub(super) fn crawl(
        &mut self,
        id: CrawlId,
    ) -> rusqlite::Result<Option<(&mut CrawlChange<'a>, &mut Moves<'a>)>> {
        if !self.crawls.contains_key(&id) {
            self.crawls.insert(id, CrawlChange::read(self.tx, id)?);
        }
        let found = self.crawls.get_mut(&id).and_then(Option::as_mut);
        Ok(found.map(|crawl| (crawl, &mut self.jobs)))
    }

    /// Queues pages as far as the budgets allow, writes the counters, and ends the crawls that have nothing left.
    pub(super) fn enter(mut self, ending: &mut MessageEnding<'_>) -> rusqlite::Result<()> {
        for crawl in self.crawls.into_values().flatten() {
            crawl.enter(&mut self.jobs, ending)?;
        }
        self.jobs.enter()
    }
}

/// The jobs of a crawl that have not ended.
#[derive(Clone, Copy, Debug, Default)]
struct OpenJobs {
    pages: u64,
    sitemaps: u64,
}

/// How pages ended.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    completed: u64,
    failed: u64,
    robots: u64,
    noindex: u64,
    redirected: u64,
}

/// A crawl in a transaction.
pub(super) struct CrawlChange<'a> {
    tx: &'a Connection,
    /// Its key in the table of crawls through the API.
    pub(super) key: i64,
    pub(super) id: CrawlId,
    pub(super) caller: String,
    pub(super) spec: CrawlSpec,
    callback_url: Option<String>,
    until: Time,
    is_cancelled: bool,
    pub(super) has_ended: bool,
    open: OpenJobs,
    ends: Ends,
    frontier: Crawl<'a>,
}

/// Queues the pages and sitemaps of a crawl in its lanes.
struct Admission<'m, 'a> {
    jobs: &'m mut Moves<'a>,
    id: CrawlId,
    retailer: &'m str,
    open: &'m mut OpenJobs,
}

impl Admit for Admission<'_, '_> {
    fn page(&mut self, url: &str, place: &PagePlace) -> rusqlite::Result<bool> {
        let payload = serde_json::to_vec(place).unwrap_or_default();
        let lane = lane_of_pages(self.id, self.retailer);
        let job = Job { lane, ..Job::new(url.to_owned(), payload) };
        let is_queued = self.jobs.accept(&NewJob::now(job))?;
        self.open.pages += u64::from(is_queued);
        Ok(is_queued)
    }

    /// The frontier knows the keys of the crawl's jobs. Those of other crawls may be equal.
    fn job(&mut self, new: &NewJob) -> rusqlite::Result<bool> {
        let job = Job { lane: lane_of_sitemaps(self.id, self.retailer), ..new.job.clone() };
        let is_queued = self.jobs.accept(&NewJob { job, key: None, due: new.due })?;
        self.open.sitemaps += u64::from(is_queued);
        Ok(is_queued)
    }
}

impl<'a> CrawlChange<'a> {
    fn read(tx: &'a Connection, id: CrawlId) -> rusqlite::Result<Option<CrawlChange<'a>>> {
        let select = "SELECT key, caller, spec, callback_url, until, cancelled_at IS NOT NULL,
                 ended_at IS NOT NULL, open_pages, open_sitemaps
             FROM message_crawl WHERE id = ?1";
        let change = tx.find(select, [id.0], |row| {
            let key: i64 = row.get(0)?;
            let spec = match parse_spec(id, &row.get::<_, String>(2)?) {
                Ok(spec) => spec,
                // The transaction may also contain other crawls. This one waits for a version that can read it.
                Err(unreadable) => {
                    debug!("{unreadable}");
                    return Ok(None);
                }
            };
            let budget = CrawlBudget {
                pages: spec.limit,
                pages_per_site: spec.limit_per_site,
                known: Some(spec.max_known()),
                sitemaps: Some(MAX_SITEMAPS_PER_CRAWL),
            };
            Ok(Some(CrawlChange {
                tx,
                key,
                id,
                caller: row.get(1)?,
                spec,
                callback_url: row.get(3)?,
                until: Time::from_micros(row.get(4)?),
                is_cancelled: row.get(5)?,
                has_ended: row.get(6)?,
                open: OpenJobs { pages: row.get(7)?, sitemaps: row.get(8)? },
                ends: Ends::default(),
                frontier: Crawl::read(tx, frontier_of(key), budget)?,
            }))
        })?;
        Ok(change.flatten())
    }

    /// Whether further pages may be queued.
    fn may_grow(&self, now: Time) -> bool {
        !self.has_ended && !self.is_cancelled && now < self.until
    }

    /// Whether another result has the content of this page, or will have it.
    pub(super) fn is_taken(&self, page: &PageKey) -> rusqlite::Result<bool> {
        self.frontier.is_taken(page)
    }

    /// Stores what was found. If the crawl is to end, that is only which pages need not be fetched: of two requests in
    /// flight, still only one may store a page.
    pub(super) fn discover(
        &mut self,
        jobs: &mut Moves<'a>,
        found: &Discoveries,
    ) -> rusqlite::Result<()> {
        if self.has_ended {
            return Ok(());
        }
        let only_known;
        let found = if self.may_grow(jobs.now) {
            found
        } else {
            let also_known = found.also_known.clone();
            only_known = Discoveries { also_known, takes: found.takes, ..Discoveries::default() };
            &only_known
        };
        let CrawlChange { id, spec, open, frontier, .. } = self;
        let mut admission = Admission { jobs, id: *id, retailer: &spec.retailer, open };
        frontier.discover(&mut admission, found)
    }

    /// Pages of all sites may be queued, not only of those that change.
    pub(super) fn look_everywhere(&mut self) {
        self.frontier.look_everywhere();
    }

    /// Counts the end of a page of this site.
    pub(super) fn end_page(
        &mut self,
        site: &str,
        settlement: &Settlement,
        result: &FetchResult,
    ) -> rusqlite::Result<()> {
        self.open.pages = self.open.pages.saturating_sub(1);
        self.frontier.settled(site, settlement)?;
        let ends = &mut self.ends;
        if result.is_success() {
            ends.completed += 1;
            return Ok(());
        }
        ends.failed += 1;
        match result.status.as_str() {
            FetchResult::REFUSED_BY_ROBOTS => ends.robots += 1,
            FetchResult::NOINDEX => ends.noindex += 1,
            FetchResult::REDIRECTED => ends.redirected += 1,
            _ => {}
        }
        Ok(())
    }

    /// Counts the end of a sitemap or a robots.txt.
    pub(super) fn end_sitemap(&mut self) {
        self.open.sitemaps = self.open.sitemaps.saturating_sub(1);
    }

    /// Removes waiting jobs of a crawl that is to end or has ended, at most so many. Returns how many.
    pub(super) fn remove_waiting(
        &mut self,
        jobs: &mut Moves<'a>,
        most: u32,
    ) -> rusqlite::Result<u32> {
        if self.may_grow(jobs.now) {
            return Ok(0);
        }
        let retailer = &self.spec.retailer;
        let pages = jobs.remove_waiting(&lane_of_pages(self.id, retailer), most)?;
        let sitemaps = jobs.remove_waiting(&lane_of_sitemaps(self.id, retailer), most - pages)?;
        self.open.pages = self.open.pages.saturating_sub(u64::from(pages));
        self.open.sitemaps = self.open.sitemaps.saturating_sub(u64::from(sitemaps));
        self.frontier.put_back(u64::from(pages));
        Ok(pages + sitemaps)
    }

    /// Why the crawl ends now; `None` if it goes on.
    fn end(&self, now: Time) -> Option<CrawlEnd> {
        if self.has_ended || self.open.pages > 0 {
            return None;
        }
        if self.is_cancelled {
            return Some(CrawlEnd::Cancelled);
        }
        // Even if nothing waits: the links of pages that ended later were not followed.
        if now >= self.until {
            return Some(CrawlEnd::MaxTime);
        }
        if self.frontier.waiting() == 0 && self.open.sitemaps == 0 {
            return Some(CrawlEnd::Completed);
        }
        // Sitemaps that are left could only name pages that the limit excludes.
        if self.frontier.is_budget_used() {
            return Some(CrawlEnd::Limit);
        }
        if self.open.sitemaps > 0 {
            return None;
        }
        // What waits is beyond the limit per site.
        Some(CrawlEnd::Limit)
    }

    fn enter(
        mut self,
        jobs: &mut Moves<'a>,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        if self.may_grow(jobs.now) {
            let CrawlChange { id, spec, open, frontier, .. } = &mut self;
            let mut admission = Admission { jobs, id: *id, retailer: &spec.retailer, open };
            frontier.queue_pages(&mut admission)?;
        }
        let end = self.end(jobs.now);
        let CrawlChange { tx, key, id, caller, callback_url, open, ends, frontier, .. } = self;
        frontier.write()?;
        let Ends { completed, failed, robots, noindex, redirected } = ends;
        tx.run(
            "UPDATE message_crawl SET open_pages = ?2, open_sitemaps = ?3,
                 completed = completed + ?4, failed = failed + ?5, robots = robots + ?6,
                 noindex = noindex + ?7, redirected = redirected + ?8 WHERE key = ?1",
            (key, open.pages, open.sitemaps, completed, failed, robots, noindex, redirected),
        )?;
        if let Some(end) = end {
            let (number, place) = ending.number_end(&id.to_string(), caller, callback_url)?;
            tx.run(
                "UPDATE message_crawl SET ended_at = ?2, end_reason = ?3, number = ?4, place = ?5
                 WHERE key = ?1",
                (key, ending.wall.as_micros(), end.word(), number, place),
            )?;
        }
        Ok(())
    }
}

/// The number of a crawl in the tables of crawls. Queues have positive ones.
pub(super) fn frontier_of(key: i64) -> i64 {
    -key
}

pub(super) fn spec_in(id: CrawlId, row: &Row<'_>, column: usize) -> rusqlite::Result<CrawlSpec> {
    parse_spec(id, &row.get::<_, String>(column)?).map_err(own_error)
}

fn parse_spec(id: CrawlId, spec: &str) -> Result<CrawlSpec, StoreError> {
    serde_json::from_str(spec).map_err(|error| {
        let unreadable = StoreError::incompatible(format!(
            "could not parse the settings of {id}: a newer version may have written them"
        ));
        unreadable.with_source(error).with_advice("upgrade Fetchwell")
    })
}
