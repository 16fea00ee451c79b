//! Ends the pages and sitemaps of crawls through the API.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::crawls::crawl_of;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::frontier::{CrawlRecord, Discoveries, PagePlace};
use fetchwell_engine::ports::inbox::options::kind;
use fetchwell_engine::ports::inbox::{CrawlId, FetchResult, MessageId, NewMessage};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::seed::random_seed;
use fetchwell_policy::url::Site;

use super::CrawlQueues;
use super::changes::{CrawlChange, CrawlChanges};
use crate::shared::conclusion::is_final;
use crate::sqlite::SqliteInstance;
use crate::sqlite::moves::{MessageEnding, Moves, NewRow};
use crate::sqlite::queue::is_live;

/// The maximum number of found pages and sitemaps that one transaction adds: the links of one page, at most. Other
/// writers wait for it.
const MAX_FOUND: usize = 10_000;

/// The deadline of a message that is a copy of a page, if an operator retries it.
const RETRY_DEADLINE: Duration = Duration::from_secs(3_600);

/// Ends pages: writes message, result, links, counters and ledgers in one transaction.
pub(in crate::sqlite) struct CrawlPagesFinish {
    pub(in crate::sqlite) instance: Arc<SqliteInstance>,
    pub(in crate::sqlite) queues: CrawlQueues,
}

/// How a lease ends.
struct End {
    lease: LeaseId,
    settlement: Settlement,
    crawl: Option<CrawlId>,
    url: String,
    /// `None` if the URL is invalid.
    site: Option<Site>,
    is_page: bool,
    result: Option<FetchResult>,
    /// The result if another one has the page.
    redirected: Option<FetchResult>,
    found: Arc<Discoveries>,
}

impl End {
    fn of(finished: &Finished<CrawlRecord<FetchResult>>, found: Arc<Discoveries>) -> End {
        let job = &finished.lease.job;
        let record = finished.records.first();
        End {
            lease: finished.lease.id,
            settlement: finished.settlement.clone(),
            crawl: crawl_of(&job.lane),
            url: job.url.clone(),
            site: job.site.clone(),
            is_page: PagePlace::is_of(job),
            result: record.and_then(|record| record.row.clone()),
            redirected: record.and_then(|record| record.redirected.clone()),
            found,
        }
    }

    fn site(&self) -> &str {
        self.site.as_ref().map_or("", Site::as_str)
    }
}

#[async_trait]
impl Finish<CrawlRecord<FetchResult>> for CrawlPagesFinish {
    async fn finish(
        &self,
        batch: &[Finished<CrawlRecord<FetchResult>>],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut settled = Vec::with_capacity(batch.len());
        let mut rest = batch;
        while !rest.is_empty() {
            let (part, later) = rest.split_at(part_length(rest));
            settled.extend(self.finish_part(part).await?);
            rest = later;
        }
        Ok(settled)
    }
}

/// How many leases of a batch end in the next transaction. One alone may have found more: see [`CrawlPagesFinish::add_ahead`].
fn part_length(batch: &[Finished<CrawlRecord<FetchResult>>]) -> usize {
    let mut found = 0;
    let found_by = |finished: &Finished<CrawlRecord<FetchResult>>| -> usize {
        finished.records.iter().map(|record| found_count(&record.found)).sum()
    };
    let fits = batch.iter().take_while(|finished| {
        found += found_by(finished);
        found <= MAX_FOUND
    });
    fits.count().max(1)
}

fn found_count(found: &Discoveries) -> usize {
    found.pages.len() + found.jobs.len()
}

impl CrawlPagesFinish {
    async fn finish_part(
        &self,
        part: &[Finished<CrawlRecord<FetchResult>>],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut ends = Vec::with_capacity(part.len());
        for finished in part {
            let found = match finished.records.first() {
                Some(record) => {
                    self.add_ahead(crawl_of(&finished.lease.job.lane), &record.found).await?
                }
                None => Arc::default(),
            };
            ends.push(End::of(finished, found));
        }
        let epoch = self.instance.epoch();
        let settled = self
            .queues
            .change(move |messages, changes, ending| {
                if !is_live(messages.tx, epoch, messages.now)? {
                    return Ok(vec![(Settled::Stale, false); ends.len()]);
                }
                ends.iter().map(|end| settle(epoch, end, messages, changes, ending)).collect()
            })
            .await?;
        for (finished, (_, is_elsewhere)) in part.iter().zip(&settled) {
            finished.records.iter().for_each(|record| record.set_elsewhere(*is_elsewhere));
        }
        Ok(settled.into_iter().map(|(settled, _)| settled).collect())
    }

