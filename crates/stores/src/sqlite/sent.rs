//! Lists the messages of one caller, newest first.

use fetchwell_engine::ports::inbox::sent::{MOST_SENT, SentFilter, SentMessage, SentPage};
use fetchwell_engine::ports::inbox::{Message, MessageId};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

use crate::shared::job_state::JobState;

/// A page is read in windows of this many ids. A window costs no more than its rows, however many lanes the caller has.
const WINDOW: i64 = 5_000;
/// The maximum number of windows that one page reads.
const MOST_WINDOWS: u32 = 10;

/// The newest message of the caller up to an id.
const NEWEST: &str = "
    SELECT max((SELECT id FROM job INDEXED BY job_sent
                WHERE job.lane = lane.id AND job.id <= ?3 AND correlation_id IS NOT NULL
                ORDER BY id DESC LIMIT 1))
    FROM lane WHERE queue = ?1 AND party = ?2";

/// The range of ids that contains the batch's messages. Other jobs may lie in between.
const BATCH: &str = "SELECT first_job, last_job FROM message_batch WHERE id = ?1 AND caller = ?2";

/// CROSS JOIN makes SQLite read the caller's lanes first, then their messages by the index.
const FOUND: &str = "
     SELECT job.id, job.key, job.url, lane.grp, job.correlation_id, lane.party, job.state, job.created_at,
         CASE WHEN outbox.job IS NULL
              THEN job.attempts + job.url_failures + job.site_failures + job.paced
              ELSE job.attempts END,
         outbox.status
     FROM (SELECT job.id AS id FROM lane CROSS JOIN job INDEXED BY job_sent ON job.lane = lane.id
           WHERE lane.queue = ?1 AND lane.party = ?2 AND job.id BETWEEN ?3 AND ?4
               AND job.correlation_id IS NOT NULL AND (?5 IS NULL OR job.correlation_id = ?5)
               AND (?6 IS NULL OR job.state = ?6 OR job.state = ?7)
               AND (?8 IS NULL OR job.batch = ?8)
           ORDER BY job.id DESC LIMIT ?9) AS found
     CROSS JOIN job ON job.id = found.id JOIN lane ON lane.id = job.lane
     LEFT JOIN outbox ON outbox.job = job.id
     ORDER BY job.id DESC";

/// Messages of the caller that match, from the newest one or from the `next` of another page on.
pub(super) fn list(
    tx: &Connection,
    queue: i64,
    caller: &str,
    filter: &SentFilter,
    from: Option<i64>,
    most: u32,
) -> rusqlite::Result<SentPage> {
    let most = most.clamp(1, MOST_SENT) as usize;
    let states = filter.status.map(JobState::of_status);
    let batch = filter.batch.map(|batch| batch.0);
    let mut found: Vec<(LeaseId, SentMessage)> = Vec::new();
    let range: Option<(LeaseId, LeaseId)> = match batch {
        Some(batch) => tx.find(BATCH, (batch, caller), |row| row.try_into())?,
        None => Some((0, LeaseId::MAX)),
    };
    let Some((oldest, newest)) = range else {
        return Ok(SentPage { messages: Vec::new(), next: None });
    };
    let mut next = Some(from.map_or(newest, |from| from.min(newest)));
    for _ in 0..MOST_WINDOWS {
        let Some(from) = next else { break };
        let last: Option<LeaseId> = tx.one(NEWEST, (queue, caller, from), |row| row.get(0))?;
        let Some(last) = last else {
            next = None;
            break;
        };
        let first = (last - WINDOW + 1).max(oldest);
        let wanted = most + 1 - found.len();
        let rows = tx.list(
            FOUND,
            (
                queue,
                caller,
                first,
                last,
                &filter.correlation_id,
                states.map(|(one, _)| one),
                states.map(|(_, other)| other),
                batch,
                wanted,
            ),
            sent_of,
        )?;
        found.extend(rows);
        if let Some((id, _)) = found.get(most) {
            next = Some(*id);
            break;
        }
        next = (first > oldest).then_some(first - 1);
    }
    found.truncate(most);
    Ok(SentPage { messages: found.into_iter().map(|(_, message)| message).collect(), next })
}

fn sent_of(row: &Row<'_>) -> rusqlite::Result<(LeaseId, SentMessage)> {
    let message = Message {
        id: MessageId(row.get(1)?),
        url: row.get(2)?,
        retailer: row.get(3)?,
        correlation_id: row.get(4)?,
        caller: row.get(5)?,
        status: row.get::<_, JobState>(6)?.into(),
        created_at: Time::from_micros(row.get(7)?),
        attempts: row.get(8)?,
        outbox: None,
    };
    Ok((row.get(0)?, SentMessage { message, result_status: row.get(9)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    /// A caller whose messages lie far apart has them all, page by page, and no page reads more than it may.
    #[test]
    fn messages_that_lie_far_apart_are_found_window_by_window() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let every = WINDOW * 2;
        let count = i64::from(MOST_WINDOWS) * 2 + 3;
        connection
            .execute_batch(&format!(
                "INSERT INTO queue (id, name) VALUES (3, 'messages');
                 INSERT INTO lane (id, queue, grp, party) VALUES (7, 3, 'a', 'anna'), (8, 3, 'b', 'anna'),
                     (9, 3, 'a', 'berta');
                 WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})
                 INSERT INTO job (id, queue, key, url, site, lane, correlation_id, payload, state, due, accepted_at,
                     created_at)
                 SELECT n * {every}, 3, randomblob(16), n, 'a.test', 7 + n % 2, 'c', x'', 0, 0, 0, 0 FROM n;
                 INSERT INTO job (id, queue, key, url, site, lane, correlation_id, payload, state, due, accepted_at,
                     created_at)
                 SELECT id + 1, 3, randomblob(16), 'other', 'a.test', 9, 'c', x'', 0, 0, 0, 0 FROM job;"
            ))
            .unwrap();
        let mut urls = Vec::new();
        let mut from = None;
        let mut pages = 0;
        loop {
            let page = list(&connection, 3, "anna", &SentFilter::default(), from, 1_000).unwrap();
            assert!(page.messages.len() <= MOST_WINDOWS as usize, "{}", page.messages.len());
            urls.extend(page.messages.into_iter().map(|one| one.message.url));
            pages += 1;
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let expected: Vec<String> = (1..=count).rev().map(|n| n.to_string()).collect();
        assert_eq!((urls, pages), (expected, 3));
    }

    #[test]
    fn the_list_is_read_by_its_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {FOUND}")).unwrap();
        let nothing = rusqlite::params_from_iter([rusqlite::types::Null; 9]);
        let plan: Vec<String> =
            explain.query_map(nothing, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        let plan = plan.join("\n");
        for step in
            ["SEARCH lane USING COVERING INDEX lane_party", "job_sent (lane=? AND id>? AND id<?)"]
        {
            assert!(plan.contains(step), "{step}:\n{plan}");
        }
    }
}
