//! Moves of messages: jobs that are kept when they have ended, each with a row in the outbox.

use std::sync::LazyLock;
use std::time::Duration;

use fetchwell_engine::ports::inbox::{AttemptRecord, FetchResult, MessageId, NewMessage};
use fetchwell_engine::ports::job::{Job, Lane, LeaseId, NewJob};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};
use rusqlite::{OptionalExtension, ToSql};

use super::{LaneId, Moves};
use crate::shared::job_state::{JobState, sql};
use crate::sqlite::message_row;

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

/// Values of a message that shares results, beside those of [`message_row::COLUMNS`].
const OWN: usize = 12;

static INSERT_SHARING: LazyLock<String> = LazyLock::new(|| {
    let columns = message_row::COLUMN_LIST.as_str();
    format!(
        "INSERT INTO job (queue, key, url, site, lane, payload, deadline, state, due, accepted_at,
             follows, created_at, shares, {columns})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 1, {})",
        message_row::places(OWN + 1)
    )
});

/// The context in which messages end, all at one time.
pub(in crate::sqlite) struct MessageEnding<'a> {
    /// The time on the wall clock.
    pub(in crate::sqlite) wall: Time,
    /// The queue of deliveries to callback URLs.
    pub(in crate::sqlite) deliveries: Moves<'a>,
    /// The callers that have a new result.
    pub(in crate::sqlite) callers: Vec<String>,
}

impl<'a> MessageEnding<'a> {
    pub(in crate::sqlite) fn new(deliveries: Moves<'a>, wall: Time) -> MessageEnding<'a> {
        MessageEnding { wall, deliveries, callers: Vec::new() }
    }
}

/// A message that has just ended.
pub(super) struct Ended {
    id: LeaseId,
    key: [u8; 16],
    pub(super) lane: LaneId,
    callback_url: Option<String>,
    kind: [u8; 16],
}

impl Moves<'_> {
    /// Inserts a message that shares results with others of its kind: it may get a result at once, or follow another
    /// message.
    pub(in crate::sqlite) fn accept_sharing(
        &mut self,
        new: &NewMessage,
        max_age: Duration,
        caller: &str,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        let stored = self.page_of_kind(&new.kind, self.now - max_age)?;
        let leader = match &stored {
            None => self.leader_of_kind(&new.kind)?,
            Some(_) => None,
        };
        let deadline = self.now + new.deadline_in;
        // A follower is not handed out before its deadline: until then its leader may deliver the result.
        let due = if leader.is_some() { deadline } else { self.now };
        let lane = Lane { group: Some(new.retailer.clone()), party: Some(caller.to_owned()) };
        let lane = self.lane_id(&lane)?;
        let site = new.site.as_str();
        let deadline_us = deadline.as_micros();
        let state = if leader.is_some() { JobState::Delayed } else { JobState::Queued };
        let due_us = due.as_micros();
        let now_us = self.now.as_micros();
        let wall_us = ending.wall.as_micros();
        let mut values: Vec<&dyn ToSql> = Vec::with_capacity(OWN + message_row::COLUMNS.len());
        values.extend([
            &self.queue as &dyn ToSql,
            &new.id.0,
            &new.url,
            &site,
            &lane,
            &new.options,
            &deadline_us,
            &state,
            &due_us,
            &now_us,
            &leader,
            &wall_us,
        ]);
        values.extend(message_row::values(new));
        self.tx.prepare_cached(&INSERT_SHARING)?.execute(values.as_slice())?;
        let id = self.tx.last_insert_rowid();
        self.change.accepted += 1;
        *self.messages.entry(lane).or_default() += 1;
        match stored {
            Some(stored) => {
                // A copy gets a kind of its own: otherwise later messages would find it, and a page would count as new
                // forever.
                let key = new.id.0;
                let callback_url = new.callback_url.clone();
                let kind = new.id.0;
                let ended = Ended { id, key, lane, callback_url, kind };
                self.change.done += 1;
                self.tx
                    .prepare_cached(sql!(
                        "UPDATE job SET state = {completed}, ended_at = ?2 WHERE id = ?1"
                    ))?
                    .execute((id, self.now.as_micros()))?;
                self.put_out(ended, caller, &stored, ending)
            }
            None => {
                self.expires(id, deadline);
                self.count_waiting(due);
                self.open_room(new.site.as_str(), lane, due)
            }
        }
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
        let ended = self
            .tx
            .prepare_cached(sql!(concat!(
                "UPDATE job SET state = ?3, attempts = ?4, ended_at = ?5, epoch = NULL, reason = ?6, ",
                add_to_story!("?7"),
                " WHERE id = ?1 AND state = {leased} AND epoch = ?2
                 RETURNING id, key, lane, callback_url, kind"
            )))?
            .query_row(
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
            )
            .optional()?;
        let Some(ended) = ended else { return Ok(false) };
        self.change.in_flight -= 1;
        if skipped {
            self.change.skipped += 1;
        } else {
            self.change.done += 1;
        }
        let caller = self.lane_named(ended.lane)?.party.unwrap_or_default();
        self.put_out(ended, &caller, result, ending)?;
        self.end_followers(id, &caller, result, ending)?;
        Ok(true)
    }

    /// Records an attempt that is not the last.
    pub(in crate::sqlite) fn keep_attempt(
        &self,
        id: LeaseId,
        result: &FetchResult,
    ) -> rusqlite::Result<()> {
        let Some(attempt) = &result.attempt else { return Ok(()) };
        self.tx
            .prepare_cached(concat!("UPDATE job SET ", add_to_story!("?2"), " WHERE id = ?1"))?
            .execute((id, attempt.to_line()))?;
        Ok(())
    }

