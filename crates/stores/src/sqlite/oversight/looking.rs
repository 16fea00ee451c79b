//! Lists, counts and groups messages. Ids grow with time, so the newest messages have the highest ids.

use fetchwell_engine::ports::inbox::{FetchResult, MessageId, attempts_of};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::oversight::{
    Count, FailureGroup, Failures, MESSAGES_PER_PAGE, MOST_COUNTED, MessageDetail,
    MessageSummaries, MessageSummary,
};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row, params};

use crate::shared::job_state::{JobState, sql};
use crate::shared::looking::{
    Among, FAILURES_PER_LOOK, Look, MOST_GROUPS, ROWS_PER_LOOK, state_of, told_by_ledger,
};
use crate::sqlite::outbox;
use crate::sqlite::queue::read_ledger;

const SIGHTING: &str = sql!(
    "SELECT job.id, key, url, site, grp, correlation_id, party, state, reason,
    created_at, due, ended_at,
    CASE WHEN state > {dead} THEN attempts ELSE url_failures + site_failures + paced END,
    retry_of, retried_as, deadline, callback_url, story "
);

/// The filter. ?1 is the queue; ?2 and ?3 are the bounds of the ids. CROSS JOIN makes SQLite read jobs first, then
/// their lanes.
const MATCHES: &str = "CROSS JOIN lane ON lane.id = job.lane
    WHERE job.queue = ?1 AND job.id BETWEEN ?2 AND ?3
    AND (?4 IS NULL OR state = ?4 OR state = ?5)
    AND (?6 IS NULL OR site = ?6) AND (?7 IS NULL OR reason = ?7)
    AND (?8 IS NULL OR grp = ?8) AND (?9 IS NULL OR party = ?9)
    AND (?10 IS NULL OR instr(lower(url), lower(?10)) > 0)
    AND (?11 IS NULL OR correlation_id = ?11)
    AND accepted_at <= ?12 AND (ended_at IS NULL OR ended_at <= ?12)";

/// The FROM clause with the index to use, and the condition that the index requires.
fn place(among: Among) -> (&'static str, &'static str) {
    match among {
        Among::All => ("FROM job NOT INDEXED ", ""),
        Among::Failed => ("FROM job INDEXED BY job_failed ", " AND reason IS NOT NULL"),
        Among::Waiting => ("FROM job INDEXED BY job_waiting ", sql!(" AND state < {leased}")),
        Among::Leased => ("FROM job INDEXED BY job_leased ", sql!(" AND state = {leased}")),
    }
}

/// The range of ids that one query covers.
struct Stretch {
    first: LeaseId,
    last: LeaseId,
    /// Whether there are no rows before it.
    is_last: bool,
}

fn stretch(
    tx: &Connection,
    queue: i64,
    among: Among,
    from: Option<i64>,
) -> rusqlite::Result<Stretch> {
    let from = from.unwrap_or(LeaseId::MAX);
    let (newest, most) = match among {
        // Starts at the newest existing row, so that deleted ids are not scanned.
        Among::All => (
            "SELECT last - ?3 + 1, last, NOT EXISTS (SELECT 1 FROM job WHERE id < last - ?3 + 1)
             FROM (SELECT max(id) AS last FROM job WHERE id <= ?2)",
            ROWS_PER_LOOK,
        ),
        Among::Failed => (
            "SELECT first, last, NOT EXISTS (
                 SELECT 1 FROM job INDEXED BY job_failed
                 WHERE queue = ?1 AND reason IS NOT NULL AND id < first)
             FROM (SELECT min(id) AS first, max(id) AS last FROM (
                 SELECT id FROM job INDEXED BY job_failed
                 WHERE queue = ?1 AND reason IS NOT NULL AND id <= ?2 ORDER BY id DESC LIMIT ?3))",
            FAILURES_PER_LOOK,
        ),
        Among::Waiting | Among::Leased => {
            return Ok(Stretch { first: 0, last: from, is_last: true });
        }
    };
    let bounds: (Option<LeaseId>, Option<LeaseId>, bool) =
        tx.one(newest, (queue, from, most), |row| row.try_into())?;
    Ok(match bounds {
        (Some(first), Some(last), is_last) => Stretch { first, last, is_last },
        _ => Stretch { first: 0, last: 0, is_last: true },
    })
}

/// Messages that match, newest first.
pub(super) fn list(
    tx: &Connection,
    queue: i64,
    look: &Look,
    from: Option<i64>,
    most: u32,
) -> rusqlite::Result<MessageSummaries> {
    let most = most.clamp(1, MESSAGES_PER_PAGE) as usize;
    let among = look.among(&read_ledger(tx, queue)?);
    let stretch = stretch(tx, queue, among, from)?;
    let (place, condition) = place(among);
    let sql = format!("{SIGHTING}{place}{MATCHES}{condition} ORDER BY job.id DESC LIMIT ?13");
    let mut seen: Vec<(LeaseId, MessageSummary)> =
        select(tx, &sql, queue, look, &stretch, most + 1, |row| {
            Ok((row.get(0)?, summary_of(row)?))
        })?;
    let next = match seen.get(most) {
        Some((id, _)) => Some(*id),
        None => (!stretch.is_last).then_some(stretch.first - 1),
    };
    seen.truncate(most);
    let messages = seen.into_iter().map(|(_, summary)| summary).collect();
    Ok(MessageSummaries { messages, next, as_of: look.as_of })
}