    /// A sitemap may list more pages, or more sitemaps, than one transaction should add. They are added ahead, in
    /// transactions of their own, and what is left is returned. If the process is killed in between, the sitemap is read
    /// again, and what is known already stays known.
    async fn add_ahead(
        &self,
        crawl: Option<CrawlId>,
        found: &Arc<Discoveries>,
    ) -> Result<Arc<Discoveries>, StoreError> {
        let Some(crawl) = crawl.filter(|_| found_count(found) > MAX_FOUND) else {
            return Ok(found.clone());
        };
        for pages in found.pages.chunks(MAX_FOUND) {
            let parent = found.parent.clone();
            let some = Discoveries { parent, pages: pages.to_vec(), ..Discoveries::default() };
            self.queues.discover(crawl, some).await?;
        }
        for jobs in found.jobs.chunks(MAX_FOUND) {
            let job_bound = found.job_bound;
            let some = Discoveries { jobs: jobs.to_vec(), job_bound, ..Discoveries::default() };
            self.queues.discover(crawl, some).await?;
        }
        Ok(Arc::new(Discoveries {
            also_known: found.also_known.clone(),
            takes: found.takes,
            content: found.content,
            ..Discoveries::default()
        }))
    }
}

/// Settles a lease. Returns also whether another result has the page to which this one redirects.
fn settle<'a>(
    epoch: i64,
    end: &End,
    messages: &mut Moves<'_>,
    changes: &mut CrawlChanges<'a>,
    ending: &mut MessageEnding<'_>,
) -> rusqlite::Result<(Settled, bool)> {
    if !is_final(&end.settlement) {
        return Ok((changes.jobs.settle(epoch, end.lease, &end.settlement)?, false));
    }
    // Nothing is dead: each page has a result that says what happened.
    let done = match end.settlement {
        Settlement::Skipped => Settlement::Skipped,
        _ => Settlement::Done,
    };
    let settled = changes.jobs.settle(epoch, end.lease, &done)?;
    let crawl = match end.crawl {
        Some(crawl) if settled == Settled::Confirmed => changes.crawl(crawl)?,
        _ => None,
    };
    let Some((crawl, jobs)) = crawl else { return Ok((settled, false)) };
    if !end.is_page {
        crawl.end_sitemap();
        crawl.discover(jobs, &end.found)?;
        return Ok((settled, false));
    }
    let is_elsewhere = match (&end.redirected, &end.found.takes) {
        (Some(_), Some(target)) => crawl.is_taken(target)?,
        _ => false,
    };
    let result = end.redirected.as_ref().filter(|_| is_elsewhere).or(end.result.as_ref());
    let without = without_result(&end.settlement);
    let result = result.unwrap_or(&without);
    put_out(end, crawl, result, messages, ending)?;
    crawl.end_page(end.site(), &done, result)?;
    crawl.discover(jobs, &end.found)?;
    Ok((settled, is_elsewhere))
}

/// The result of a page that ended without one.
fn without_result(settlement: &Settlement) -> FetchResult {
    let reason = match settlement {
        Settlement::Dead { reason } => reason.as_str(),
        _ => "it ended without a result",
    };
    FetchResult {
        status: FetchResult::INTERNAL_ERROR.to_owned(),
        error: Some(format!("given up: {reason}")),
        ..FetchResult::default()
    }
}

/// Stores a page as a message that has ended.
fn put_out(
    end: &End,
    crawl: &CrawlChange<'_>,
    result: &FetchResult,
    messages: &mut Moves<'_>,
    ending: &mut MessageEnding<'_>,
) -> rusqlite::Result<()> {
    // The API and the plans refuse invalid URLs.
    let Some(site) = end.site.clone() else { return Ok(()) };
    let spec = &crawl.spec;
    let chance = u128::from(random_seed()) << 64 | u128::from(random_seed());
    // Even without random numbers, it differs from that of the next page.
    let id = MessageId::new(ending.wall, chance ^ u128::from(end.lease.unsigned_abs()));
    let correlation_id = spec.correlation_id.clone().unwrap_or_else(|| crawl.id.to_string());
    let options = spec.options.to_payload();
    let caller = crawl.caller.as_str();
    let new = NewMessage {
        retailer: spec.retailer.clone(),
        correlation_id,
        kind: kind(caller, &end.url, &options),
        options: options.into(),
        ..NewMessage::new(id, end.url.clone(), site, RETRY_DEADLINE)
    };
    let row = NewRow { new: &new, caller, batch: None };
    let skipped = end.settlement == Settlement::Skipped;
    messages.accept_ended(row, crawl.key, result, skipped, ending)
}
