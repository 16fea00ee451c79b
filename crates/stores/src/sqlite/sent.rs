//! Lists the messages of one caller, newest first.

use fetchwell_engine::ports::inbox::sent::{MOST_SENT, SentFilter, SentMessage, SentPage};
use fetchwell_engine::ports::inbox::{Message, MessageId};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

use crate::shared::job_state::JobState;

/// A page reads the jobs in windows of this many ids. A window costs at most its jobs, including those of other callers.
const WINDOW: i64 = 5_000;
/// The maximum number of windows that one page reads.
const MOST_WINDOWS: u32 = 10;

/// The highest id, up to `?3`, where the caller may have a message: its newest message outside batches, or the end of its
/// newest batch's job range. A later batch never has a lower range.
const NEWEST: &str = "
    SELECT nullif(max(
        coalesce((SELECT max((SELECT max(id) FROM job INDEXED BY job_alone
                              WHERE job.lane = lane.id AND job.id <= ?3
                                  AND batch IS NULL AND correlation_id IS NOT NULL))
                  FROM lane WHERE queue = ?1 AND party = ?2), 0),
        coalesce((SELECT min(last_job, ?3) FROM message_batch
                  WHERE caller = ?2 AND first_job <= ?3 ORDER BY first_job DESC LIMIT 1), 0)
    ), 0)";

/// The range of ids that contains the batch's messages. Other jobs may lie in between.
const BATCH: &str = "SELECT first_job, last_job FROM message_batch WHERE id = ?1 AND caller = ?2";

/// CROSS JOIN makes SQLite read the jobs first, newest first, and stop when it has enough.
const FOUND: &str = "
    SELECT job.id, job.key, job.url, lane.grp, job.correlation_id, lane.party, job.state, job.created_at,
        CASE WHEN outbox.job IS NULL
             THEN job.attempts + job.url_failures + job.site_failures + job.paced
             ELSE job.attempts END,
        outbox.status
    FROM job NOT INDEXED CROSS JOIN lane ON lane.id = job.lane LEFT JOIN outbox ON outbox.job = job.id
    WHERE lane.queue = ?1 AND lane.party = ?2 AND job.id BETWEEN ?3 AND ?4
        AND job.correlation_id IS NOT NULL AND (?5 IS NULL OR job.correlation_id = ?5)
        AND (?6 IS NULL OR job.state = ?6 OR job.state = ?7)
        AND (?8 IS NULL OR job.batch = ?8)
    ORDER BY job.id DESC LIMIT ?9";

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

    /// All messages of a caller are listed, page by page, even if they lie far apart and every third one is in a batch. No
    /// page reads more than it may.
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
                 SELECT id + 1, 3, randomblob(16), 'other', 'a.test', 9, 'c', x'', 0, 0, 0, 0 FROM job;
                 UPDATE job SET batch = key WHERE lane <> 9 AND id / {every} % 3 = 0;
                 INSERT INTO message_batch (id, caller, created_at, expected_at, first_job, last_job, total)
                 SELECT batch, 'anna', 0, 0, id, id + 1, 1 FROM job WHERE batch IS NOT NULL;"
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
    fn messages_of_an_older_file_are_listed() {
        let mut connection = schema::before("INDEX job_alone");
        connection
            .execute_batch(
                "INSERT INTO queue (id, name) VALUES (3, 'messages');
                 INSERT INTO lane (id, queue, grp, party) VALUES (7, 3, 'a', 'anna');
                 INSERT INTO job (queue, key, url, site, lane, correlation_id, payload, state, due, accepted_at,
                     created_at, batch)
                 VALUES (3, randomblob(16), 'alone', 'a.test', 7, 'c', x'', 0, 0, 0, 0, NULL),
                     (3, randomblob(16), 'in a batch', 'a.test', 7, 'c', x'', 0, 0, 0, 0, zeroblob(16));
                 INSERT INTO message_batch (id, caller, created_at, expected_at, first_job, last_job, total)
                 VALUES (zeroblob(16), 'anna', 0, 0, 2, 2, 1);",
            )
            .unwrap();
        schema::migrate(&mut connection).unwrap();
        let page = list(&connection, 3, "anna", &SentFilter::default(), None, 10).unwrap();
        let urls: Vec<_> = page.messages.iter().map(|one| one.message.url.as_str()).collect();
        assert_eq!(urls, ["in a batch", "alone"]);
    }

    /// No part of the list reads more than a window of jobs, however many there are.
    #[test]
    fn the_list_scans_no_table() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        for (query, values, steps) in [
            (
                NEWEST,
                3,
                &[
                    "job_alone (lane=? AND rowid<?)",
                    "message_batch_jobs (caller=? AND first_job<?)",
                ],
            ),
            (
                FOUND,
                9,
                &[
                    "job USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
                    "lane USING INTEGER PRIMARY KEY",
                ],
            ),
        ] {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
            let nothing = rusqlite::params_from_iter(vec![rusqlite::types::Null; values]);
            let plan: Vec<String> =
                explain.query_map(nothing, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
            let plan = plan.join("\n");
            for step in steps {
                assert!(plan.contains(step), "{step}:\n{plan}");
            }
            assert!(!plan.contains("SCAN job") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
