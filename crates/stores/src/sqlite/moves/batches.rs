//! Moves of batches: accepted with their messages, counted as these end, and completed by the last one.

use fetchwell_engine::ports::inbox::{BatchId, FetchResult, NewBatch, Submission};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use super::{MessageEnding, Moves};
use crate::shared::batch_count::{BatchCount, BatchCounter, cancelled_with_batch};
use crate::shared::conclusion::delivery_job;
use crate::shared::job_state::sql;
use crate::sqlite::deliveries;

/// What changed in batches. Each is written once per transaction, however many of its messages ended.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct BatchChanges(BatchCounter);

impl BatchChanges {
    /// Counts a message that ended with this result, or without any.
    pub(super) fn count(&mut self, batch: BatchId, result: Option<&FetchResult>) {
        self.0.count(batch, result);
    }

    /// Counts a message that ended without a result, if it is in a batch.
    pub(in crate::sqlite) fn count_dead(
        &mut self,
        tx: &Connection,
        job: LeaseId,
    ) -> rusqlite::Result<()> {
        let batch: Option<[u8; 16]> =
            tx.one("SELECT batch FROM job WHERE id = ?1", [job], |row| row.get(0))?;
        if let Some(batch) = batch {
            self.0.count(BatchId(batch), None);
        }
        Ok(())
    }
}

impl Moves<'_> {
    /// The id that the next job gets.
    pub(in crate::sqlite) fn next_job(&self) -> rusqlite::Result<LeaseId> {
        let select = "SELECT seq FROM sqlite_sequence WHERE name = 'job'";
        let last: Option<LeaseId> = self.tx.find(select, [], |row| row.get(0))?;
        Ok(last.unwrap_or(0) + 1)
    }

    /// Inserts the batch of a submission, if it has one. Its jobs were inserted in this transaction, beginning with
    /// `first_job`.
    pub(in crate::sqlite) fn accept_batch(
        &self,
        submission: &Submission,
        first_job: LeaseId,
        wall: Time,
    ) -> rusqlite::Result<()> {
        let Some(NewBatch { callback_url, expected_in, skipped, skipped_told }) = &submission.batch
        else {
            return Ok(());
        };
        let ids = submission.messages.iter().map(|message| message.id);
        let Some(id) = BatchId::of(ids) else { return Ok(()) };
        self.tx.run(
            "INSERT INTO message_batch (id, caller, callback_url, created_at, expected_at, first_job,
                 last_job, total, skipped, skipped_told)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            (
                id.0,
                &submission.caller,
                callback_url,
                wall.as_micros(),
                (wall + *expected_in).as_micros(),
                first_job,
                self.next_job()? - 1,
                submission.messages.len(),
                skipped,
                skipped_told,
            ),
        )?;
        Ok(())
    }

    /// Cancels waiting messages of a batch, if it is cancelled. Returns how many.
    pub(in crate::sqlite) fn cancel_in_batch(
        &mut self,
        batch: [u8; 16],
        most: u32,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<u32> {
        let waiting: Vec<(LeaseId, u32)> = self.tx.list(
            sql!(
                "SELECT job.id, url_failures + site_failures + paced
                 FROM message_batch AS batch
                 CROSS JOIN job ON job.id BETWEEN first_job AND last_job
                     AND job.batch = batch.id AND job.state < {leased}
                 WHERE batch.id = ?1 AND batch.cancelled_at IS NOT NULL ORDER BY job.id LIMIT ?2"
            ),
            (batch, most),
            |row| row.try_into(),
        )?;
        let mut cancelled = 0;
        for (job, attempts) in waiting {
            self.cancel(job, &cancelled_with_batch(attempts), ending)?;
            cancelled += 1;
        }
        Ok(cancelled)
    }
}

