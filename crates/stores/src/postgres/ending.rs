//! Ends messages: each gets a row in the outbox, with the next cursor of its caller, and possibly a delivery.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fetchwell_engine::ports::inbox::{FetchResult, MessageId};
use fetchwell_engine::ports::job::{Job, Lane, LeaseId, NewJob};
use fetchwell_policy::url::WebUrl;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::writable;
use super::moves::{Moves, QueueId};
use crate::shared::job_state::JobState;

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
}

pub(super) struct End<'a> {
    pub(super) id: LeaseId,
    pub(super) result: &'a FetchResult,
}

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
        extracted, content, stored_at)
    SELECT *, $11 FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BYTEA[], $5::TEXT[],
        $6::TEXT[], $7::INTEGER[], $8::TEXT[], $9::TEXT[], $10::TEXT[])";

const COPY_OUT: &str = "
    INSERT INTO fetchwell_outbox (job, caller, cursor, kind, status, content_type, http_status, error,
        extracted, content, stored_at)
    SELECT new.job, new.caller, new.cursor, new.kind, status, content_type, http_status, error,
        extracted, content, $6
    FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BYTEA[], $5::BIGINT[])
        AS new (job, caller, cursor, kind, copies)
    JOIN fetchwell_outbox AS original ON original.job = new.copies";

