//! Crawls through the API, as their callers see them.
//!
//! Their pages and sitemaps are jobs of one queue, in a lane per crawl, and their frontiers are those of
//! [`frontier`](super::frontier). Every change of a crawl goes through [`CrawlQueues::change`].

mod changes;
mod finish;

use async_trait::async_trait;
use fetchwell_engine::ports::crawls::{
    CRAWLS_PER_PAGE, CrawlEnd, CrawlSpec, CrawlStarted, CrawlTally, Crawls, MAX_OPEN_CRAWLS,
    MessageCrawl, NewCrawl, STOPPED_AT_ONCE, lane_of_pages, lane_of_sitemaps,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::frontier::{CutOff, Discoveries};
use fetchwell_engine::ports::inbox::{CrawlId, Idempotency, OutboxMost, OutboxPage};
use fetchwell_engine::ports::message_batches::{Completion, ReadUpTo};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, OptionalExtension, Row};

use self::changes::{CrawlChanges, frontier_of, spec_in};
use super::frontier::cut_off;
use super::moves::{MessageEnding, Moves};
use super::outbox::{results_in, select_result};
use super::retriever_queues::RetrieverQueues;
use super::{SqliteQueue, callers};

pub(super) use finish::CrawlPagesFinish;

/// The name of the queue of pages and sitemaps.
pub(super) const CRAWL_JOBS: &str = "crawls";

/// The maximum number of rows of each table of crawls that one transaction deletes.
const CLEANED_AT_ONCE: u32 = 5_000;

/// The maximum number of crawls that one pruning deletes.
const PRUNED_AT_ONCE: u32 = 10;

/// The queues that change with crawls.
#[derive(Clone)]
pub(super) struct CrawlQueues {
    pub(super) retriever: RetrieverQueues,
    /// The queue of pages and sitemaps.
    pub(super) jobs: SqliteQueue,
}

impl CrawlQueues {
    /// Runs `work` in one transaction, in which the crawls that it touches queue pages and end.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(
            &mut Moves<'_>,
            &mut CrawlChanges<'_>,
            &mut MessageEnding<'_>,
        ) -> rusqlite::Result<T>
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        let queue = self.jobs.queue;
        let done = self
            .retriever
            .transact(move |messages, ending| {
                let jobs = Moves::new(messages.tx, queue, messages.now);
                let mut changes = CrawlChanges::new(jobs);
                let done = work(messages, &mut changes, ending)?;
                changes.enter(ending)?;
                Ok(done)
            })
            .await?;
        self.jobs.news.notify_one();
        Ok(done)
    }

    /// Adds what was found to a crawl.
    async fn discover(&self, id: CrawlId, found: Discoveries) -> Result<(), StoreError> {
        self.change(move |_, changes, _| {
            if let Some((crawl, jobs)) = changes.crawl(id)? {
                crawl.discover(jobs, &found)?;
            }
            Ok(())
        })
        .await
    }
}

/// The crawls of a file.
pub(super) struct SqliteCrawls {
    pub(super) reader: Db,
    pub(super) queues: CrawlQueues,
}

macro_rules! select_crawl {
    ($rest:literal) => {
        concat!(
            "SELECT id, caller, spec, created_at, cancelled_at, ended_at, end_reason,
                 coalesce(crawl.known, 0), coalesce(crawl.waiting, 0), coalesce(crawl.sites, 0),
                 open_pages, open_sitemaps, completed, failed, robots, noindex, redirected, number,
                 place
             FROM message_crawl LEFT JOIN crawl ON crawl.queue = -message_crawl.key ",
            $rest
        )
    };
}

#[async_trait]
impl Crawls for SqliteCrawls {
    async fn start(&self, new: NewCrawl) -> Result<CrawlStarted, StoreError> {
        self.queues
            .change(move |messages, changes, ending| start(&new, messages, changes, ending))
            .await
    }

    async fn crawl(
        &self,
        id: CrawlId,
        of: Option<&str>,
    ) -> Result<Option<MessageCrawl>, StoreError> {
        let of = of.map(str::to_owned);
        let select = select_crawl!("WHERE id = ?1 AND (?2 IS NULL OR caller = ?2)");
        self.reader.write(move |tx| tx.find(select, (id.0, of), crawl_in)).await
    }