impl MessageEnding<'_> {
    /// Writes the counts of batches, and completes those whose last message ended.
    pub(in crate::sqlite) fn enter_batches(&mut self) -> rusqlite::Result<()> {
        let tx = self.deliveries.tx;
        for (id, count) in std::mem::take(&mut self.batches.0.0) {
            let BatchCount { completed, failed, cancelled } = count;
            let (left, caller, callback_url): (i64, String, Option<String>) = tx.one(
                "UPDATE message_batch SET completed = completed + ?2, failed = failed + ?3,
                     cancelled = cancelled + ?4
                 WHERE id = ?1 RETURNING total - completed - failed, caller, callback_url",
                (id.0, completed, failed, cancelled),
                |row| row.try_into(),
            )?;
            if left == 0 {
                self.complete(id, caller, callback_url)?;
            }
        }
        Ok(())
    }

    /// Counts what an earlier release ended without counting it, and completes the batch, unless it has messages left
    /// or has ended. What is gone already counts as failed.
    pub(in crate::sqlite) fn recount(&mut self, id: BatchId) -> rusqlite::Result<bool> {
        let tx = self.deliveries.tx;
        let counted: Option<(String, Option<String>)> = tx.find(
            sql!(
                "UPDATE message_batch AS batch SET
                     completed = max(batch.completed, found.completed),
                     failed = total - max(batch.completed, found.completed),
                     cancelled = max(batch.cancelled, found.cancelled)
                 FROM (
                     SELECT count(*) FILTER (WHERE job.state = {completed}) AS completed,
                         count(*) FILTER (WHERE outbox.status = 'cancelled') AS cancelled,
                         count(*) FILTER (WHERE job.state < {dead}) AS unfinished
                     FROM message_batch AS counted
                     CROSS JOIN job ON job.id BETWEEN first_job AND last_job AND job.batch = counted.id
                     LEFT JOIN outbox ON outbox.job = job.id
                     WHERE counted.id = ?1) AS found
                 WHERE batch.id = ?1 AND ended_at IS NULL AND found.unfinished = 0
                 RETURNING caller, callback_url"
            ),
            [id.0],
            |row| row.try_into(),
        )?;
        let Some((caller, callback_url)) = counted else { return Ok(false) };
        tx.run(
            "INSERT INTO message_batch_result (batch, place, job)
             SELECT batch.id, cursor, job.id FROM message_batch AS batch
             CROSS JOIN job ON job.id BETWEEN first_job AND last_job AND job.batch = batch.id
             CROSS JOIN outbox ON outbox.job = job.id
             WHERE batch.id = ?1 ON CONFLICT DO NOTHING",
            [id.0],
        )?;
        self.complete(id, caller, callback_url)?;
        Ok(true)
    }

    fn complete(
        &mut self,
        id: BatchId,
        caller: String,
        callback_url: Option<String>,
    ) -> rusqlite::Result<()> {
        let tx = self.deliveries.tx;
        let (number, place) = self.number_end(&id.to_string(), caller, callback_url)?;
        tx.run(
            "UPDATE message_batch SET ended_at = ?2, number = ?3, place = ?4 WHERE id = ?1",
            (id.0, self.wall.as_micros(), number, place),
        )?;
        Ok(())
    }

    /// Puts the end of a batch or a crawl among the events of its caller, and on the queue of deliveries. Returns its
    /// number among these ends, and the cursor of the newest result.
    pub(in crate::sqlite) fn number_end(
        &mut self,
        id: &str,
        caller: String,
        callback_url: Option<String>,
    ) -> rusqlite::Result<(i64, i64)> {
        let tx = self.deliveries.tx;
        // A caller without any result may have no row yet.
        let end: (i64, i64) = tx.one(
            "INSERT INTO caller (name, role, created_at, revoked_at, batches)
             VALUES (?1, 'caller', ?2, ?2, 1)
             ON CONFLICT (name) DO UPDATE SET batches = batches + 1 RETURNING batches, results",
            (&caller, self.wall.as_micros()),
            |row| row.try_into(),
        )?;
        if let Some(url) = callback_url {
            deliveries::begin(tx, id, &caller, &url, self.wall)?;
            self.deliveries.accept(&delivery_job(url, id.as_bytes().to_vec(), &caller))?;
        }
        if !self.callers.contains(&caller) {
            self.callers.push(caller);
        }
        Ok(end)
    }
}
