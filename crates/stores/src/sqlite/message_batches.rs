//! Batches of messages, as their callers see them.

use std::collections::HashMap;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{BatchId, MessageId, OutboxMost, OutboxPage};
use fetchwell_engine::ports::message_batches::{
    BATCHES_PER_PAGE, BatchCounts, CANCELLED_AT_ONCE, Completion, MessageBatch, MessageBatches,
    OPEN_AT_ONCE, OpenBatch, ReadUpTo, Unanswered,
};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

use super::outbox::{results_in, select_result};
use super::retriever_queues::RetrieverQueues;
use crate::shared::job_state::sql;

/// The batches of a file.
pub(super) struct SqliteMessageBatches {
    pub(super) reader: Db,
    pub(super) queues: RetrieverQueues,
}

macro_rules! select_batch {
    ($rest:literal) => {
        concat!(
            "SELECT id, caller, created_at, expected_at, cancelled_at, ended_at, callback_url, skipped,
                 total, completed, failed, cancelled, number, place
             FROM message_batch ",
            $rest
        )
    };
}

#[async_trait]
impl MessageBatches for SqliteMessageBatches {
    async fn batch(
        &self,
        id: BatchId,
        of: Option<&str>,
    ) -> Result<Option<MessageBatch>, StoreError> {
        let of = of.map(str::to_owned);
        self.reader
            .write(move |tx| {
                let select = select_batch!("WHERE id = ?1 AND (?2 IS NULL OR caller = ?2)");
                let mut found: Vec<MessageBatch> =
                    tx.find(select, (id.0, of), batch_of)?.into_iter().collect();
                count_processing(tx, &mut found)?;
                Ok(found.pop())
            })
            .await
    }

    async fn skipped_told(&self, id: BatchId) -> Result<Option<String>, StoreError> {
        let select = "SELECT skipped_told FROM message_batch WHERE id = ?1";
        let told = self.reader.write(move |tx| tx.find(select, [id.0], |row| row.get(0))).await?;
        Ok(told.flatten())
    }

