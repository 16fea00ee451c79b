//! Results: ending messages, and reading results for callers.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    FetchResult, MessageId, OutboxMessage, OutboxMost, OutboxPage, ResultNotifier,
};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use rusqlite::{Connection, OptionalExtension, Row};

use super::moves::{MessageEnding, Moves};
use super::queue::is_live;
use super::{SqliteInstance, SqliteQueue};

/// Ends messages: writes result, status, cursor, delivery and ledger in one transaction.
pub(super) struct MessageFinish {
    pub(super) instance: Arc<SqliteInstance>,
    pub(super) deliveries: SqliteQueue,
    pub(super) results: ResultNotifier,
}

/// How one lease ends; owned, for the thread of the store.
struct End {
    id: LeaseId,
    settlement: Settlement,
    result: Option<FetchResult>,
}

impl End {
    /// Whether the message ends with this.
    fn is_final(&self) -> bool {
        use Settlement::{Dead, Done, Skipped};
        matches!(self.settlement, Done | Skipped | Dead { .. })
    }
}

#[async_trait]
impl Finish<FetchResult> for MessageFinish {
    async fn finish(&self, batch: &[Finished<FetchResult>]) -> Result<Vec<Settled>, StoreError> {
        let ends: Vec<End> = batch
            .iter()
            .map(|finished| End {
                id: finished.lease.id,
                settlement: finished.settlement.clone(),
                result: finished.records.first().cloned(),
            })
            .collect();
        let queue = &self.instance.queue;
        let epoch = self.instance.epoch();
        let clock = queue.clock.clone();
        let messages = queue.queue;
        let deliveries = self.deliveries.queue;
        let work = move |tx: &Connection| {
            let now = clock.now();
            let wall = clock.wall();
            if !is_live(tx, epoch, now)? {
                return Ok((vec![Settled::Stale; ends.len()], Vec::new()));
            }
            let mut moves = Moves::new(tx, messages, now);
            let mut ending = MessageEnding::new(Moves::new(tx, deliveries, now), wall);
            let settled: Vec<Settled> = ends
                .iter()
                .map(|end| settle(&mut moves, epoch, end, &mut ending))
                .collect::<rusqlite::Result<_>>()?;
            moves.enter()?;
            ending.deliveries.enter()?;
            Ok((settled, ending.callers))
        };
        let (settled, callers) = queue.db.write(work).await?;
        self.deliveries.news.notify_one();
        for caller in callers {
            self.results.notify(&caller);
        }
        Ok(settled)
    }
}

fn settle(
    moves: &mut Moves<'_>,
    epoch: i64,
    end: &End,
    ending: &mut MessageEnding<'_>,
) -> rusqlite::Result<Settled> {
    match &end.result {
        Some(result) if end.is_final() => {
            let skipped = end.settlement == Settlement::Skipped;
            let ended = moves.end_message(epoch, end.id, result, skipped, ending)?;
            Ok(if ended { Settled::Confirmed } else { Settled::Stale })
        }
        None if end.is_final() => {
            let reason = match &end.settlement {
                Settlement::Dead { reason } => reason.clone(),
                _ => "it ended without a result".to_owned(),
            };
            let settled = moves.settle(epoch, end.id, &Settlement::Dead { reason })?;
            if settled == Settled::Confirmed {
                moves.free_followers(end.id)?;
            }
            Ok(settled)
        }
        result => {
            let settled = moves.settle(epoch, end.id, &end.settlement)?;
            if let (Some(result), Settled::Confirmed) = (result, settled) {
                moves.keep_attempt(end.id, result)?;
            }
            Ok(settled)
        }
    }
}

macro_rules! select_result {
    () => {
        "SELECT cursor, key, url, grp, correlation_id, outbox.created_at, status, content,
             content_type, http_status, error, extracted, attempts
         FROM outbox JOIN job ON job.id = outbox.job JOIN lane ON lane.id = job.lane"
    };
}

/// The result of a message.
pub(super) fn of_job(tx: &Connection, job: LeaseId) -> rusqlite::Result<Option<OutboxMessage>> {
    tx.prepare_cached(concat!(select_result!(), " WHERE outbox.job = ?1"))?
        .query_row([job], result_of)
        .optional()
}

/// A page of a caller's results.
pub(super) fn page(
    tx: &Connection,
    caller: &str,
    after: Option<i64>,
    most: OutboxMost,
) -> rusqlite::Result<OutboxPage> {
    let (pruned, newest): (i64, i64) = tx
        .prepare_cached("SELECT pruned, results FROM caller WHERE name = ?1")?
        .query_row([caller], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    let after = after.unwrap_or(pruned);
    if after < pruned || after > newest {
        return Ok(OutboxPage::Gone { oldest: pruned });
    }
    let mut select = tx.prepare_cached(concat!(
        select_result!(),
        " WHERE outbox.caller = ?1 AND cursor > ?2 ORDER BY cursor LIMIT ?3"
    ))?;
    let mut rows = select.query((caller, after, most.results))?;
    let mut results = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let result = result_of(row)?;
        bytes += result.result.content.as_ref().map_or(0, |content| content.len() as u64);
        results.push(result);
        if bytes >= most.bytes {
            break;
        }
    }
    let next = results.last().map_or(after, |last: &OutboxMessage| last.cursor);
    Ok(OutboxPage::Results { results, next })
}

fn result_of(row: &Row<'_>) -> rusqlite::Result<OutboxMessage> {
    Ok(OutboxMessage {
        cursor: row.get(0)?,
        message: MessageId(row.get(1)?),
        url: row.get(2)?,
        retailer: row.get(3)?,
        correlation_id: row.get(4)?,
        created_at: Time::from_micros(row.get(5)?),
        result: FetchResult {
            status: row.get(6)?,
            content: row.get(7)?,
            content_type: row.get(8)?,
            http_status: row.get(9)?,
            error: row.get(10)?,
            extracted: row.get(11)?,
            attempts: row.get(12)?,
            attempt: None,
        },
    })
}