    /// Ends the followers of a message with its result. They belong to the same caller.
    fn end_followers(
        &mut self,
        leader: LeaseId,
        caller: &str,
        result: &FetchResult,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        // Followers send no requests of their own.
        let result = FetchResult { attempts: 0, ..result.clone() };
        let followers: Vec<(LeaseId, JobState, String)> = self
            .tx
            .prepare_cached(sql!(
                "SELECT id, state, site FROM job WHERE follows = ?1 AND state < {leased}"
            ))?
            .query_map([leader], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (id, state, site) in followers {
            let ended = self.end_waiting(id, state, &site, &result)?;
            self.put_out(ended, caller, &result, ending)?;
        }
        Ok(())
    }

    /// Ends a message that is not leased.
    pub(super) fn end_waiting(
        &mut self,
        id: LeaseId,
        state: JobState,
        site: &str,
        result: &FetchResult,
    ) -> rusqlite::Result<Ended> {
        let ended = self
            .tx
            .prepare_cached(
                "UPDATE job SET state = ?2, ended_at = ?3, reason = ?4, attempts = ?5 WHERE id = ?1
                 RETURNING id, key, lane, callback_url, kind",
            )?
            .query_row(
                (id, end_state(result), self.now.as_micros(), result.reason(), result.attempts),
                ended_of,
            )?;
        match state {
            JobState::Delayed => self.change.delayed -= 1,
            _ => self.change.queued -= 1,
        }
        self.change.done += 1;
        self.close_room_after_lease(site, ended.lane)?;
        Ok(ended)
    }

    /// Makes the followers of a message independent of it.
    pub(in crate::sqlite) fn free_followers(&mut self, leader: LeaseId) -> rusqlite::Result<()> {
        let freed: Vec<(LeaseId, JobState)> = self
            .tx
            .prepare_cached(sql!(
                "SELECT id, state FROM job WHERE follows = ?1 AND state < {leased}"
            ))?
            .query_map([leader], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (id, state) in freed {
            match state {
                JobState::Delayed => self.change.delayed -= 1,
                _ => self.change.queued -= 1,
            }
            self.tx.prepare_cached("UPDATE job SET follows = NULL WHERE id = ?1")?.execute([id])?;
            self.wait(id, self.now)?;
        }
        Ok(())
    }

    /// Writes the outbox row of a message, and its delivery.
    pub(super) fn put_out(
        &mut self,
        ended: Ended,
        caller: &str,
        result: &FetchResult,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        let cursor: i64 = self
            .tx
            .prepare_cached(
                "INSERT INTO caller (name, role, created_at, revoked_at, results)
                 VALUES (?1, 'caller', ?2, ?2, 1)
                 ON CONFLICT (name) DO UPDATE SET results = results + 1 RETURNING results",
            )?
            .query_row((caller, ending.wall.as_micros()), |row| row.get(0))?;
        self.tx
            .prepare_cached(
                "INSERT INTO outbox (job, caller, cursor, status, content_type, http_status, error,
                     extracted, kind, stored_at, created_at, content)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute((
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
            ))?;
        if let Some(url) = ended.callback_url {
            ending.deliveries.accept(&delivery(&url, MessageId(ended.key), caller))?;
        }
        if !ending.callers.iter().any(|known| known == caller) {
            ending.callers.push(caller.to_owned());
        }
        Ok(())
    }

    /// The newest page of a kind stored at `since` or later.
    fn page_of_kind(&self, kind: &[u8; 16], since: Time) -> rusqlite::Result<Option<FetchResult>> {
        self.tx
            .prepare_cached(
                "SELECT content, content_type, http_status, error, extracted FROM outbox
                 WHERE kind = ?1 AND status = 'success' AND stored_at >= ?2
                 ORDER BY stored_at DESC LIMIT 1",
            )?
            .query_row((kind, since.as_micros()), |row| {
                Ok(FetchResult {
                    status: FetchResult::SUCCESS.to_owned(),
                    content: row.get(0)?,
                    content_type: row.get(1)?,
                    http_status: row.get(2)?,
                    error: row.get(3)?,
                    extracted: row.get(4)?,
                    attempts: 0,
                    attempt: None,
                })
            })
            .optional()
    }

    /// A message of a kind that has not ended and follows no other.
    fn leader_of_kind(&self, kind: &[u8; 16]) -> rusqlite::Result<Option<LeaseId>> {
        self.tx
            .prepare_cached(sql!(
                "SELECT id FROM job
                 WHERE kind = ?1 AND shares = 1 AND state < {dead} AND follows IS NULL
                 ORDER BY id LIMIT 1"
            ))?
            .query_row([kind], |row| row.get(0))
            .optional()
    }
}

fn ended_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Ended> {
    Ok(Ended {
        id: row.get(0)?,
        key: row.get(1)?,
        lane: row.get(2)?,
        callback_url: row.get(3)?,
        kind: row.get(4)?,
    })
}

fn end_state(result: &FetchResult) -> JobState {
    if result.is_success() { JobState::Completed } else { JobState::Failed }
}

fn delivery(url: &str, message: MessageId, caller: &str) -> NewJob {
    let site: Option<Site> = WebUrl::parse(url).ok().map(|url| url.site());
    let lane = Lane { group: None, party: Some(caller.to_owned()) };
    let payload = message.to_string().into_bytes();
    NewJob::now(Job { url: url.to_owned(), site, lane, deadline: None, payload })
}