impl Moves {
    /// Ends messages that we hold, and their followers. `skipped` is the number of them that the ledger counts as
    /// skipped.
    pub(super) async fn end_messages(
        &mut self,
        queue: QueueId,
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
            RETURNING job.id, key, caller, callback_url, kind, NULL::BIGINT"
        ));
        let query = query
            .bind(ends.iter().map(|end| end.id).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end_state(end.result).number()).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| i64::from(end.result.attempts)).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end.result.reason()).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| line_of(end.result)).collect::<Vec<_>>())
            .bind(self.now().as_micros());
        let mut ended: Vec<Ended> =
            self.tx.fetch(query).await?.iter().map(ended_of).collect::<sqlx::Result<_>>()?;
        // Cursors follow the order of `ends`.
        let places: HashMap<LeaseId, usize> =
            ends.iter().enumerate().map(|(place, end)| (end.id, place)).collect();
        ended.sort_by_key(|ended| places.get(&ended.job).copied());
        let change = self.change(queue);
        change.in_flight -= ends.len() as i64;
        change.skipped += skipped;
        change.done += ends.len() as i64 - skipped;
        ended.extend(self.end_followers(queue, ends).await?);
        Ok(ended)
    }

    /// Records attempts that are not the last of their message.
    pub(super) async fn keep_attempts(
        &mut self,
        attempts: &[(LeaseId, &FetchResult)],
    ) -> sqlx::Result<()> {
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
        if ended.is_empty() {
            return Ok(BTreeSet::new());
        }
        let cursors = self.next_cursors(&ended).await?;
        let results: HashMap<LeaseId, &FetchResult> =
            results.iter().map(|end| (end.id, end.result)).collect();
        let rows: Vec<(&Ended, i64)> = ended.iter().zip(cursors).collect();
        let own: Vec<(&Ended, i64, &FetchResult)> = rows
            .iter()
            .filter(|(ended, _)| ended.copies.is_none())
            .filter_map(|(ended, cursor)| Some((*ended, *cursor, *results.get(&ended.job)?)))
            .collect();
        self.put_out_own(&own).await?;
        let copies: Vec<(&Ended, i64, LeaseId)> = rows
            .iter()
            .filter_map(|(ended, cursor)| Some((*ended, *cursor, ended.copies?)))
            .collect();
        self.put_out_copies(&copies).await?;
        let jobs = ended.iter().filter_map(delivery).collect::<Vec<_>>();
        if !jobs.is_empty() {
            self.accept(deliveries, jobs).await?;
        }
        Ok(ended.into_iter().map(|ended| ended.caller).collect())
    }

    async fn next_cursors(&mut self, ended: &[Ended]) -> sqlx::Result<Vec<i64>> {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for one in ended {
            *counts.entry(&one.caller).or_default() += 1;
        }
        let (names, numbers): (Vec<&str>, Vec<i64>) =
            counts.iter().map(|(name, count)| (*name, *count)).unzip();
        let query = sqlx::query(COUNT_RESULTS).bind(names).bind(numbers);
        let mut next: HashMap<String, i64> = HashMap::new();
        for row in self.tx.fetch(query.bind(self.now().as_micros())).await? {
            let name: String = row.try_get(0)?;
            let last: i64 = row.try_get(1)?;
            let count = counts.get(name.as_str()).copied().unwrap_or(0);
            next.insert(name, last - count);
        }
        let mut cursors = Vec::with_capacity(ended.len());
        for one in ended {
            let cursor = next.entry(one.caller.clone()).or_default();
            *cursor += 1;
            cursors.push(*cursor);
        }
        Ok(cursors)
    }

    async fn put_out_own(&mut self, rows: &[(&Ended, i64, &FetchResult)]) -> sqlx::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let text = |read: fn(&FetchResult) -> Option<&String>| -> Vec<Option<String>> {
            rows.iter().map(|(_, _, result)| read(result).map(|text| writable(text))).collect()
        };
        let status = |result: &FetchResult| result.http_status.map(i32::from);
        let query = sqlx::query(PUT_OUT)
            .bind(rows.iter().map(|(ended, ..)| ended.job).collect::<Vec<_>>())
            .bind(rows.iter().map(|(ended, ..)| ended.caller.as_str()).collect::<Vec<_>>())
            .bind(rows.iter().map(|(_, cursor, _)| *cursor).collect::<Vec<_>>())
            .bind(rows.iter().map(|(ended, ..)| ended.kind.to_vec()).collect::<Vec<_>>())
            .bind(text(|result| Some(&result.status)))
            .bind(text(|result| result.content_type.as_ref()))
            .bind(rows.iter().map(|(_, _, result)| status(result)).collect::<Vec<_>>())
            .bind(text(|result| result.error.as_ref()))
            .bind(text(|result| result.extracted.as_ref()))
            .bind(text(|result| result.content.as_ref()))
            .bind(self.now().as_micros());
        self.tx.execute(query).await?;
        Ok(())
    }

    async fn put_out_copies(&mut self, rows: &[(&Ended, i64, LeaseId)]) -> sqlx::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(COPY_OUT)
            .bind(rows.iter().map(|(ended, ..)| ended.job).collect::<Vec<_>>())
            .bind(rows.iter().map(|(ended, ..)| ended.caller.as_str()).collect::<Vec<_>>())
            .bind(rows.iter().map(|(_, cursor, _)| *cursor).collect::<Vec<_>>())
            .bind(rows.iter().map(|(ended, ..)| ended.kind.to_vec()).collect::<Vec<_>>())
            .bind(rows.iter().map(|(_, _, copies)| *copies).collect::<Vec<_>>())
            .bind(self.now().as_micros());
        self.tx.execute(query).await?;
        Ok(())
    }
}

pub(super) fn end_state(result: &FetchResult) -> JobState {
    if result.is_success() { JobState::Completed } else { JobState::Failed }
}

/// The attempt as a line of the message's story.
pub(super) fn line_of(result: &FetchResult) -> Option<String> {
    result.attempt.as_ref().map(|attempt| writable(&attempt.to_line()))
}

pub(super) fn ended_of(row: &PgRow) -> sqlx::Result<Ended> {
    Ok(Ended {
        job: row.try_get(0)?,
        key: row.try_get(1)?,
        caller: row.try_get(2)?,
        callback_url: row.try_get(3)?,
        kind: row.try_get(4)?,
        copies: row.try_get(5)?,
    })
}

fn delivery(ended: &Ended) -> Option<NewJob> {
    let url = ended.callback_url.clone()?;
    let site = WebUrl::parse(&url).ok().map(|url| url.site());
    let lane = Lane { group: None, party: Some(ended.caller.clone()) };
    let payload = MessageId(ended.key).to_string().into_bytes();
    Some(NewJob::now(Job { url, site, lane, deadline: None, payload }))
}