    async fn crawls(
        &self,
        of: &str,
        after: Option<CrawlId>,
        most: u32,
    ) -> Result<Vec<MessageCrawl>, StoreError> {
        let of = of.to_owned();
        let most = most.min(CRAWLS_PER_PAGE);
        // No id is as high.
        let before = after.map_or([0xff; 16], |after| after.0);
        let select = select_crawl!("WHERE caller = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
        self.reader.write(move |tx| tx.list(select, (of, before, most), crawl_in)).await
    }

    async fn open_spec(&self, id: CrawlId) -> Result<Option<CrawlSpec>, StoreError> {
        let select = "SELECT spec FROM message_crawl WHERE id = ?1 AND ended_at IS NULL";
        self.reader.write(move |tx| tx.find(select, [id.0], |row| spec_in(id, row, 0))).await
    }

    async fn results(
        &self,
        id: CrawlId,
        of: Option<&str>,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<Option<OutboxPage>, StoreError> {
        let of = of.map(str::to_owned);
        self.reader.write(move |tx| results(tx, id, of.as_deref(), after, most)).await
    }

    async fn cut_off(&self, id: CrawlId, most: u32) -> Result<Vec<CutOff>, StoreError> {
        self.reader
            .write(move |tx| {
                let select = "SELECT key FROM message_crawl WHERE id = ?1";
                let key: Option<i64> = tx.find(select, [id.0], |row| row.get(0))?;
                let Some(key) = key else { return Ok(Vec::new()) };
                cut_off(tx, frontier_of(key), usize::try_from(most).unwrap_or(usize::MAX))
            })
            .await
    }

    async fn ended_crawls(
        &self,
        caller: &str,
        read: ReadUpTo,
        until: i64,
        most: u32,
    ) -> Result<Vec<MessageCrawl>, StoreError> {
        let caller = caller.to_owned();
        self.reader
            .write(move |tx| {
                let number = match read {
                    ReadUpTo::Nothing => 0,
                    ReadUpTo::Number(number) => number,
                    // A higher number has no lower place, so the search ends with the first that is found.
                    ReadUpTo::Cursor(cursor) => tx
                        .find(
                            "SELECT number FROM message_crawl
                             WHERE caller = ?1 AND number IS NOT NULL AND place < ?2
                             ORDER BY number DESC LIMIT 1",
                            (&caller, cursor),
                            |row| row.get(0),
                        )?
                        .unwrap_or(0),
                };
                let select = select_crawl!(
                    "WHERE caller = ?1 AND number IS NOT NULL AND number > ?2 AND place <= ?3
                     ORDER BY number LIMIT ?4"
                );
                tx.list(select, (&caller, number, until, most), crawl_in)
            })
            .await
    }

    async fn cancel(&self, id: CrawlId, of: Option<&str>) -> Result<bool, StoreError> {
        let of = of.map(str::to_owned);
        self.queues
            .change(move |messages, changes, ending| {
                let tx = messages.tx;
                let select =
                    "SELECT 1 FROM message_crawl WHERE id = ?1 AND (?2 IS NULL OR caller = ?2)";
                if !tx.has(select, (id.0, of))? {
                    return Ok(false);
                }
                tx.run(
                    "UPDATE message_crawl SET cancelled_at = ?2
                     WHERE id = ?1 AND ended_at IS NULL AND cancelled_at IS NULL",
                    (id.0, ending.wall.as_micros()),
                )?;
                // It ends now if none of its pages is left.
                changes.crawl(id)?;
                Ok(true)
            })
            .await
    }

    async fn stop_some(&self, id: CrawlId) -> Result<u32, StoreError> {
        self.queues.change(move |_, changes, _| remove_waiting(changes, id)).await
    }

    async fn untidy(&self) -> Result<Vec<CrawlId>, StoreError> {
        let now = self.queues.jobs.clock.now().as_micros();
        let select = "SELECT id FROM message_crawl INDEXED BY message_crawl_unclean
             WHERE is_clean = 0
                 AND (ended_at IS NOT NULL OR cancelled_at IS NOT NULL OR until <= ?1)
             ORDER BY key LIMIT ?2";
        self.reader
            .write(move |tx| tx.list(select, (now, MAX_OPEN_CRAWLS), |row| row.get(0).map(CrawlId)))
            .await
    }

    async fn tidy(&self, id: CrawlId) -> Result<bool, StoreError> {
        self.queues
            .change(move |messages, changes, _| {
                if remove_waiting(changes, id)? > 0 {
                    return Ok(true);
                }
                let has_ended = match changes.crawl(id)? {
                    Some((crawl, _)) => crawl.has_ended,
                    None => return Ok(false),
                };
                if !has_ended {
                    return Ok(false);
                }
                clean(messages.tx, id)
            })
            .await
    }
}

/// Starts a crawl, unless a limit forbids it.
fn start(
    new: &NewCrawl,
    messages: &mut Moves<'_>,
    changes: &mut CrawlChanges<'_>,
    ending: &mut MessageEnding<'_>,
) -> rusqlite::Result<CrawlStarted> {
    let tx = messages.tx;
    let now = messages.now;
    if let Some(answer) = earlier_answer(tx, new)? {
        return Ok(answer);
    }
    let open = |of: Option<&str>, most: u32| -> rusqlite::Result<bool> {
        let select = "SELECT count(*) FROM (SELECT 1 FROM message_crawl
                 WHERE ended_at IS NULL AND (?1 IS NULL OR caller = ?1) LIMIT ?2)";
        let count: u32 = tx.one(select, (of, most), |row| row.get(0))?;
        Ok(count >= most)
    };
    if open(Some(&new.caller), new.max_open)? {
        return Ok(CrawlStarted::TooManyOpen);
    }
    if open(None, MAX_OPEN_CRAWLS)? {
        return Ok(CrawlStarted::StoreFull);
    }
    tx.run(
        "INSERT INTO message_crawl (id, caller, spec, callback_url, created_at, until)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (
            new.id.0,
            &new.caller,
            serde_json::to_string(&new.spec).unwrap_or_default(),
            &new.callback_url,
            ending.wall.as_micros(),
            (now + new.spec.max_time).as_micros(),
        ),
    )?;
    if let Some(Idempotency { key, body_hash }) = &new.idempotency {
        tx.run(
            "INSERT INTO idempotency VALUES (?1, ?2, ?3, ?4, ?5)",
            (&new.caller, key, body_hash, new.id.0, now.as_micros()),
        )?;
    }
    callers::audit(tx, &new.audit)?;
    if let Some((crawl, jobs)) = changes.crawl(new.id)? {
        crawl.look_everywhere();
        crawl.discover(jobs, &new.starts)?;
    }
    Ok(CrawlStarted::Started(new.id))
}

