//! Moves of batches: accepted with their messages, counted as these end, and completed by the last one.
//!
//! All messages of a batch belong to one caller, whose row is locked first, so transactions that change a batch wait
//! for each other there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fetchwell_engine::ports::inbox::{BatchId, FetchResult, NewBatch, Submission};
use fetchwell_engine::ports::job::{LeaseId, NewJob};

use super::database::{column, writable};
use super::ending::Ended;
use super::moves::{Moves, QueueId};
use super::submission::batch_of;
use crate::shared::batch_count::{BatchCounter, cancelled_with_batch};
use crate::shared::conclusion::delivery_job;
use crate::shared::job_state::sql;

const COUNT: &str = "
    WITH entry AS (
        INSERT INTO fetchwell_message_batch_result (batch, place, job)
        SELECT * FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BIGINT[])
    )
    UPDATE fetchwell_message_batch AS batch SET completed = batch.completed + change.completed,
        failed = batch.failed + change.failed, cancelled = batch.cancelled + change.cancelled
    FROM unnest($4::BYTEA[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
        AS change (id, completed, failed, cancelled)
    WHERE batch.id = change.id
    RETURNING batch.id, batch.caller, batch.callback_url,
        batch.total - batch.completed - batch.failed";

const NUMBER: &str = "
    UPDATE fetchwell_caller AS caller SET batches = caller.batches + ended.count
    FROM unnest($1::TEXT[], $2::BIGINT[]) AS ended (name, count)
    WHERE caller.name = ended.name RETURNING caller.name, batches, results";

const COMPLETE: &str = "
    UPDATE fetchwell_message_batch AS batch
    SET ended_at = $4, number = ended.number, place = ended.place
    FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BIGINT[]) AS ended (id, number, place)
    WHERE batch.id = ended.id";

/// A batch whose last message ended.
struct EndedBatch {
    id: BatchId,
    caller: String,
    callback_url: Option<String>,
}

impl Moves<'_> {
    /// Inserts the batches of submissions, whose messages get these jobs.
    pub(super) async fn put_in_batches(
        &mut self,
        group: &[&Submission],
        first_job: LeaseId,
        last_job: LeaseId,
    ) -> sqlx::Result<()> {
        let new = |one: &&Submission| -> Option<(BatchId, String, NewBatch, i64)> {
            let total = i64::try_from(one.messages.len()).unwrap_or(i64::MAX);
            Some((batch_of(one)?, one.caller.clone(), one.batch.clone()?, total))
        };
        let new: Vec<_> = group.iter().filter_map(new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let query = sqlx::query(
            "INSERT INTO fetchwell_message_batch (id, caller, callback_url, expected_at, total, skipped,
                 skipped_told, created_at, first_job, last_job)
             SELECT *, $8, $9, $10 FROM unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::BIGINT[],
                 $5::BIGINT[], $6::BIGINT[], $7::TEXT[])",
        );
        let query = query
            .bind(column(&new, |(id, ..)| id.0.to_vec()))
            .bind(column(&new, |(_, caller, ..)| caller.as_str()))
            .bind(column(&new, |(.., batch, _)| batch.callback_url.as_deref().map(writable)))
            .bind(column(&new, |(.., batch, _)| (now + batch.expected_in).as_micros()))
            .bind(column(&new, |(.., total)| *total))
            .bind(column(&new, |(.., batch, _)| i64::from(batch.skipped)))
            .bind(column(&new, |(.., batch, _)| batch.skipped_told.as_deref().map(writable)))
            .bind(now.as_micros())
            .bind(first_job)
            .bind(last_job);
        self.tx.execute(query).await?;
        Ok(())
    }

    /// Notes the batches of messages that end without a result, so that they are counted with the others.
    pub(super) async fn note_batches_of(&mut self, jobs: &[LeaseId]) -> sqlx::Result<()> {
        let query = sqlx::query(
            "SELECT batch, caller FROM fetchwell_job WHERE id = ANY($1) AND batch IS NOT NULL",
        );
        let found: Vec<([u8; 16], String)> = self.tx.fetch_as(query.bind(jobs)).await?;
        let found = found.into_iter().map(|(batch, caller)| (BatchId(batch), caller));
        self.ended_without_result.extend(found);
        Ok(())
    }

    /// Counts messages that ended, each with its cursor, and those without a result. Returns the deliveries of the
    /// batches that are complete now.
    pub(super) async fn count_in_batches(
        &mut self,
        ended: &[Ended],
        cursors: &[i64],
        results: &HashMap<LeaseId, &FetchResult>,
        without_result: &[(BatchId, String)],
    ) -> sqlx::Result<Vec<NewJob>> {
        let mut counter = BatchCounter::default();
        let mut entries: Vec<(BatchId, i64, LeaseId)> = Vec::new();
        // What is copied from an earlier message is a page.
        let page =
            FetchResult { status: FetchResult::SUCCESS.to_owned(), ..FetchResult::default() };
        for (one, cursor) in ended.iter().zip(cursors) {
            let Some(batch) = one.batch else { continue };
            let result = results.get(&one.copies.unwrap_or(one.job)).copied().unwrap_or(&page);
            counter.count(batch, Some(result));
            entries.push((batch, *cursor, one.job));
        }
        for (batch, _) in without_result {
            counter.count(*batch, None);
        }
        let counts: Vec<_> = counter.0.into_iter().collect();
        if counts.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query(COUNT)
            .bind(column(&entries, |(batch, ..)| batch.0.to_vec()))
            .bind(column(&entries, |(_, cursor, _)| *cursor))
            .bind(column(&entries, |(.., job)| *job))
            .bind(column(&counts, |(batch, _)| batch.0.to_vec()))
            .bind(column(&counts, |(_, count)| count.completed))
            .bind(column(&counts, |(_, count)| count.failed))
            .bind(column(&counts, |(_, count)| count.cancelled));
        let rows: Vec<([u8; 16], String, Option<String>, i64)> = self.tx.fetch_as(query).await?;
        let complete = rows.into_iter().filter(|(.., left)| *left == 0);
        let complete = complete.map(|(id, caller, callback_url, _)| {
            let id = BatchId(id);
            EndedBatch { id, caller, callback_url }
        });
        self.complete_batches(complete.collect()).await
    }

    async fn complete_batches(&mut self, mut ended: Vec<EndedBatch>) -> sqlx::Result<Vec<NewJob>> {
        if ended.is_empty() {
            return Ok(Vec::new());
        }
        ended.sort_by_key(|batch| batch.id);
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for batch in &ended {
            *counts.entry(&batch.caller).or_default() += 1;
        }
        let (names, numbers): (Vec<&str>, Vec<i64>) = counts.iter().map(|(n, c)| (*n, *c)).unzip();
        let query = sqlx::query(NUMBER).bind(names).bind(numbers);
        let rows: Vec<(String, i64, i64)> = self.tx.fetch_as(query).await?;
        // The number before the first of these batches, and the newest cursor.
        let mut extents: HashMap<String, (i64, i64)> = rows
            .into_iter()
            .map(|(name, last, results)| {
                let count = counts.get(name.as_str()).copied().unwrap_or_default();
                (name, (last - count, results))
            })
            .collect();
        let mut places = Vec::with_capacity(ended.len());
        for batch in &ended {
            let (number, place) = extents.entry(batch.caller.clone()).or_default();
            *number += 1;
            places.push((*number, *place));
        }
        let query = sqlx::query(COMPLETE)
            .bind(column(&ended, |batch| batch.id.0.to_vec()))
            .bind(column(&places, |(number, _)| *number))
            .bind(column(&places, |(_, place)| *place))
            .bind(self.now().as_micros());
        self.tx.execute(query).await?;
        let delivery = |batch: EndedBatch| {
            let webhook = batch.id.to_string().into_bytes();
            Some(delivery_job(batch.callback_url?, webhook, &batch.caller))
        };
        Ok(ended.into_iter().filter_map(delivery).collect())
    }

    /// Counts what an instance of an earlier release ended without counting it, and completes the batch, unless it has
    /// messages left or has ended. What is gone already counts as failed. Returns the caller of a completed batch.
    pub(super) async fn recount(
        &mut self,
        deliveries: QueueId,
        id: BatchId,
    ) -> sqlx::Result<Option<String>> {
        let query = sqlx::query(
            "SELECT caller FROM fetchwell_message_batch WHERE id = $1 AND ended_at IS NULL",
        );
        let found: Option<(String,)> = self.tx.fetch_as(query.bind(id.0.to_vec())).await?.pop();
        let Some((caller,)) = found else { return Ok(None) };
        // With this lock, no other transaction counts for this caller, and all counted messages are visible.
        self.next_cursors(&[], &[(id, caller.clone())]).await?;
        let query = sqlx::query(sql!(
            "UPDATE fetchwell_message_batch AS batch SET
                 completed = greatest(batch.completed, found.completed),
                 failed = batch.total - greatest(batch.completed, found.completed),
                 cancelled = greatest(batch.cancelled, found.cancelled)
             FROM (
                 SELECT count(*) FILTER (WHERE job.state = {completed}) AS completed,
                     count(*) FILTER (WHERE outbox.status = 'cancelled') AS cancelled,
                     count(*) FILTER (WHERE job.state < {dead}) AS unfinished
                 FROM fetchwell_message_batch AS counted
                 JOIN fetchwell_job AS job
                     ON job.id BETWEEN first_job AND last_job AND job.batch = counted.id
                 LEFT JOIN fetchwell_outbox AS outbox ON outbox.job = job.id
                 WHERE counted.id = $1) AS found
             WHERE batch.id = $1 AND batch.ended_at IS NULL AND found.unfinished = 0
             RETURNING batch.callback_url"
        ));
        let counted: Option<(Option<String>,)> =
            self.tx.fetch_as(query.bind(id.0.to_vec())).await?.pop();
        let Some((callback_url,)) = counted else { return Ok(None) };
        let query = sqlx::query(
            "INSERT INTO fetchwell_message_batch_result (batch, place, job)
             SELECT batch.id, outbox.cursor, job.id
             FROM fetchwell_message_batch AS batch
             JOIN fetchwell_job AS job
                 ON job.id BETWEEN first_job AND last_job AND job.batch = batch.id
             JOIN fetchwell_outbox AS outbox ON outbox.job = job.id
             WHERE batch.id = $1 ON CONFLICT DO NOTHING",
        );
        self.tx.execute(query.bind(id.0.to_vec())).await?;
        let ended = EndedBatch { id, caller: caller.clone(), callback_url };
        let jobs = self.complete_batches(vec![ended]).await?;
        self.begin_deliveries(deliveries, jobs).await?;
        Ok(Some(caller))
    }

    /// Cancels waiting messages of a batch, if it is cancelled. Returns how many, and the batch's caller if there were
    /// any.
    pub(super) async fn cancel_in_batch(
        &mut self,
        deliveries: QueueId,
        batch: BatchId,
        most: u32,
    ) -> sqlx::Result<(u32, BTreeSet<String>)> {
        let query = sqlx::query(sql!(
            "SELECT job.id, url_failures + site_failures + paced
             FROM fetchwell_message_batch AS batch
             JOIN fetchwell_job AS job ON job.id BETWEEN first_job AND last_job
                 AND job.batch = batch.id AND job.state < {leased}
             WHERE batch.id = $1 AND batch.cancelled_at IS NOT NULL
             ORDER BY job.id LIMIT $2 FOR UPDATE OF job"
        ));
        let query = query.bind(batch.0.to_vec()).bind(i64::from(most));
        let waiting: Vec<(LeaseId, i64)> = self.tx.fetch_as(query).await?;
        let cancelled: Vec<(LeaseId, FetchResult)> = waiting
            .into_iter()
            .map(|(job, attempts)| {
                (job, cancelled_with_batch(u32::try_from(attempts).unwrap_or(u32::MAX)))
            })
            .collect();
        let callers = self.cancel(deliveries, &cancelled).await?;
        Ok((u32::try_from(cancelled.len()).unwrap_or(u32::MAX), callers))
    }
}
