//! The tables, and how an older file becomes a newer one.

use rusqlite::{Connection, TransactionBehavior};

/// Each step brings a file from one version to the next; a step is never changed once it has shipped.
const STEPS: &[&str] = &["
    CREATE TABLE queue (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        accepted INTEGER NOT NULL DEFAULT 0,
        done INTEGER NOT NULL DEFAULT 0,
        skipped INTEGER NOT NULL DEFAULT 0,
        queued INTEGER NOT NULL DEFAULT 0,
        in_flight INTEGER NOT NULL DEFAULT 0,
        delayed INTEGER NOT NULL DEFAULT 0,
        dead INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    -- state: 0 queued, 1 delayed, 2 leased, 3 dead. Times are microseconds since the Unix epoch.
    CREATE TABLE job (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        queue INTEGER NOT NULL REFERENCES queue (id),
        key BLOB,
        url TEXT NOT NULL,
        site TEXT NOT NULL,
        grp TEXT,
        payload BLOB NOT NULL,
        deadline INTEGER,
        state INTEGER NOT NULL,
        due INTEGER NOT NULL,
        accepted_at INTEGER NOT NULL,
        url_failures INTEGER NOT NULL DEFAULT 0,
        site_failures INTEGER NOT NULL DEFAULT 0,
        paced INTEGER NOT NULL DEFAULT 0,
        first_site_failure INTEGER,
        interruptions INTEGER NOT NULL DEFAULT 0,
        started INTEGER NOT NULL DEFAULT 0,
        epoch INTEGER,
        reason TEXT
    ) STRICT;
    CREATE UNIQUE INDEX job_key ON job (queue, key) WHERE key IS NOT NULL;
    CREATE INDEX job_waiting ON job (queue, site, due, id) WHERE state < 2;
    CREATE INDEX job_deadline ON job (queue, deadline) WHERE state < 2 AND deadline IS NOT NULL;
    CREATE INDEX job_leased ON job (epoch) WHERE state = 2;
    CREATE INDEX job_dead ON job (queue, id) WHERE state = 3;

    -- A site with something waiting, and when it may next give: when its first job is due, and not
    -- while it is closed. Taking looks here first, so that its cost does not grow with the number of
    -- jobs.
    CREATE TABLE room (
        queue INTEGER NOT NULL,
        site TEXT NOT NULL,
        due INTEGER NOT NULL,
        closed_until INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (queue, site)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX room_due ON room (queue, due);

    CREATE TABLE instance (
        epoch INTEGER PRIMARY KEY AUTOINCREMENT,
        queue INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;

    -- Output files: what lies beyond the length was never confirmed.
    CREATE TABLE output (
        path TEXT PRIMARY KEY,
        length INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE site (
        site TEXT PRIMARY KEY,
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE page (
        key TEXT PRIMARY KEY,
        body BLOB NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX page_expires ON page (expires_at);

    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE robots (
        origin TEXT PRIMARY KEY,
        record TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
", "
    -- In whose name jobs are done; '' is nobody, and so is a job's lane 0. `messages` counts those of an
    -- inbox: with the last of them the lane goes.
    CREATE TABLE lane (
        id INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL,
        grp TEXT NOT NULL,
        party TEXT NOT NULL,
        messages INTEGER NOT NULL DEFAULT 0,
        UNIQUE (queue, grp, party)
    ) STRICT;

    -- A message of an inbox is a job whose key is its id, and that stays when it has ended:
    -- state 4 completed, 5 failed. Messages of one kind ask for the same; those that share it may be
    -- led by another: `follows` is the job whose result will be this one's, too.
    DROP INDEX job_waiting;
    ALTER TABLE job DROP COLUMN grp;
    ALTER TABLE job ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE job ADD COLUMN correlation_id TEXT;
    ALTER TABLE job ADD COLUMN callback_url TEXT;
    ALTER TABLE job ADD COLUMN kind BLOB;
    ALTER TABLE job ADD COLUMN shares INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE job ADD COLUMN follows INTEGER;
    ALTER TABLE job ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE job ADD COLUMN created_at INTEGER;
    ALTER TABLE job ADD COLUMN ended_at INTEGER;
    CREATE INDEX job_waiting ON job (queue, site, lane, due, id) WHERE state < 2;
    CREATE INDEX job_sharing ON job (kind) WHERE shares = 1 AND state < 3;
    CREATE INDEX job_follows ON job (follows) WHERE follows IS NOT NULL;

    DROP TABLE room;
    CREATE TABLE room (
        queue INTEGER NOT NULL,
        site TEXT NOT NULL,
        lane INTEGER NOT NULL,
        due INTEGER NOT NULL,
        closed_until INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (queue, site, lane)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX room_due ON room (queue, lane, due);
    INSERT INTO room (queue, site, lane, due)
        SELECT queue, site, lane, min(due) FROM job WHERE state < 2 GROUP BY queue, site, lane;

    -- `results` counts a caller's results; those up to `pruned` are gone.
    CREATE TABLE caller (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        token_hash BLOB UNIQUE,
        created_at INTEGER NOT NULL,
        revoked_at INTEGER,
        results INTEGER NOT NULL DEFAULT 0,
        pruned INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;

    -- `stored_at` is by the store's clock, `created_at` by the wall clock.
    CREATE TABLE outbox (
        job INTEGER PRIMARY KEY,
        caller TEXT NOT NULL,
        cursor INTEGER NOT NULL,
        status TEXT NOT NULL,
        content_type TEXT,
        http_status INTEGER,
        error TEXT,
        extracted TEXT,
        kind BLOB NOT NULL,
        stored_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        content TEXT,
        UNIQUE (caller, cursor)
    ) STRICT;
    CREATE INDEX outbox_kind ON outbox (kind, stored_at) WHERE status = 'success';

    CREATE TABLE idempotency (
        caller TEXT NOT NULL,
        key TEXT NOT NULL,
        body_hash BLOB NOT NULL,
        messages BLOB NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (caller, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX idempotency_age ON idempotency (created_at);

    CREATE TABLE audit (
        id INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        caller TEXT,
        action TEXT NOT NULL,
        detail TEXT NOT NULL,
        origin TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_submitted ON audit (at) WHERE action = 'submit';
    CREATE INDEX audit_other ON audit (at) WHERE action <> 'submit';
", "
    -- Runs of jobs: those from `first` to `last` that have this deadline, if they are still there.
    DROP INDEX job_deadline;
    CREATE TABLE expiry (
        queue INTEGER NOT NULL,
        deadline INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        PRIMARY KEY (queue, deadline, first)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO expiry SELECT queue, deadline, id, id FROM job WHERE state < 3 AND deadline IS NOT NULL;
", "
    -- A log of events. Transactions that write wait for each other, so cursors come in the order of
    -- commits; none is given twice.
    CREATE TABLE event (
        cursor INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        key BLOB NOT NULL,
        value TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX event_created ON event (created_at);
", "
    -- What a door knows about a dead job, as JSON. The dead are read in the order of their URLs.
    ALTER TABLE job ADD COLUMN details TEXT;
    DROP INDEX job_dead;
    CREATE INDEX job_dead ON job (queue, url, id) WHERE state = 3;
", "
    -- What a schedule puts on a queue, and when its last round was due, by the wall clock.
    CREATE TABLE round (
        queue INTEGER NOT NULL,
        entry TEXT NOT NULL,
        due INTEGER NOT NULL,
        PRIMARY KEY (queue, entry)
    ) STRICT, WITHOUT ROWID;
", "
    -- Links by category; a category is forgotten as a whole.
    CREATE TABLE category (
        name TEXT PRIMARY KEY,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE category_link (
        category TEXT NOT NULL,
        url TEXT NOT NULL,
        PRIMARY KEY (category, url)
    ) STRICT, WITHOUT ROWID;
", "
    -- Feeds that links come from; what is remembered of one is JSON. A claim ends by the wall clock.
    CREATE TABLE subscription (
        category TEXT NOT NULL,
        url TEXT NOT NULL,
        interval_s INTEGER,
        title TEXT NOT NULL,
        PRIMARY KEY (category, url)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE feed (
        url TEXT PRIMARY KEY,
        memory TEXT,
        claimed_by TEXT,
        claimed_until INTEGER
    ) STRICT;
", "
    -- What links gave: articles and failures, with all their fields as JSON. `fetched_ts` and the times of
    -- failures are Unix seconds by the wall clock; all else is microseconds by the store's.
    CREATE TABLE article (
        uid TEXT PRIMARY KEY,
        is_failure INTEGER NOT NULL,
        category TEXT,
        fetched_ts INTEGER NOT NULL,
        fields TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX article_expires ON article (expires_at);
    CREATE INDEX article_fetched ON article (fetched_ts);
    CREATE TABLE article_category (
        category TEXT NOT NULL,
        uid TEXT NOT NULL,
        PRIMARY KEY (category, uid)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE article_failure (
        uid TEXT NOT NULL,
        code TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (uid, code)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE attempted (
        uid TEXT PRIMARY KEY,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX attempted_at ON attempted (at);
    -- In how many runs a link's site failed, and when last.
    CREATE TABLE site_failure (
        uid TEXT PRIMARY KEY,
        runs INTEGER NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
", "
    -- Whether there is more to say of a site than its pace: it is found by that.
    ALTER TABLE site ADD COLUMN notable INTEGER NOT NULL DEFAULT 1;
    CREATE INDEX site_notable ON site (site) WHERE notable = 1;
", "
    -- For those who look after a service. `story` is what became of the last attempts, JSON lines. A failed
    -- message has its reason here, too, as a dead job has: so one index lists failures, and groups them.
    ALTER TABLE job ADD COLUMN story TEXT;
    ALTER TABLE job ADD COLUMN retry_of BLOB;
    ALTER TABLE job ADD COLUMN retried_as BLOB;
    UPDATE job SET reason = (
        SELECT status || CASE WHEN status = 'http_error' AND http_status IS NOT NULL
                              THEN ' ' || http_status ELSE '' END
        FROM outbox WHERE outbox.job = job.id) WHERE state = 5;
    CREATE INDEX job_failed ON job (queue, id, reason, site, retried_as) WHERE reason IS NOT NULL;
    ALTER TABLE instance ADD COLUMN who TEXT;
    ALTER TABLE instance ADD COLUMN since INTEGER;
    ALTER TABLE instance ADD COLUMN heartbeat_at INTEGER;
", "
    -- Sites that orders were given to lately, so that whoever works hears of them.
    CREATE TABLE site_order (
        site TEXT PRIMARY KEY,
        given_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX site_order_given ON site_order (given_at);
"];

/// Brings the file to the newest version.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? == STEPS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = version(&transaction)?; // Another process may have been faster.
    for step in STEPS.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    if from < STEPS.len() {
        transaction.pragma_update(None, "user_version", STEPS.len())?;
    }
    transaction.commit()
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_in_an_older_file_waits_in_the_newer_one() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(STEPS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection
            .execute_batch(
                "INSERT INTO queue (name) VALUES ('q');
                 INSERT INTO job (queue, url, site, grp, payload, state, due, accepted_at)
                 VALUES (1, 'u', 's', 'g', x'', 0, 5, 5), (1, 'v', 's', NULL, x'', 1, 9, 5);
                 UPDATE job SET deadline = 7 WHERE url = 'v';
                 INSERT INTO room VALUES (1, 's', 5, 0);",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), STEPS.len());
        let room: (String, i64, i64, i64) = connection
            .query_row("SELECT site, lane, due, closed_until FROM room", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .unwrap();
        assert_eq!(room, ("s".to_owned(), 0, 5, 0));
        let expiry: (i64, i64, i64) = connection
            .query_row("SELECT deadline, first, last FROM expiry", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(expiry, (7, 2, 2));
    }

    #[test]
    fn what_had_failed_in_an_older_file_has_its_reason_in_the_newer_one() {
        let mut connection = Connection::open_in_memory().unwrap();
        let before = STEPS.iter().position(|step| step.contains("INDEX job_failed")).unwrap();
        for step in &STEPS[..before] {
            connection.execute_batch(step).unwrap();
        }
        connection.pragma_update(None, "user_version", before).unwrap();
        connection
            .execute_batch(
                "INSERT INTO queue (name) VALUES ('q');
                 INSERT INTO job (queue, url, site, payload, state, due, accepted_at)
                 VALUES (1, 'a', 's', x'', 5, 0, 0), (1, 'b', 's', x'', 5, 0, 0),
                     (1, 'c', 's', x'', 4, 0, 0);
                 INSERT INTO outbox (job, caller, cursor, status, http_status, kind, stored_at, created_at)
                 VALUES (1, 'x', 1, 'http_error', 404, x'', 0, 0), (2, 'x', 2, 'timeout', NULL, x'', 0, 0),
                     (3, 'x', 3, 'success', 200, x'', 0, 0);",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let mut select = connection.prepare("SELECT reason FROM job ORDER BY id").unwrap();
        let reasons: Vec<Option<String>> =
            select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(reasons, [Some("http_error 404".to_owned()), Some("timeout".to_owned()), None]);
    }
}