/// The answer that this request got the first time.
fn earlier_answer(tx: &Connection, new: &NewCrawl) -> rusqlite::Result<Option<CrawlStarted>> {
    let Some(Idempotency { key, body_hash }) = &new.idempotency else { return Ok(None) };
    let select = "SELECT body_hash, messages FROM idempotency WHERE caller = ?1 AND key = ?2";
    let found: Option<([u8; 32], Vec<u8>)> =
        tx.find(select, (&new.caller, key), |row| row.try_into())?;
    Ok(found.map(|(hash, id)| match <[u8; 16]>::try_from(id) {
        Ok(id) if hash == *body_hash => CrawlStarted::Started(CrawlId(id)),
        _ => CrawlStarted::KeyUsedOtherwise,
    }))
}

fn remove_waiting(changes: &mut CrawlChanges<'_>, id: CrawlId) -> rusqlite::Result<u32> {
    match changes.crawl(id)? {
        Some((crawl, jobs)) => crawl.remove_waiting(jobs, STOPPED_AT_ONCE),
        None => Ok(0),
    }
}

/// Deletes a part of the frontier of a crawl that has ended. Its counters stay, and so do the links that were cut off.
/// Returns whether more is left.
fn clean(tx: &Connection, id: CrawlId) -> rusqlite::Result<bool> {
    let select = "SELECT key FROM message_crawl WHERE id = ?1";
    let key: i64 = tx.one(select, [id.0], |row| row.get(0))?;
    let mut deleted = 0;
    for statement in [
        "DELETE FROM crawl_seen WHERE queue = ?1 AND key IN (
             SELECT key FROM crawl_seen WHERE queue = ?1 LIMIT ?2)",
        "DELETE FROM crawl_link WHERE queue = ?1 AND (site, depth, number) IN (
             SELECT site, depth, number FROM crawl_link WHERE queue = ?1 LIMIT ?2)",
        "DELETE FROM crawl_bucket WHERE queue = ?1 AND bucket IN (
             SELECT bucket FROM crawl_bucket WHERE queue = ?1 LIMIT ?2)",
        "DELETE FROM crawl_parent WHERE id IN (
             SELECT id FROM crawl_parent WHERE queue = ?1 LIMIT ?2)",
        "DELETE FROM crawl_site WHERE id IN (SELECT id FROM crawl_site WHERE queue = ?1 LIMIT ?2)",
    ] {
        deleted += tx.run(statement, (frontier_of(key), CLEANED_AT_ONCE))?;
    }
    if deleted == 0 {
        tx.run("UPDATE message_crawl SET is_clean = 1 WHERE key = ?1", [key])?;
    }
    Ok(deleted > 0)
}