    async fn batches(
        &self,
        caller: &str,
        after: Option<BatchId>,
        most: u32,
    ) -> Result<Vec<MessageBatch>, StoreError> {
        let caller = caller.to_owned();
        let most = most.min(BATCHES_PER_PAGE);
        // No id is as high.
        let before = after.map_or([0xff; 16], |after| after.0);
        self.reader
            .write(move |tx| {
                let select =
                    select_batch!("WHERE caller = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
                let mut found = tx.list(select, (caller, before, most), batch_of)?;
                count_processing(tx, &mut found)?;
                Ok(found)
            })
            .await
    }

    async fn results(
        &self,
        id: BatchId,
        of: Option<&str>,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<Option<OutboxPage>, StoreError> {
        let of = of.map(str::to_owned);
        self.reader.write(move |tx| results(tx, id, of.as_deref(), after, most)).await
    }

    async fn unanswered(
        &self,
        id: BatchId,
        of: Option<&str>,
        after: i64,
        most: u32,
    ) -> Result<Vec<Unanswered>, StoreError> {
        let of = of.map(str::to_owned);
        let select = "SELECT entry.place, job.key, job.url, outbox.created_at, outbox.status, outbox.error
             FROM message_batch AS batch
             JOIN message_batch_result AS entry ON entry.batch = batch.id
             JOIN outbox ON outbox.job = entry.job JOIN job ON job.id = entry.job
             WHERE batch.id = ?1 AND (?2 IS NULL OR batch.caller = ?2) AND entry.place > ?3
                 AND NOT (outbox.status = 'success' AND outbox.content IS NOT NULL)
                 AND coalesce(outbox.http_status, 0) < 400 AND coalesce(outbox.http_status, 0) <> 304
             ORDER BY entry.place LIMIT ?4";
        self.reader.write(move |tx| tx.list(select, (id.0, of, after, most), unanswered_of)).await
    }

    async fn ended_batches(
        &self,
        caller: &str,
        read: ReadUpTo,
        until: i64,
        most: u32,
    ) -> Result<Vec<MessageBatch>, StoreError> {
        let caller = caller.to_owned();
        self.reader
            .write(move |tx| {
                let number = match read {
                    ReadUpTo::Nothing => 0,
                    ReadUpTo::Number(number) => number,
                    // A higher number has no lower place, so the search ends with the first that is found.
                    ReadUpTo::Cursor(cursor) => tx
                        .find(
                            "SELECT number FROM message_batch
                             WHERE caller = ?1 AND number IS NOT NULL AND place < ?2
                             ORDER BY number DESC LIMIT 1",
                            (&caller, cursor),
                            |row| row.get(0),
                        )?
                        .unwrap_or(0),
                };
                let select = select_batch!(
                    "WHERE caller = ?1 AND number IS NOT NULL AND number > ?2 AND place <= ?3
                     ORDER BY number LIMIT ?4"
                );
                tx.list(select, (&caller, number, until, most), batch_of)
            })
            .await
    }

    async fn cancel(&self, id: BatchId, of: Option<&str>) -> Result<bool, StoreError> {
        let of = of.map(str::to_owned);
        let wall = self.queues.messages.clock.wall().as_micros();
        self.queues
            .messages
            .db
            .write(move |tx| {
                let select =
                    "SELECT 1 FROM message_batch WHERE id = ?1 AND (?2 IS NULL OR caller = ?2)";
                if !tx.has(select, (id.0, of))? {
                    return Ok(false);
                }
                tx.run(
                    "UPDATE message_batch SET cancelled_at = ?2
                     WHERE id = ?1 AND ended_at IS NULL AND cancelled_at IS NULL",
                    (id.0, wall),
                )?;
                Ok(true)
            })
            .await
    }

    async fn cancel_some(&self, id: BatchId) -> Result<u32, StoreError> {
        self.queues
            .transact(move |moves, ending| moves.cancel_in_batch(id.0, CANCELLED_AT_ONCE, ending))
            .await
    }

    async fn open(&self, after: Option<BatchId>) -> Result<Vec<OpenBatch>, StoreError> {
        // No id is as low.
        let after = after.map_or([0; 16], |after| after.0);
        // The last messages of a batch mostly end last, so the search begins with them.
        let select = sql!(
            "SELECT id, cancelled_at IS NOT NULL, (
                 SELECT job.id FROM job
                 WHERE job.id BETWEEN first_job AND last_job AND job.batch = open.id
                     AND job.state < {dead}
                 ORDER BY job.id DESC LIMIT 1) IS NOT NULL
             FROM message_batch AS open WHERE ended_at IS NULL AND id > ?1 ORDER BY id LIMIT ?2"
        );
        self.reader
            .write(move |tx| {
                tx.list(select, (after, OPEN_AT_ONCE), |row| {
                    let id = BatchId(row.get(0)?);
                    let is_cancelled = row.get(1)?;
                    Ok(OpenBatch { id, is_cancelled, has_messages_left: row.get(2)? })
                })
            })
            .await
    }

    async fn recount(&self, id: BatchId) -> Result<bool, StoreError> {
        self.queues.transact(move |_, ending| ending.recount(id)).await
    }
}

fn results(
    tx: &Connection,
    id: BatchId,
    of: Option<&str>,
    after: Option<i64>,
    most: OutboxMost,
) -> rusqlite::Result<Option<OutboxPage>> {
    let select = "SELECT batch.pruned, coalesce(caller.results, 0) FROM message_batch AS batch
         LEFT JOIN caller ON caller.name = batch.caller
         WHERE batch.id = ?1 AND (?2 IS NULL OR batch.caller = ?2)";
    let extent: Option<(i64, i64)> = tx.find(select, (id.0, of), |row| row.try_into())?;
    let Some((pruned, newest)) = extent else { return Ok(None) };
    let after = after.unwrap_or(pruned);
    if after < pruned || after > newest {
        return Ok(Some(OutboxPage::Gone { oldest: pruned }));
    }
    let mut select = tx.prepare_cached(concat!(
        select_result!(),
        " JOIN message_batch_result AS entry ON entry.job = outbox.job
         WHERE entry.batch = ?1 AND entry.place > ?2 ORDER BY entry.place LIMIT ?3"
    ))?;
    results_in(select.query((id.0, after, most.results))?, after, most).map(Some)
}

fn unanswered_of(row: &Row<'_>) -> rusqlite::Result<Unanswered> {
    Ok(Unanswered {
        cursor: row.get(0)?,
        message: MessageId(row.get(1)?),
        url: row.get(2)?,
        created_at: Time::from_micros(row.get(3)?),
        status: row.get(4)?,
        error: row.get(5)?,
    })
}

fn batch_of(row: &Row<'_>) -> rusqlite::Result<MessageBatch> {
    let time = |micros: Option<i64>| micros.map(Time::from_micros);
    let number: Option<i64> = row.get(12)?;
    let cursor: Option<i64> = row.get(13)?;
    Ok(MessageBatch {
        id: BatchId(row.get(0)?),
        caller: row.get(1)?,
        created_at: Time::from_micros(row.get(2)?),
        expected_at: Time::from_micros(row.get(3)?),
        cancelled_at: time(row.get(4)?),
        ended_at: time(row.get(5)?),
        callback_url: row.get(6)?,
        skipped: row.get(7)?,
        counts: BatchCounts {
            total: row.get(8)?,
            processing: 0,
            completed: row.get(9)?,
            failed: row.get(10)?,
            cancelled: row.get(11)?,
        },
        completion: number.zip(cursor).map(|(number, cursor)| Completion { number, cursor }),
    })
}

/// Adds the numbers of messages that instances hold. The index has only leased jobs. Instances hold few, and these are
/// read once for all batches.
fn count_processing(tx: &Connection, batches: &mut [MessageBatch]) -> rusqlite::Result<()> {
    if batches.iter().all(|batch| batch.ended_at.is_some()) {
        return Ok(());
    }
    let select = sql!(
        "SELECT batch, count(*) FROM job INDEXED BY job_leased
         WHERE state = {leased} AND epoch IS NOT NULL AND batch IS NOT NULL GROUP BY batch"
    );
    let counts: Vec<([u8; 16], u32)> = tx.list(select, [], |row| row.try_into())?;
    let counts: HashMap<[u8; 16], u32> = counts.into_iter().collect();
    for batch in batches.iter_mut().filter(|batch| batch.ended_at.is_none()) {
        batch.counts.processing = counts.get(&batch.id.0).copied().unwrap_or_default();
    }
    Ok(())
}
