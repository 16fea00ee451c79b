//! Ends messages: each gets a row in the outbox, with the next cursor of its caller, and possibly a delivery.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fetchwell_engine::ports::inbox::{BatchId, FetchResult, MessageId, ResultBody};
use fetchwell_engine::ports::job::{LeaseId, NewJob};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};

use super::bodies::BodyToKeep;
use super::connections::PgQuery;
use super::database::{column, writable};
use super::deliveries as delivery_log;
use super::moves::{Moves, QueueId};
use crate::shared::bodies::body_of;
use crate::shared::conclusion::{delivery, end_state};

/// Adds `ended.line` to the story of a job, unless it is NULL. If the story is long already, which takes about eight
/// attempts, its oldest line is dropped.
macro_rules! add_to_story {
    () => {
        "story = CASE WHEN ended.line IS NULL THEN job.story
             WHEN job.story IS NULL THEN ended.line
             WHEN length(job.story) < 2500 THEN job.story || chr(10) || ended.line
             ELSE substr(job.story, strpos(job.story, chr(10)) + 1) || chr(10) || ended.line END"
    };
}

/// A message that has ended.
pub(super) struct Ended {
    pub(super) job: LeaseId,
    pub(super) key: [u8; 16],
    pub(super) caller: String,
    pub(super) callback_url: Option<String>,
    pub(super) kind: [u8; 16],
    /// The job whose result this message copies; `None` if it has its own.
    pub(super) copies: Option<LeaseId>,
    /// Whether that result was stored before this message was sent.
    pub(super) is_cached: bool,
    pub(super) batch: Option<BatchId>,
}

/// A message, and the result it ends with.
pub(super) type End<'a> = (LeaseId, &'a FetchResult);

/// The cursors come from the caller's row, which stays locked until the commit, so they are in commit order. An unknown
/// caller gets a row without a token.
const COUNT_RESULTS: &str = "
    INSERT INTO fetchwell_caller AS caller (name, role, created_at, revoked_at, results)
    SELECT name, 'caller', $3, $3, count FROM unnest($1::TEXT[], $2::BIGINT[]) AS new (name, count)
    ORDER BY name
    ON CONFLICT (name) DO UPDATE SET results = caller.results + excluded.results
    RETURNING name, results";

const PUT_OUT: &str = "
    INSERT INTO fetchwell_outbox (job, caller, cursor, kind, status, content_type, http_status, error,
        extracted, content, details, body_of, stored_at)
    SELECT *, $13 FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BYTEA[], $5::TEXT[],
        $6::TEXT[], $7::INTEGER[], $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::TEXT[], $12::BIGINT[])";

const COPY_OUT: &str = "
    INSERT INTO fetchwell_outbox (job, caller, cursor, kind, status, content_type, http_status, error,
        extracted, content, details, body_of, cached_age, stored_at)
    SELECT new.job, new.caller, new.cursor, new.kind, status, content_type, http_status, error,
        extracted, content, details, body_of,
        CASE WHEN new.is_cached THEN greatest($7 - original.stored_at, 0) END, $7
    FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BYTEA[], $5::BIGINT[], $6::BOOLEAN[])
        AS new (job, caller, cursor, kind, copies, is_cached)
    JOIN fetchwell_outbox AS original ON original.job = new.copies";