/// Deletes crawls that ended before this time by the wall clock, and whose results are gone. One with many links that
/// were not followed is deleted in several steps.
pub(super) fn prune(tx: &Connection, before: Time) -> rusqlite::Result<()> {
    let gone: Vec<(i64, [u8; 16], String)> = tx.list(
        "SELECT key, id, coalesce(json_extract(spec, '$.retailer'), '') FROM message_crawl AS old
         WHERE ended_at < ?1 AND is_clean = 1
             AND NOT EXISTS (SELECT 1 FROM message_crawl_result WHERE crawl = old.key)
         ORDER BY ended_at LIMIT ?2",
        (before.as_micros(), PRUNED_AT_ONCE),
        |row| row.try_into(),
    )?;
    if gone.is_empty() {
        return Ok(());
    }
    let select = "SELECT id FROM queue WHERE name = ?1";
    let queue: Option<i64> = tx.query_row(select, [CRAWL_JOBS], |row| row.get(0)).optional()?;
    let mut room = CLEANED_AT_ONCE;
    for (key, id, retailer) in gone {
        let cut = tx.run(
            "DELETE FROM crawl_cut WHERE queue = ?1 AND (reason, site) IN (
                 SELECT reason, site FROM crawl_cut WHERE queue = ?1 LIMIT ?2)",
            (frontier_of(key), room),
        )?;
        room = room.saturating_sub(u32::try_from(cut).unwrap_or(u32::MAX));
        if room == 0 {
            return Ok(());
        }
        tx.run("DELETE FROM crawl WHERE queue = ?1", [frontier_of(key)])?;
        tx.run("DELETE FROM message_crawl WHERE key = ?1", [key])?;
        let Some(queue) = queue else { continue };
        let jobs = Moves::new(tx, queue, Time::EPOCH);
        jobs.forget_lane(&lane_of_pages(CrawlId(id), &retailer))?;
        jobs.forget_lane(&lane_of_sitemaps(CrawlId(id), &retailer))?;
    }
    Ok(())
}

fn results(
    tx: &Connection,
    id: CrawlId,
    of: Option<&str>,
    after: Option<i64>,
    most: OutboxMost,
) -> rusqlite::Result<Option<OutboxPage>> {
    let select = "SELECT message_crawl.key, message_crawl.pruned, coalesce(caller.results, 0)
         FROM message_crawl LEFT JOIN caller ON caller.name = message_crawl.caller
         WHERE message_crawl.id = ?1 AND (?2 IS NULL OR message_crawl.caller = ?2)";
    let extent: Option<(i64, i64, i64)> = tx.find(select, (id.0, of), |row| row.try_into())?;
    let Some((key, pruned, newest)) = extent else { return Ok(None) };
    let after = after.unwrap_or(pruned);
    if after < pruned || after > newest {
        return Ok(Some(OutboxPage::Gone { oldest: pruned }));
    }
    let mut select = tx.prepare_cached(concat!(
        select_result!(),
        " JOIN message_crawl_result AS entry ON entry.job = outbox.job
         WHERE entry.crawl = ?1 AND entry.place > ?2 ORDER BY entry.place LIMIT ?3"
    ))?;
    results_in(select.query((key, after, most.results))?, after, most).map(Some)
}

fn crawl_in(row: &Row<'_>) -> rusqlite::Result<MessageCrawl> {
    let time = |micros: Option<i64>| micros.map(Time::from_micros);
    let id = CrawlId(row.get(0)?);
    let end: Option<String> = row.get(6)?;
    let number: Option<i64> = row.get(17)?;
    let cursor: Option<i64> = row.get(18)?;
    Ok(MessageCrawl {
        id,
        caller: row.get(1)?,
        spec: spec_in(id, row, 2)?,
        created_at: Time::from_micros(row.get(3)?),
        cancelled_at: time(row.get(4)?),
        ended_at: time(row.get(5)?),
        end: end.as_deref().and_then(CrawlEnd::named),
        counts: CrawlTally {
            known: row.get(7)?,
            waiting: row.get(8)?,
            sites: row.get(9)?,
            queued: row.get(10)?,
            sitemaps_left: row.get(11)?,
            completed: row.get(12)?,
            failed: row.get(13)?,
            robots: row.get(14)?,
            noindex: row.get(15)?,
            redirected: row.get(16)?,
        },
        completion: number.zip(cursor).map(|(number, cursor)| Completion { number, cursor }),
    })
}
