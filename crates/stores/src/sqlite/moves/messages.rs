//! Moves of messages: jobs that are kept when they have ended, each with a row in the outbox.

use std::time::Duration;

use fetchwell_engine::ports::inbox::details::FetchDetails;
use fetchwell_engine::ports::inbox::{AttemptRecord, BatchId, FetchResult, MessageId, ResultBody};
use fetchwell_engine::ports::job::{Lane, LeaseId};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;

use super::batches::BatchChanges;
use super::rows::{Beginning, NewRow, Row};
use super::{LaneId, Moves};
use crate::shared::bodies::body_of;
use crate::shared::conclusion::{delivery, end_state};
use crate::shared::job_state::{JobState, sql};
use crate::sqlite::{bodies, deliveries};

/// Adds a line to the story of a job, unless it is NULL. If the story is long already, which takes about eight
/// attempts, its oldest line is dropped.
macro_rules! add_to_story {
    ($line:literal) => {
        concat!(
            "story = CASE WHEN ",
            $line,
            " IS NULL THEN story WHEN story IS NULL THEN ",
            $line,
            " WHEN length(story) < 2500 THEN story || char(10) || ",
            $line,
            " ELSE substr(story, instr(story, char(10)) + 1) || char(10) || ",
            $line,
            " END"
        )
    };
}

/// The context in which messages end, all at one time.
pub(in crate::sqlite) struct MessageEnding<'a> {
    /// The time on the wall clock.
    pub(in crate::sqlite) wall: Time,
    /// The queue of deliveries to callback URLs.
    pub(in crate::sqlite) deliveries: Moves<'a>,
    /// The callers that have a new result.
    pub(in crate::sqlite) callers: Vec<String>,
    /// What changed in the batches of messages that ended.
    pub(in crate::sqlite) batches: BatchChanges,
}

/// A message that has just ended.
pub(super) struct Ended {
    id: LeaseId,
    key: [u8; 16],
    pub(super) lane: LaneId,
    callback_url: Option<String>,
    kind: [u8; 16],
    batch: Option<[u8; 16]>,
}

