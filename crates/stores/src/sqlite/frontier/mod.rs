//! The frontier of a crawl: the known pages that are not queued yet.
//!
//! Known pages wait here, at a fraction of the size of a job, and each site has only a few jobs at a time. So the queue
//! stays small, sites take turns, and no site uses up the budget before the others get their share.

mod crawl;

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::frontier::{
    CrawlBudget, CrawlCounts, CutOff, Discoveries, Discovers, Frontier, PagePlace, WaitingSite,
};
use fetchwell_engine::ports::job::{Job, LeaseId, NewJob};
use fetchwell_policy::crawl::PageKey;
use fetchwell_policy::url::Site;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use self::crawl::{OTHER_SITES, is_taken};
use super::files::OutputFile;
use super::moves::Moves;
use super::queue::settle_batch;
use super::{SqliteInstance, SqliteQueue};

pub(super) use crawl::{Admit, CRAWL_TABLES, Crawl};

/// The maximum number of sites that an estimate considers.
const SITES_IN_ESTIMATE: usize = 10_000;

/// Queues pages in the queue that belongs to the crawl alone.
struct OwnQueue<'m, 'a>(&'m mut Moves<'a>);

impl Admit for OwnQueue<'_, '_> {
    fn page(&mut self, url: &str, place: &PagePlace) -> rusqlite::Result<bool> {
        let payload = serde_json::to_vec(place).unwrap_or_default();
        self.0.accept(&NewJob::now(Job::new(url.to_owned(), payload)))
    }

    fn job(&mut self, job: &NewJob) -> rusqlite::Result<bool> {
        self.0.accept(job)
    }
}

/// The frontier of the crawl that uses a queue.
#[derive(Clone)]
pub struct SqliteFrontier {
    queue: SqliteQueue,
    budget: CrawlBudget,
}

impl SqliteFrontier {
    /// The frontier of this queue, within this budget.
    pub fn new(queue: SqliteQueue, budget: CrawlBudget) -> SqliteFrontier {
        SqliteFrontier { queue, budget }
    }

    /// Runs `work` and queues pages as far as the budget allows, in one transaction.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Moves<'_>, &mut Crawl<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let budget = self.budget;
        let changed = self
            .queue
            .transact(move |moves| {
                let mut crawl = Crawl::read(moves.tx, moves.queue, budget)?;
                let done = work(moves, &mut crawl)?;
                crawl.queue_pages(&mut OwnQueue(moves))?;
                crawl.write()?;
                Ok(done)
            })
            .await?;
        self.queue.news.notify_one();
        Ok(changed)
    }
}

#[async_trait]
impl Frontier for SqliteFrontier {
    async fn add(&self, found: Discoveries) -> Result<(), StoreError> {
        self.change(move |moves, crawl| {
            crawl.look_everywhere();
            crawl.discover(&mut OwnQueue(moves), &found)
        })
        .await
    }

    async fn counts(&self) -> Result<CrawlCounts, StoreError> {
        let select = "SELECT known, pages, waiting, sites,
                 (SELECT coalesce(max(waiting + open), 0)
                  FROM (SELECT waiting, open FROM crawl_site WHERE queue = ?1 LIMIT ?2))
             FROM crawl WHERE queue = ?1";
        let read = move |tx: &Connection, queue: i64| {
            tx.find(select, (queue, SITES_IN_ESTIMATE), |row| {
                let (known, admitted, waiting, sites, longest) = <(_, _, _, _, _)>::try_from(row)?;
                Ok(CrawlCounts { known, admitted, waiting, sites, longest })
            })
        };
        Ok(self.queue.read(read).await?.unwrap_or_default())
    }

    async fn is_budget_finished(&self) -> Result<bool, StoreError> {
        let select = "SELECT pages >= ?2 AND NOT EXISTS
                 (SELECT 1 FROM crawl_site WHERE queue = ?1 AND open > 0)
             FROM crawl WHERE queue = ?1";
        let pages = self.budget.pages;
        let read =
            move |tx: &Connection, queue: i64| tx.find(select, (queue, pages), |row| row.get(0));
        Ok(self.queue.read(read).await?.unwrap_or(false))
    }