/// The number of matches, by the ledger or as far as one query reaches.
pub(super) fn count(tx: &Connection, queue: i64, look: &Look) -> rusqlite::Result<Count> {
    let ledger = read_ledger(tx, queue)?;
    if let Some(found) = told_by_ledger(look, &ledger) {
        return Ok(Count { found, is_exact: true, as_of: look.as_of });
    }
    let among = look.among(&ledger);
    let stretch = stretch(tx, queue, among, None)?;
    let (place, condition) = place(among);
    let sql = format!("SELECT count(*) FROM (SELECT 1 {place}{MATCHES}{condition} LIMIT ?13)");
    let most = usize::try_from(MOST_COUNTED).unwrap_or(usize::MAX);
    let found = select(tx, &sql, queue, look, &stretch, most + 1, |row| row.get(0))?;
    let found: u64 = found.first().copied().unwrap_or(0);
    let is_exact = stretch.is_last && found <= MOST_COUNTED;
    Ok(Count { found: found.min(MOST_COUNTED), is_exact, as_of: look.as_of })
}

/// The details of a message.
pub(super) fn detail(
    tx: &Connection,
    queue: i64,
    id: MessageId,
) -> rusqlite::Result<Option<MessageDetail>> {
    let sql = format!(
        "{SIGHTING}, (SELECT key FROM job AS leader WHERE leader.id = job.follows)
         FROM job JOIN lane ON lane.id = job.lane WHERE job.queue = ?1 AND key = ?2"
    );
    tx.find(&sql, (queue, id.0), |row| {
        let story: Option<String> = row.get(17)?;
        Ok(MessageDetail {
            message: summary_of(row)?,
            deadline: row.get::<_, Option<i64>>(15)?.map(Time::from_micros),
            callback_url: row.get(16)?,
            follows: row.get::<_, Option<[u8; 16]>>(18)?.map(MessageId),
            attempts: attempts_of(&story.unwrap_or_default()),
            outbox: outbox::of_job(tx, row.get(0)?)?,
        })
    })
}

/// The newest failures that have not been retried, by reason and site.
pub(super) fn failures(tx: &Connection, queue: i64, as_of: Time) -> rusqlite::Result<Failures> {
    let stretch = stretch(tx, queue, Among::Failed, None)?;
    let groups: Vec<(String, String, u64, LeaseId)> = tx.list(
        "SELECT reason, site, count(*), max(id) FROM job INDEXED BY job_failed
         WHERE queue = ?1 AND reason IS NOT NULL AND id BETWEEN ?2 AND ?3
             AND reason <> ?4 AND retried_as IS NULL
         GROUP BY reason, site ORDER BY count(*) DESC, reason, site LIMIT ?5",
        (queue, stretch.first, stretch.last, FetchResult::CANCELLED, MOST_GROUPS + 1),
        |row| row.try_into(),
    )?;
    let is_exact = stretch.is_last && groups.len() as i64 <= MOST_GROUPS;
    let sql = format!("{SIGHTING} FROM job JOIN lane ON lane.id = job.lane WHERE job.id = ?1");
    let groups = groups
        .into_iter()
        .take(usize::try_from(MOST_GROUPS).unwrap_or(0))
        .map(|(reason, site, messages, id)| {
            let sample = tx.one(&sql, [id], summary_of)?;
            Ok(FailureGroup { reason, site, messages, sample })
        })
        .collect::<rusqlite::Result<_>>()?;
    Ok(Failures { groups, is_exact, as_of })
}

fn select<T>(
    tx: &Connection,
    sql: &str,
    queue: i64,
    look: &Look,
    stretch: &Stretch,
    most: usize,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let filter = &look.filter;
    let states = look.states();
    tx.list(
        sql,
        params![
            queue,
            stretch.first,
            stretch.last,
            states.map(|(one, _)| one),
            states.map(|(_, other)| other),
            filter.site,
            filter.reason,
            filter.retailer,
            filter.caller,
            filter.url_contains,
            filter.correlation_id,
            look.as_of.as_micros(),
            most,
        ],
        read,
    )
}

fn summary_of(row: &Row<'_>) -> rusqlite::Result<MessageSummary> {
    let time = |micros: Option<i64>| micros.map(Time::from_micros);
    let stored: JobState = row.get(7)?;
    Ok(MessageSummary {
        id: MessageId(row.get(1)?),
        url: row.get(2)?,
        site: row.get(3)?,
        retailer: row.get(4)?,
        correlation_id: row.get(5)?,
        caller: row.get(6)?,
        state: state_of(stored),
        reason: row.get(8)?,
        created_at: Time::from_micros(row.get(9)?),
        due_at: time(row.get(10)?).filter(|_| stored.waits()),
        ended_at: time(row.get(11)?),
        attempts: row.get(12)?,
        retry_of: row.get::<_, Option<[u8; 16]>>(13)?.map(MessageId),
        retried_as: row.get::<_, Option<[u8; 16]>>(14)?.map(MessageId),
    })
}
