//! Batches of messages, as their callers see them.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{BatchId, MessageId, OutboxMost, OutboxPage};
use fetchwell_engine::ports::message_batches::{
    BATCHES_PER_PAGE, BatchCounts, CANCELLED_AT_ONCE, Completion, MessageBatch, MessageBatches,
    OPEN_AT_ONCE, OpenBatch, ReadUpTo, Unanswered,
};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::inbox::PostgresRetriever;
use super::moves::Moves;
use super::reading;
use crate::shared::job_state::sql;

/// The numbers of leased messages come from an index that has only leased jobs. They are read once for all batches, and
/// only if one of these has not ended.
macro_rules! select_batch {
    ($rest:literal) => {
        concat!(
            "WITH leased AS MATERIALIZED (
                 SELECT job.batch, count(*) AS messages FROM fetchwell_job AS job
                 WHERE job.state = {leased} AND job.batch IS NOT NULL GROUP BY job.batch)
             SELECT id, caller, created_at, expected_at, cancelled_at, ended_at, callback_url, skipped,
                 total, completed, failed, cancelled, number, place,
                 CASE WHEN ended_at IS NULL THEN coalesce(
                     (SELECT leased.messages FROM leased WHERE leased.batch = batch.id), 0)
                 ELSE 0 END AS processing
             FROM fetchwell_message_batch AS batch ",
            $rest
        )
    };
}

#[async_trait]
impl MessageBatches for PostgresRetriever {
    async fn batch(
        &self,
        id: BatchId,
        of: Option<&str>,
    ) -> Result<Option<MessageBatch>, StoreError> {
        let select =
            sql!(select_batch!("WHERE batch.id = $1 AND ($2::TEXT IS NULL OR batch.caller = $2)"));
        let query = sqlx::query(select).bind(id.0.to_vec()).bind(of);
        Ok(self.messages.db.read(query, batch_of).await?.pop())
    }

    async fn skipped_told(&self, id: BatchId) -> Result<Option<String>, StoreError> {
        let query = sqlx::query("SELECT skipped_told FROM fetchwell_message_batch WHERE id = $1");
        let told = self.messages.db.read(query.bind(id.0.to_vec()), |row| row.try_get(0)).await?;
        Ok(told.into_iter().next().flatten())
    }

    async fn batches(
        &self,
        caller: &str,
        after: Option<BatchId>,
        most: u32,
    ) -> Result<Vec<MessageBatch>, StoreError> {
        let select = sql!(select_batch!(
            "WHERE batch.caller = $1 AND batch.id < $2 ORDER BY batch.id DESC LIMIT $3"
        ));
        // No id is as high.
        let before = after.map_or([0xff; 16], |after| after.0);
        let query = sqlx::query(select)
            .bind(caller)
            .bind(before.to_vec())
            .bind(i64::from(most.min(BATCHES_PER_PAGE)));
        self.messages.db.read(query, batch_of).await
    }

    async fn results(
        &self,
        id: BatchId,
        of: Option<&str>,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<Option<OutboxPage>, StoreError> {
        reading::page_of_batch(&self.messages.db, id, of, after, most).await
    }

    async fn unanswered(
        &self,
        id: BatchId,
        of: Option<&str>,
        after: i64,
        most: u32,
    ) -> Result<Vec<Unanswered>, StoreError> {
        let query = sqlx::query(
            "SELECT entry.place, job.key, job.url, job.odd_url, outbox.stored_at, outbox.status, outbox.error
             FROM fetchwell_message_batch AS batch
             JOIN fetchwell_message_batch_result AS entry ON entry.batch = batch.id
             JOIN fetchwell_outbox AS outbox ON outbox.job = entry.job
             JOIN fetchwell_job AS job ON job.id = entry.job
             WHERE batch.id = $1 AND ($2::TEXT IS NULL OR batch.caller = $2) AND entry.place > $3
                 AND NOT (outbox.status = 'success' AND outbox.content IS NOT NULL)
                 AND coalesce(outbox.http_status, 0) < 400 AND coalesce(outbox.http_status, 0) <> 304
             ORDER BY entry.place LIMIT $4",
        );
        let query = query.bind(id.0.to_vec()).bind(of).bind(after).bind(i64::from(most));
        self.messages.db.read(query, unanswered_of).await
    }

    async fn ended_batches(
        &self,
        caller: &str,
        read: ReadUpTo,
        until: i64,
        most: u32,
    ) -> Result<Vec<MessageBatch>, StoreError> {
        // A higher number has no lower place, so the inner search ends with the first that is found.
        let select = sql!(select_batch!(
            "WHERE batch.caller = $1 AND number IS NOT NULL AND place <= $4
                 AND number > coalesce($2, (
                     SELECT seen.number FROM fetchwell_message_batch AS seen
                     WHERE seen.caller = $1 AND seen.number IS NOT NULL AND seen.place < $3
                     ORDER BY seen.number DESC LIMIT 1), 0)
             ORDER BY number LIMIT $5"
        ));
        let (number, cursor) = match read {
            ReadUpTo::Nothing => (Some(0), None),
            ReadUpTo::Number(number) => (Some(number), None),
            ReadUpTo::Cursor(cursor) => (None, Some(cursor)),
        };
        let query = sqlx::query(select)
            .bind(caller)
            .bind(number)
            .bind(cursor)
            .bind(until)
            .bind(i64::from(most));
        self.messages.db.read(query, batch_of).await
    }

    async fn cancel(&self, id: BatchId, of: Option<&str>) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(&self.messages).await?;
        let query = sqlx::query(
            "UPDATE fetchwell_message_batch
             SET cancelled_at = CASE WHEN ended_at IS NULL THEN coalesce(cancelled_at, $3)
                 ELSE cancelled_at END
             WHERE id = $1 AND ($2::TEXT IS NULL OR caller = $2)",
        );
        let query = query.bind(id.0.to_vec()).bind(of).bind(moves.now().as_micros());
        let marked = moves.tx.execute(query).await;
        Ok(moves.end(marked).await? == 1)
    }