impl Moves<'_> {
    /// Ends messages that we hold, and their followers. `skipped` is the number of them that the ledger counts as
    /// skipped.
    pub(super) async fn end_messages(
        &mut self,
        ends: &[End<'_>],
        skipped: i64,
    ) -> sqlx::Result<Vec<Ended>> {
        if ends.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query(concat!(
            "UPDATE fetchwell_job AS job
            SET state = ended.state, attempts = ended.attempts, ended_at = $6, epoch = NULL,
                reason = ended.reason, ",
            add_to_story!(),
            " FROM unnest($1::BIGINT[], $2::SMALLINT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[])
                AS ended (id, state, attempts, reason, line)
            WHERE job.id = ended.id
            RETURNING job.id, key, caller, callback_url, kind, NULL::BIGINT, batch"
        ));
        let query = query
            .bind(column(ends, |(id, _)| *id))
            .bind(column(ends, |(_, result)| end_state(result).number()))
            .bind(column(ends, |(_, result)| i64::from(result.attempts)))
            .bind(column(ends, |(_, result)| result.reason()))
            .bind(column(ends, |(_, result)| line_of(result)))
            .bind(self.now().as_micros());
        let mut ended: Vec<Ended> = self.tx.fetch_as(query).await?;
        // Cursors follow the order of `ends`.
        let places: HashMap<LeaseId, usize> = ends.iter().map(|(id, _)| *id).zip(0..).collect();
        ended.sort_by_key(|ended| places.get(&ended.job).copied());
        let change = self.change();
        change.in_flight -= ends.len() as i64;
        change.skipped += skipped;
        change.done += ends.len() as i64 - skipped;
        ended.extend(self.end_followers(ends).await?);
        Ok(ended)
    }

    /// Messages that ended while they waited, by id. The last column is the state that they waited in.
    pub(super) fn ended_while_waiting(&mut self, rows: &[PgRow]) -> sqlx::Result<Vec<Ended>> {
        for row in rows {
            self.no_longer_waits(row.try_get(6)?);
            self.change().done += 1;
        }
        let mut ended: Vec<Ended> =
            rows.iter().map(Ended::from_row).collect::<sqlx::Result<_>>()?;
        ended.sort_by_key(|ended| ended.job);
        Ok(ended)
    }

    /// Records attempts that are not the last of their message.
    pub(super) async fn keep_attempts(&mut self, attempts: &[End<'_>]) -> sqlx::Result<()> {
        let (ids, lines): (Vec<LeaseId>, Vec<String>) =
            attempts.iter().filter_map(|(id, result)| Some((*id, line_of(result)?))).unzip();
        if ids.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(concat!(
            "UPDATE fetchwell_job AS job SET ",
            add_to_story!(),
            " FROM unnest($1::BIGINT[], $2::TEXT[]) AS ended (id, line) WHERE job.id = ended.id"
        ));
        self.tx.execute(query.bind(ids).bind(lines)).await?;
        Ok(())
    }

    /// Writes the outbox rows and deliveries of messages. Returns their callers.
    pub(super) async fn put_out(
        &mut self,
        deliveries: QueueId,
        ended: Vec<Ended>,
        results: &[End<'_>],
    ) -> sqlx::Result<BTreeSet<String>> {
        let without_result = std::mem::take(&mut self.ended_without_result);
        if ended.is_empty() && without_result.is_empty() {
            return Ok(BTreeSet::new());
        }
        let cursors = self.next_cursors(&ended, &without_result).await?;
        let results: HashMap<LeaseId, &FetchResult> = results.iter().copied().collect();
        let mut own: Vec<(&Ended, i64, &FetchResult)> = Vec::new();
        let mut copies: Vec<(&Ended, i64, LeaseId)> = Vec::new();
        for (ended, &cursor) in ended.iter().zip(&cursors) {
            match ended.copies {
                Some(original) => copies.push((ended, cursor, original)),
                None => own.extend(results.get(&ended.job).map(|result| (ended, cursor, *result))),
            }
        }
        if !own.is_empty() {
            self.put_out_own(&own).await?;
        }
        // After their originals, some of which are among those.
        if !copies.is_empty() {
            let query = outbox_query(COPY_OUT, &copies)
                .bind(column(&copies, |(.., job)| *job))
                .bind(column(&copies, |(ended, ..)| ended.is_cached));
            self.tx.execute(query.bind(self.now().as_micros())).await?;
        }
        let in_batches = self.count_in_batches(&ended, &cursors, &results, &without_result).await?;
        let job = |ended: &Ended| {
            Some(delivery(ended.callback_url.clone()?, MessageId(ended.key), &ended.caller))
        };
        let jobs: Vec<NewJob> = ended.iter().filter_map(job).chain(in_batches).collect();
        self.begin_deliveries(deliveries, jobs).await?;
        let callers = ended.into_iter().map(|ended| ended.caller);
        Ok(callers.chain(without_result.into_iter().map(|(_, caller)| caller)).collect())
    }

    /// Puts deliveries on their queue, and into the log that their callers can read.
    pub(super) async fn begin_deliveries(
        &mut self,
        deliveries: QueueId,
        jobs: Vec<NewJob>,
    ) -> sqlx::Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let begin = |job: &NewJob| {
            let job = &job.job;
            let webhook = String::from_utf8_lossy(&job.payload).into_owned();
            (webhook, job.lane.party.clone().unwrap_or_default(), job.url.clone())
        };
        let begun: Vec<(String, String, String)> = jobs.iter().map(begin).collect();
        delivery_log::begin(self, &begun).await?;
        self.accept(deliveries, jobs).await?;
        Ok(())
    }

    /// Also locks the rows of callers whose batches change without a result.
    pub(super) async fn next_cursors(
        &mut self,
        ended: &[Ended],
        without_result: &[(BatchId, String)],
    ) -> sqlx::Result<Vec<i64>> {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for (_, caller) in without_result {
            counts.entry(caller).or_default();
        }
        for one in ended {
            *counts.entry(&one.caller).or_default() += 1;
        }
        let (names, numbers): (Vec<&str>, Vec<i64>) = counts.into_iter().unzip();
        let query = sqlx::query(COUNT_RESULTS).bind(names).bind(numbers);
        let rows: Vec<(String, i64)> = self.tx.fetch_as(query.bind(self.now().as_micros())).await?;
        let mut last: HashMap<String, i64> = rows.into_iter().collect();
        let mut cursors = Vec::with_capacity(ended.len());
        for one in ended.iter().rev() {
            let cursor = last.entry(one.caller.clone()).or_default();
            cursors.push(*cursor);
            *cursor -= 1;
        }
        cursors.reverse();
        Ok(cursors)
    }

    async fn put_out_own<'a>(
        &mut self,
        rows: &[(&'a Ended, i64, &'a FetchResult)],
    ) -> sqlx::Result<()> {
        let text = |read: fn(&FetchResult) -> Option<&String>| {
            column(rows, |(.., result)| read(result).map(|text| writable(text)))
        };
        let query = outbox_query(PUT_OUT, rows)
            .bind(text(|result| Some(&result.status)))
            .bind(text(|result| result.content_type.as_ref()))
            .bind(column(rows, |(.., result)| result.http_status.map(i32::from)))
            .bind(text(|result| result.error.as_ref()))
            .bind(text(|result| result.extracted.as_ref()))
            .bind(text(|result| result.content.as_ref()))
            .bind(text(|result| result.details.as_ref()))
            .bind(column(rows, |(ended, _, result)| body_of(ended.job, &result.body)))
            .bind(self.now().as_micros());
        self.tx.execute(query).await?;
        let new_body = |(ended, _, result): &(&'a Ended, i64, &'a FetchResult)| match &result.body {
            ResultBody::New(body) => Some((ended.job, ended.caller.as_str(), body)),
            _ => None,
        };
        let bodies: Vec<BodyToKeep<'_>> = rows.iter().filter_map(new_body).collect();
        self.keep_bodies(&bodies).await
    }
}

/// Binds the columns that come first in both statements: message, caller, cursor and kind.
fn outbox_query<T>(statement: &'static str, rows: &[(&Ended, i64, T)]) -> PgQuery<'static> {
    sqlx::query(statement)
        .bind(column(rows, |(ended, ..)| ended.job))
        .bind(column(rows, |(ended, ..)| ended.caller.as_str()))
        .bind(column(rows, |(_, cursor, _)| *cursor))
        .bind(column(rows, |(ended, ..)| ended.kind.as_slice()))
}

/// The attempt as a line of the message's story.
fn line_of(result: &FetchResult) -> Option<String> {
    result.attempt.as_ref().map(|attempt| writable(&attempt.to_line()))
}

impl FromRow<'_, PgRow> for Ended {
    fn from_row(row: &PgRow) -> sqlx::Result<Ended> {
        Ok(Ended {
            job: row.try_get(0)?,
            key: row.try_get(1)?,
            caller: row.try_get(2)?,
            callback_url: row.try_get(3)?,
            kind: row.try_get(4)?,
            copies: row.try_get(5)?,
            is_cached: false,
            batch: row.try_get::<Option<[u8; 16]>, _>("batch")?.map(BatchId),
        })
    }
}