impl Moves<'_> {
    /// Inserts a message that shares results with others of its kind: it may get a result at once, or follow another
    /// message.
    pub(in crate::sqlite) fn accept_sharing(
        &mut self,
        row: NewRow<'_>,
        max_age: Duration,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        let NewRow { new, caller, batch } = row;
        let stored = self.page_of_kind(&new.kind, self.now - max_age)?;
        let follows = match &stored {
            None => self.leader_of_kind(&new.kind)?,
            Some(_) => None,
        };
        let deadline = self.now + new.deadline_in;
        // A follower is not handed out before its deadline: until then its leader may deliver the result.
        let (state, due) = match follows {
            Some(_) => (JobState::Delayed, deadline),
            None => (JobState::Queued, self.now),
        };
        let lane = Lane { group: Some(new.retailer.clone()), party: Some(caller.to_owned()) };
        let lane = self.lane_id(&lane)?;
        let beginning = Beginning { state, due, follows, shares: true, batch };
        let id = self.insert(&[Row { new, lane, deadline }], &beginning, ending.wall)?;
        self.change.accepted += 1;
        *self.messages.entry(lane).or_default() += 1;
        match stored {
            Some((stored, body_of)) => {
                // A copy gets a kind of its own: otherwise later messages would find it, and a page would count as new
                // forever.
                let key = new.id.0;
                let callback_url = new.callback_url.clone();
                let kind = new.id.0;
                let ended = Ended { id, key, lane, callback_url, kind, batch };
                self.change.done += 1;
                let end = sql!("UPDATE job SET state = {completed}, ended_at = ?2 WHERE id = ?1");
                self.tx.run(end, (id, self.now.as_micros()))?;
                self.put_out(ended, caller, &stored, body_of, ending)
            }
            None => {
                self.expires(id, deadline);
                self.begin_waiting(new.site.as_str(), lane, due)
            }
        }
    }

    /// Inserts a message that has ended with this result: a page of the crawl with this key.
    pub(in crate::sqlite) fn accept_ended(
        &mut self,
        row: NewRow<'_>,
        crawl: i64,
        result: &FetchResult,
        skipped: bool,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        let NewRow { new, caller, batch } = row;
        let lane = Lane { group: Some(new.retailer.clone()), party: Some(caller.to_owned()) };
        let lane = self.lane_id(&lane)?;
        let deadline = self.now + new.deadline_in;
        let state = end_state(result);
        let due = self.now;
        let beginning = Beginning { state, due, follows: None, shares: false, batch };
        let id = self.insert(&[Row { new, lane, deadline }], &beginning, ending.wall)?;
        self.tx.run(
            "UPDATE job SET attempts = ?2, ended_at = ?3, reason = ?4, story = ?5, crawl = ?6
             WHERE id = ?1",
            (
                id,
                result.attempts,
                self.now.as_micros(),
                result.reason(),
                result.attempt.as_ref().map(AttemptRecord::to_line),
                crawl,
            ),
        )?;
        self.change.accepted += 1;
        match skipped {
            true => self.change.skipped += 1,
            false => self.change.done += 1,
        }
        *self.messages.entry(lane).or_default() += 1;
        let body_of = body_of(id, &result.body);
        let kind = new.kind;
        let ended = Ended { id, key: new.id.0, lane, callback_url: None, kind, batch };
        self.put_out(ended, caller, result, body_of, ending)?;
        if let ResultBody::New(body) = &result.body {
            bodies::keep(self.tx, id, caller, body, self.now, ending.wall)?;
        }
        let entry = "INSERT INTO message_crawl_result (crawl, place, job)
             SELECT ?1, cursor, job FROM outbox WHERE job = ?2";
        self.tx.run(entry, (crawl, id))?;
        Ok(())
    }

    /// Ends a message and its followers, if the epoch holds it. Returns whether it did.
    pub(in crate::sqlite) fn end_message(
        &mut self,
        epoch: i64,
        id: LeaseId,
        result: &FetchResult,
        skipped: bool,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<bool> {
        let ended = self.tx.find(
            sql!(concat!(
                "UPDATE job SET state = ?3, attempts = ?4, ended_at = ?5, epoch = NULL, reason = ?6, ",
                add_to_story!("?7"),
                " WHERE id = ?1 AND state = {leased} AND epoch = ?2
                 RETURNING id, key, lane, callback_url, kind, batch"
            )),
            (
                id,
                epoch,
                end_state(result),
                result.attempts,
                self.now.as_micros(),
                result.reason(),
                result.attempt.as_ref().map(AttemptRecord::to_line),
            ),
            ended_of,
        )?;
        let Some(ended) = ended else { return Ok(false) };
        self.change.in_flight -= 1;
        if skipped {
            self.change.skipped += 1;
        } else {
            self.change.done += 1;
        }
        let caller = self.lane_named(ended.lane)?.party.unwrap_or_default();
        let body_of = body_of(id, &result.body);
        self.put_out(ended, &caller, result, body_of, ending)?;
        if let ResultBody::New(body) = &result.body {
            bodies::keep(self.tx, id, &caller, body, self.now, ending.wall)?;
        }
        self.end_followers(id, &caller, result, body_of, ending)?;
        Ok(true)
    }

    /// Records an attempt that is not the last.
    pub(in crate::sqlite) fn keep_attempt(
        &self,
        id: LeaseId,
        result: &FetchResult,
    ) -> rusqlite::Result<()> {
        let Some(attempt) = &result.attempt else { return Ok(()) };
        let add = concat!("UPDATE job SET ", add_to_story!("?2"), " WHERE id = ?1");
        self.tx.run(add, (id, attempt.to_line()))?;
        Ok(())
    }

    /// Ends the followers of a message with its result. They belong to the same caller.
    fn end_followers(
        &mut self,
        leader: LeaseId,
        caller: &str,
        result: &FetchResult,
        body_of: Option<LeaseId>,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        // Followers send no requests of their own.
        let result = FetchResult { attempts: 0, ..result.clone() };
        for (id, state, site) in self.followers_of(leader)? {
            let ended = self.end_waiting(id, state, &site, &result)?;
            self.put_out(ended, caller, &result, body_of, ending)?;
        }
        Ok(())
    }

    /// The followers of a message that still wait, with their states and sites.
    fn followers_of(&self, leader: LeaseId) -> rusqlite::Result<Vec<(LeaseId, JobState, String)>> {
        let select =
            sql!("SELECT id, state, site FROM job WHERE follows = ?1 AND state < {leased}");
        self.tx.list(select, [leader], |row| row.try_into())
    }

    /// Ends a message that is not leased.
    pub(super) fn end_waiting(
        &mut self,
        id: LeaseId,
        state: JobState,
        site: &str,
        result: &FetchResult,
    ) -> rusqlite::Result<Ended> {
        let ended = self.tx.one(
            "UPDATE job SET state = ?2, ended_at = ?3, reason = ?4, attempts = ?5 WHERE id = ?1
             RETURNING id, key, lane, callback_url, kind, batch",
            (id, end_state(result), self.now.as_micros(), result.reason(), result.attempts),
            ended_of,
        )?;
        *state.waiting(&mut self.change) -= 1;
        self.change.done += 1;
        self.close_room_after_lease(site, ended.lane)?;
        Ok(ended)
    }

    /// Makes the followers of a message independent of it.
    pub(in crate::sqlite) fn free_followers(&mut self, leader: LeaseId) -> rusqlite::Result<()> {
        for (id, state, _) in self.followers_of(leader)? {
            *state.waiting(&mut self.change) -= 1;
            self.tx.run("UPDATE job SET follows = NULL WHERE id = ?1", [id])?;
            self.wait(id, self.now)?;
        }
        Ok(())
    }

    /// Writes the outbox row of a message, and its delivery. `body_of` is the message whose body the result has.
    pub(super) fn put_out(
        &mut self,
        ended: Ended,
        caller: &str,
        result: &FetchResult,
        body_of: Option<LeaseId>,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        let cursor: i64 = self.tx.one(
            "INSERT INTO caller (name, role, created_at, revoked_at, results)
             VALUES (?1, 'caller', ?2, ?2, 1)
             ON CONFLICT (name) DO UPDATE SET results = results + 1 RETURNING results",
            (caller, ending.wall.as_micros()),
            |row| row.get(0),
        )?;
        self.tx.run(
            "INSERT INTO outbox (job, caller, cursor, status, content_type, http_status, error,
                 extracted, kind, stored_at, created_at, content, details, cached_age, body_of)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            (
                ended.id,
                caller,
                cursor,
                &result.status,
                &result.content_type,
                result.http_status,
                &result.error,
                &result.extracted,
                ended.kind,
                self.now.as_micros(),
                ending.wall.as_micros(),
                &result.content,
                &result.details,
                result.cached_age.map(|age| age.as_micros() as i64),
                body_of,
            ),
        )?;
        if let Some(batch) = ended.batch {
            let entry = "INSERT INTO message_batch_result (batch, place, job) VALUES (?1, ?2, ?3)";
            self.tx.run(entry, (batch, cursor, ended.id))?;
            ending.batches.count(BatchId(batch), Some(result));
        }
        if let Some(url) = ended.callback_url {
            let message = MessageId(ended.key);
            deliveries::begin(self.tx, &message.to_string(), caller, &url, ending.wall)?;
            ending.deliveries.accept(&delivery(url, message, caller))?;
        }
        if !ending.callers.iter().any(|known| known == caller) {
            ending.callers.push(caller.to_owned());
        }
        Ok(())
    }

    /// The newest page of a kind stored at `since` or later, and the message whose body it has.
    fn page_of_kind(
        &self,
        kind: &[u8; 16],
        since: Time,
    ) -> rusqlite::Result<Option<(FetchResult, Option<LeaseId>)>> {
        self.tx.find(
            "SELECT content, content_type, http_status, error, extracted, details, stored_at, body_of
             FROM outbox
             WHERE kind = ?1 AND status = 'success' AND stored_at >= ?2
             ORDER BY stored_at DESC LIMIT 1",
            (kind, since.as_micros()),
            |row| {
                let stored_at = Time::from_micros(row.get(6)?);
                let page = FetchResult {
                    status: FetchResult::SUCCESS.to_owned(),
                    content: row.get(0)?,
                    content_type: row.get(1)?,
                    body: ResultBody::default(),
                    http_status: row.get(2)?,
                    error: row.get(3)?,
                    extracted: row.get(4)?,
                    attempts: 0,
                    attempt: None,
                    details: row.get::<_, Option<String>>(5)?.map(FetchDetails::without_crawl),
                    cached_age: Some(self.now.since(stored_at)),
                };
                Ok((page, row.get(7)?))
            },
        )
    }

    /// A message of a kind that has not ended and follows no other.
    fn leader_of_kind(&self, kind: &[u8; 16]) -> rusqlite::Result<Option<LeaseId>> {
        let select = sql!(
            "SELECT id FROM job
             WHERE kind = ?1 AND shares = 1 AND state < {dead} AND follows IS NULL
             ORDER BY id LIMIT 1"
        );
        self.tx.find(select, [kind], |row| row.get(0))
    }
}

fn ended_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Ended> {
    let (id, key, lane, callback_url, kind, batch) = <(_, _, _, _, _, _)>::try_from(row)?;
    Ok(Ended { id, key, lane, callback_url, kind, batch })
}