    async fn cancel_some(&self, id: BatchId) -> Result<u32, StoreError> {
        let mut moves = Moves::begin(&self.messages).await?;
        let done = moves.cancel_in_batch(self.deliveries.id, id, CANCELLED_AT_ONCE).await;
        let (count, callers) = moves.end(done).await?;
        self.notify(&callers);
        Ok(count)
    }

    async fn open(&self, after: Option<BatchId>) -> Result<Vec<OpenBatch>, StoreError> {
        // No id is as low.
        let after = after.map_or([0; 16], |after| after.0);
        // The last messages of a batch mostly end last, so the search begins with them.
        let query = sqlx::query(sql!(
            "SELECT id, cancelled_at IS NOT NULL, (
                 SELECT job.id FROM fetchwell_job AS job
                 WHERE job.id BETWEEN first_job AND last_job AND job.batch = open.id
                     AND job.state < {dead}
                 ORDER BY job.id DESC LIMIT 1) IS NOT NULL
             FROM fetchwell_message_batch AS open WHERE ended_at IS NULL AND id > $1
             ORDER BY id LIMIT $2"
        ));
        let query = query.bind(after.to_vec()).bind(i64::from(OPEN_AT_ONCE));
        let open = |row: &PgRow| {
            let id = BatchId(row.try_get(0)?);
            let is_cancelled = row.try_get(1)?;
            Ok(OpenBatch { id, is_cancelled, has_messages_left: row.try_get(2)? })
        };
        self.messages.db.read(query, open).await
    }

    async fn recount(&self, id: BatchId) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(&self.messages).await?;
        let recounted = moves.recount(self.deliveries.id, id).await;
        let caller = moves.end(recounted).await?;
        let is_complete = caller.is_some();
        self.notify(&caller.into_iter().collect());
        Ok(is_complete)
    }
}

fn unanswered_of(row: &PgRow) -> sqlx::Result<Unanswered> {
    Ok(Unanswered {
        cursor: row.try_get("place")?,
        message: MessageId(row.try_get("key")?),
        url: reading::url_of(row)?,
        created_at: Time::from_micros(row.try_get("stored_at")?),
        status: row.try_get("status")?,
        error: row.try_get("error")?,
    })
}

fn batch_of(row: &PgRow) -> sqlx::Result<MessageBatch> {
    let time = |name: &str| -> sqlx::Result<Option<Time>> {
        Ok(row.try_get::<Option<i64>, _>(name)?.map(Time::from_micros))
    };
    let count = |name: &str| -> sqlx::Result<u32> {
        Ok(u32::try_from(row.try_get::<i64, _>(name)?).unwrap_or(u32::MAX))
    };
    let number: Option<i64> = row.try_get("number")?;
    let cursor: Option<i64> = row.try_get("place")?;
    Ok(MessageBatch {
        id: BatchId(row.try_get("id")?),
        caller: row.try_get("caller")?,
        created_at: Time::from_micros(row.try_get("created_at")?),
        expected_at: Time::from_micros(row.try_get("expected_at")?),
        cancelled_at: time("cancelled_at")?,
        ended_at: time("ended_at")?,
        callback_url: row.try_get("callback_url")?,
        skipped: count("skipped")?,
        counts: BatchCounts {
            total: count("total")?,
            processing: count("processing")?,
            completed: count("completed")?,
            failed: count("failed")?,
            cancelled: count("cancelled")?,
        },
        completion: number.zip(cursor).map(|(number, cursor)| Completion { number, cursor }),
    })
}