    async fn waiting_sites(&self, most: usize) -> Result<Vec<WaitingSite>, StoreError> {
        let select = "SELECT site, waiting FROM crawl_site WHERE queue = ?1 AND waiting > 0
             ORDER BY waiting DESC, site LIMIT ?2";
        let read = move |tx: &Connection, queue: i64| {
            tx.list(select, (queue, most), |row| {
                Ok(WaitingSite { site: row.get(0)?, pages: row.get(1)? })
            })
        };
        self.queue.read(read).await
    }

    async fn are_taken(&self, pages: Vec<PageKey>) -> Result<Vec<bool>, StoreError> {
        let read = move |tx: &Connection, queue: i64| {
            pages.iter().map(|key| is_taken(tx, queue, key)).collect()
        };
        self.queue.read(read).await
    }

    async fn cut_off(&self, most: usize) -> Result<Vec<CutOff>, StoreError> {
        self.queue.read(move |tx, queue| cut_off(tx, queue, most)).await
    }
}

/// The links of a crawl that were cut off.
pub(super) fn cut_off(tx: &Connection, queue: i64, most: usize) -> rusqlite::Result<Vec<CutOff>> {
    let select = "SELECT reason, site, links, example FROM crawl_cut WHERE queue = ?1
         ORDER BY links DESC, reason, site LIMIT ?2";
    tx.list(select, (queue, most), |row| {
        let (reason, site, links, example) = <(_, String, _, _)>::try_from(row)?;
        let site = (site != OTHER_SITES).then_some(site);
        Ok(CutOff { reason, site, links, example })
    })
}

/// Renders a record as bytes.
type Render<R> = Box<dyn Fn(&R) -> Vec<u8> + Send + Sync>;

/// Settles the leases of a crawl, and stores what was found on their pages in the same transaction. With a file, it
/// also writes the records there, as [`FileFinish`](super::FileFinish) does.
pub struct CrawlFinish<R> {
    frontier: SqliteFrontier,
    instance: Arc<SqliteInstance>,
    output: Option<OutputFile>,
    render: Render<R>,
}

impl<R> CrawlFinish<R> {
    /// Settles leases of this instance. `render` turns a record into bytes.
    pub fn new(
        frontier: SqliteFrontier,
        instance: Arc<SqliteInstance>,
        output: Option<OutputFile>,
        render: impl Fn(&R) -> Vec<u8> + Send + Sync + 'static,
    ) -> CrawlFinish<R> {
        CrawlFinish { frontier, instance, output, render: Box::new(render) }
    }
}

/// How a lease ends.
struct Ended {
    /// The site of a page; `None` for all other jobs.
    site: Option<String>,
    found: Vec<Arc<Discoveries>>,
    bytes: Vec<u8>,
}

#[async_trait]
impl<R: Discovers + Send + Sync> Finish<R> for CrawlFinish<R> {
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError> {
        let settlements: Vec<(LeaseId, Settlement)> =
            batch.iter().map(|f| (f.lease.id, f.settlement.clone())).collect();
        let has_output = self.output.is_some();
        let ended = batch.iter().map(|finished| {
            let job = &finished.lease.job;
            let site = || job.site.as_ref().map_or("", Site::as_str).to_owned();
            let rendered = finished.records.iter().filter(|_| has_output).map(|r| (self.render)(r));
            Ended {
                site: PagePlace::is_of(job).then(site),
                found: finished.records.iter().map(|r| r.discoveries().clone()).collect(),
                bytes: rendered.collect::<Vec<_>>().concat(),
            }
        });
        let ended: Vec<Ended> = ended.collect();
        let epoch = self.instance.epoch();
        let output = self.output.clone();
        self.frontier
            .change(move |moves, crawl| {
                let settled = settle_batch(moves, epoch, &settlements)?;
                let mut bytes = Vec::new();
                let ends = settlements.iter().zip(&ended).zip(&settled);
                for (((_, settlement), ended), _) in
                    ends.filter(|(_, settled)| **settled == Settled::Confirmed)
                {
                    if let Some(site) = &ended.site {
                        crawl.settled(site, settlement)?;
                    }
                    for found in &ended.found {
                        crawl.discover(&mut OwnQueue(moves), found)?;
                    }
                    bytes.extend_from_slice(&ended.bytes);
                }
                if let Some(output) = output {
                    output.append(moves.tx, &bytes)?;
                }
                Ok(settled)
            })
            .await
    }
}
