//! The tables, and the migrations between their versions.

use fetchwell_sqlite::db::user_version;
use rusqlite::{Connection, TransactionBehavior};

/// Each step brings a file from one version to the next. A step is never changed once it has shipped. For one release a
/// step may only add, so that programs of the previous release still work on the file.
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
", "
    -- For other programs that read the file: messages and results as the API shows them. Times are RFC 3339.
    CREATE VIEW inbox_message AS
        SELECT 'msg_' || lower(hex(job.key)) AS id, job.url AS url, lane.grp AS retailer,
            job.correlation_id AS correlation_id, lane.party AS caller_id,
            CASE WHEN job.state IN (0, 1) THEN 'queued' WHEN job.state = 2 THEN 'processing'
                WHEN job.state = 4 THEN 'completed' ELSE 'failed' END AS status,
            strftime('%Y-%m-%dT%H:%M:%S', job.created_at / 1000000, 'unixepoch')
                || printf('.%06dZ', job.created_at % 1000000) AS created_at,
            CASE WHEN outbox.job IS NULL
                THEN job.attempts + job.url_failures + job.site_failures + job.paced
                ELSE job.attempts END AS attempts
        FROM job
        JOIN lane ON lane.id = job.lane
        LEFT JOIN outbox ON outbox.job = job.id
        WHERE job.queue = (SELECT queue.id FROM queue WHERE queue.name = 'messages');
    CREATE VIEW outbox_message AS
        SELECT 'out_' || lower(hex(job.key)) AS id, 'msg_' || lower(hex(job.key)) AS inbox_message_id,
            job.url AS url, lane.grp AS retailer, job.correlation_id AS correlation_id,
            outbox.status AS status, outbox.content AS content, outbox.content_type AS content_type,
            outbox.http_status AS http_status, outbox.error AS error,
            strftime('%Y-%m-%dT%H:%M:%S', outbox.created_at / 1000000, 'unixepoch')
                || printf('.%06dZ', outbox.created_at % 1000000) AS created_at
        FROM outbox
        JOIN job ON job.id = outbox.job
        JOIN lane ON lane.id = job.lane;
", "
    -- How a result came about, as JSON; and, if it is a stored page that answered at once, its age then.
    ALTER TABLE outbox ADD COLUMN details TEXT;
    ALTER TABLE outbox ADD COLUMN cached_age INTEGER;
", "
    -- The messages of a caller, by its lanes. It grows at its end for each lane.
    CREATE INDEX lane_party ON lane (queue, party);
    CREATE INDEX job_sent ON job (lane, id, correlation_id) WHERE correlation_id IS NOT NULL;
", "
    -- Tokens of callers. `since` is `created_at` of the caller: if a program of an earlier release revoked the caller
    -- and added it again meanwhile, it is another time, and the token is void. The first token is in `caller`, too.
    CREATE TABLE token (
        caller TEXT NOT NULL,
        name TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE,
        since INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        last_used_at INTEGER,
        PRIMARY KEY (caller, name)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO token (caller, name, hash, since, created_at)
        SELECT name, 'default', token_hash, created_at, created_at FROM caller WHERE token_hash IS NOT NULL;
    -- The key of a caller's webhook secret, unless it is the hash of the first token, and the one before it. They are
    -- void if `webhook_since` is not `created_at`, as above.
    ALTER TABLE caller ADD COLUMN webhook_since INTEGER;
    ALTER TABLE caller ADD COLUMN webhook_key BLOB;
    ALTER TABLE caller ADD COLUMN webhook_key_before BLOB;
    ALTER TABLE caller ADD COLUMN webhook_before_until INTEGER;

    -- What became of deliveries to webhooks. `webhook` is the payload of the job; times are by the wall clock; `story`
    -- has the last attempts, JSON lines.
    CREATE TABLE delivery (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        webhook TEXT NOT NULL UNIQUE,
        caller TEXT NOT NULL,
        url TEXT NOT NULL,
        status TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL,
        story TEXT
    ) STRICT;
    CREATE INDEX delivery_caller ON delivery (caller, id);
    CREATE INDEX delivery_status ON delivery (caller, status, id);
    CREATE INDEX delivery_time ON delivery (caller, created_at, id);
    CREATE INDEX delivery_age ON delivery (created_at);
", "
    -- Messages that were submitted together. Their jobs are among those from `first_job` to `last_job`. Times are by the
    -- wall clock. `number` counts the ended batches of a caller, `place` is the cursor of its newest result at that time;
    -- the batch's own results up to `pruned` are gone.
    CREATE TABLE message_batch (
        key INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        caller TEXT NOT NULL,
        callback_url TEXT,
        created_at INTEGER NOT NULL,
        expected_at INTEGER NOT NULL,
        cancelled_at INTEGER,
        ended_at INTEGER,
        first_job INTEGER NOT NULL,
        last_job INTEGER NOT NULL,
        total INTEGER NOT NULL,
        completed INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        cancelled INTEGER NOT NULL DEFAULT 0,
        skipped INTEGER NOT NULL DEFAULT 0,
        skipped_told TEXT,
        number INTEGER,
        place INTEGER,
        pruned INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX message_batch_caller ON message_batch (caller, id);
    CREATE UNIQUE INDEX message_batch_number ON message_batch (caller, number) WHERE number IS NOT NULL;
    CREATE INDEX message_batch_ended ON message_batch (ended_at) WHERE ended_at IS NOT NULL;
    CREATE INDEX message_batch_cancelled ON message_batch (id) WHERE cancelled_at IS NOT NULL AND ended_at IS NULL;

    -- The results of batches, by their cursors.
    CREATE TABLE message_batch_result (
        batch BLOB NOT NULL,
        place INTEGER NOT NULL,
        job INTEGER NOT NULL,
        PRIMARY KEY (batch, place)
    ) STRICT, WITHOUT ROWID;

    ALTER TABLE job ADD COLUMN batch BLOB;
    ALTER TABLE caller ADD COLUMN batches INTEGER NOT NULL DEFAULT 0;
", "
    -- All open batches are looked after. The index of the cancelled ones is for instances of the previous release.
    CREATE INDEX message_batch_open ON message_batch (id) WHERE ended_at IS NULL;

    -- Bodies of responses. They are deleted when they are `due` by the store's clock; `expires_at` is the same by the wall
    -- clock. `body_bytes` of a caller counts theirs. `body_of` of a result is the job whose body it has, or 0 if `content`
    -- is the body.
    CREATE TABLE message_body (
        job INTEGER PRIMARY KEY,
        caller TEXT NOT NULL,
        due INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        bytes BLOB NOT NULL
    ) STRICT;
    CREATE INDEX message_body_caller ON message_body (caller, due, job);
    CREATE INDEX message_body_due ON message_body (due);
    ALTER TABLE caller ADD COLUMN body_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE outbox ADD COLUMN body_of INTEGER;
", "
    -- A crawl, by its queue. `pages` counts those that were queued and not skipped, `known` all that were found, and
    -- `waiting` those that are not queued.
    CREATE TABLE crawl (
        queue INTEGER PRIMARY KEY,
        pages INTEGER NOT NULL,
        known INTEGER NOT NULL,
        waiting INTEGER NOT NULL,
        sites INTEGER NOT NULL
    ) STRICT;

    -- The keys of all known pages.
    CREATE TABLE crawl_seen (
        queue INTEGER NOT NULL,
        key BLOB NOT NULL,
        PRIMARY KEY (queue, key)
    ) STRICT, WITHOUT ROWID;

    -- `pages` and `waiting` as above; `open` counts the queued pages that have not ended.
    CREATE TABLE crawl_site (
        id INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL,
        site TEXT NOT NULL,
        pages INTEGER NOT NULL DEFAULT 0,
        open INTEGER NOT NULL DEFAULT 0,
        waiting INTEGER NOT NULL DEFAULT 0,
        UNIQUE (queue, site)
    ) STRICT;
    CREATE INDEX crawl_site_waiting ON crawl_site (queue, pages) WHERE waiting > 0;

    -- Pages that name others.
    CREATE TABLE crawl_parent (
        id INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL,
        url TEXT NOT NULL,
        root TEXT
    ) STRICT;
    CREATE INDEX crawl_parent_queue ON crawl_parent (queue);

    -- Known pages that are not queued. `number` is their number among the known ones.
    CREATE TABLE crawl_link (
        queue INTEGER NOT NULL,
        site INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        number INTEGER NOT NULL,
        parent INTEGER,
        url TEXT NOT NULL,
        PRIMARY KEY (queue, site, depth, number)
    ) STRICT, WITHOUT ROWID;

    -- How many known pages are of one kind.
    CREATE TABLE crawl_bucket (
        queue INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        pages INTEGER NOT NULL,
        PRIMARY KEY (queue, bucket)
    ) STRICT, WITHOUT ROWID;

    -- Links that are not followed.
    CREATE TABLE crawl_cut (
        queue INTEGER NOT NULL,
        reason TEXT NOT NULL,
        site TEXT NOT NULL,
        links INTEGER NOT NULL,
        example TEXT NOT NULL,
        PRIMARY KEY (queue, reason, site)
    ) STRICT, WITHOUT ROWID;
",
    "
    -- Whether the page has or gets a row: it was queued, or one that redirects to it was fetched. NULL if not; also for
    -- pages that were queued by a version without this column.
    ALTER TABLE crawl_seen ADD COLUMN taken INTEGER;
",
    "
    -- To list a caller's messages: `job_alone` finds those outside batches, and the job ranges of its batches lead to the
    -- others. An index of all messages would make accepting a batch a fifth slower.
    CREATE INDEX job_alone ON job (lane) WHERE batch IS NULL AND correlation_id IS NOT NULL;
    CREATE INDEX message_batch_jobs ON message_batch (caller, first_job);
    DROP INDEX job_sent;
",
    "
    -- Crawls through the API. In the tables of crawls, `queue` is the key with a minus sign. `spec` says as JSON what is crawled; no
    -- page is queued after `until`, by the store's clock. All other times are by the wall clock. `open_pages` and
    -- `open_sitemaps` count jobs that have not ended. `number` and `place` are as for batches, which share the numbers;
    -- the crawl's own results up to `pruned` are gone. `is_clean`: its frontier was removed after its end.
    CREATE TABLE message_crawl (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        caller TEXT NOT NULL,
        spec TEXT NOT NULL,
        callback_url TEXT,
        created_at INTEGER NOT NULL,
        until INTEGER NOT NULL,
        cancelled_at INTEGER,
        ended_at INTEGER,
        end_reason TEXT,
        open_pages INTEGER NOT NULL DEFAULT 0,
        open_sitemaps INTEGER NOT NULL DEFAULT 0,
        completed INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        robots INTEGER NOT NULL DEFAULT 0,
        noindex INTEGER NOT NULL DEFAULT 0,
        redirected INTEGER NOT NULL DEFAULT 0,
        number INTEGER,
        place INTEGER,
        pruned INTEGER NOT NULL DEFAULT 0,
        is_clean INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX message_crawl_caller ON message_crawl (caller, id);
    CREATE INDEX message_crawl_open ON message_crawl (caller) WHERE ended_at IS NULL;
    CREATE INDEX message_crawl_unclean ON message_crawl (key) WHERE is_clean = 0;
    CREATE INDEX message_crawl_ended ON message_crawl (ended_at) WHERE ended_at IS NOT NULL;
    CREATE UNIQUE INDEX message_crawl_number ON message_crawl (caller, number) WHERE number IS NOT NULL;

    -- The results of crawls, by their cursors.
    CREATE TABLE message_crawl_result (
        crawl INTEGER NOT NULL,
        place INTEGER NOT NULL,
        job INTEGER NOT NULL,
        PRIMARY KEY (crawl, place)
    ) STRICT, WITHOUT ROWID;

    -- The key of the crawl that found the page of a message.
    ALTER TABLE job ADD COLUMN crawl INTEGER;
",
];

/// The version of a file that has all steps: its `user_version`.
pub(super) const NEWEST: i64 = STEPS.len() as i64;

/// Migrates the file to the newest version. `Db::open` has already refused newer files.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if user_version(connection)? == NEWEST {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = user_version(&transaction)?; // Another process may have migrated it meanwhile.
    for step in STEPS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    if from < NEWEST {
        transaction.pragma_update(None, "user_version", NEWEST)?;
    }
    transaction.commit()
}

/// A file as it was before the step that has this text, for tests of migrations.
#[cfg(test)]
pub(super) fn before(text: &str) -> Connection {
    let connection = Connection::open_in_memory().expect("memory");
    let before = STEPS.iter().position(|step| step.contains(text)).expect("there is such a step");
    for step in STEPS.iter().take(before) {
        connection.execute_batch(step).expect("a step");
    }
    connection.pragma_update(None, "user_version", before).expect("a version");
    connection
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_policy::time::Time;

    use super::*;
    use crate::sqlite::moves::Moves;
    use crate::sqlite::retention;

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
        assert_eq!(user_version(&connection).unwrap(), NEWEST);
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
    /// Programs of the release before work on the same file: what they know must stay as it is.
    #[test]
    fn steps_since_the_last_release_only_add() {
        let last_release = 12;
        for step in &STEPS[last_release..] {
            // No released program uses this index: it was created after that release.
            let step = step.replace("DROP INDEX job_sent;", "");
            for word in ["DROP ", "RENAME ", "DELETE ", "UPDATE "] {
                assert!(!step.contains(word), "{word}in: {step}");
            }
        }
    }

    /// A crawl in an older file continues: no page that it knows counts as taken, fetched or not.
    #[test]
    fn pages_that_an_older_file_knows_are_known_and_not_taken() {
        let mut connection = before("ADD COLUMN taken");
        connection.execute_batch("INSERT INTO crawl_seen (queue, key) VALUES (1, x'01')").unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(user_version(&connection).unwrap(), NEWEST);
        let select = "SELECT taken FROM crawl_seen WHERE queue = 1 AND key = x'01'";
        let taken: Option<i64> = connection.query_row(select, [], |row| row.get(0)).unwrap();
        assert_eq!(taken, None);
    }

    /// Results of an older file are pruned as before, and crawls can begin in it.
    #[test]
    fn messages_of_an_older_file_belong_to_no_crawl() {
        let mut connection = before("TABLE message_crawl");
        connection
            .execute_batch(
                "INSERT INTO queue (id, name) VALUES (3, 'messages');
                 INSERT INTO lane (id, queue, grp, party, messages) VALUES (7, 3, 'a', 'anna', 1);
                 INSERT INTO caller (name, role, created_at, results) VALUES ('anna', 'caller', 0, 1);
                 INSERT INTO job (id, queue, key, url, site, lane, correlation_id, payload, state, due,
                     accepted_at, created_at)
                 VALUES (1, 3, randomblob(16), 'u', 'a.test', 7, 'c', x'', 4, 0, 0, 0);
                 INSERT INTO outbox (job, caller, cursor, status, kind, stored_at, created_at)
                 VALUES (1, 'anna', 1, 'success', x'', 0, 0);",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let crawl: Option<i64> =
            connection.query_row("SELECT crawl FROM job", [], |row| row.get(0)).unwrap();
        assert_eq!(crawl, None);
        let day = Duration::from_secs(86_400);
        let later = Time::EPOCH + 2 * day;
        let mut moves = Moves::new(&connection, 3, later);
        assert_eq!(retention::prune(&mut moves, day, 10, later).unwrap(), 1);
        let insert = "INSERT INTO message_crawl (id, caller, spec, created_at, until)
             VALUES (zeroblob(16), 'anna', '{}', 0, 0)";
        connection.execute(insert, []).unwrap();
    }

    #[test]
    fn messages_of_an_older_file_are_in_the_views() {
        let mut connection = Connection::open_in_memory().unwrap();
        let before = STEPS.iter().position(|step| step.contains("VIEW inbox_message")).unwrap();
        for step in &STEPS[..before] {
            connection.execute_batch(step).unwrap();
        }
        connection.pragma_update(None, "user_version", before).unwrap();
        connection
            .execute_batch(
                "INSERT INTO queue (id, name) VALUES (3, 'messages'), (4, 'webhooks');
                 INSERT INTO lane (id, queue, grp, party) VALUES (7, 3, 'shop', 'anna');
                 INSERT INTO job (queue, key, url, site, lane, correlation_id, payload, state, due, accepted_at,
                     created_at, attempts, url_failures)
                 VALUES (3, x'018bcfe56800ffffffffffffffffffff', 'http://a.test/', 'a.test', 7, 'c1', x'', 5, 0,
                         0, 1700000000000001, 3, 2),
                     (3, x'018bcfe56801ffffffffffffffffffff', 'http://a.test/2', 'a.test', 7, 'c2', x'', 1, 0,
                         0, 1700000001500000, 0, 2),
                     (4, NULL, 'http://hook.test/', 'hook.test', 0, NULL, x'', 0, 0, 0, NULL, 0, 0);
                 INSERT INTO outbox (job, caller, cursor, status, content_type, http_status, error, kind, stored_at,
                     created_at)
                 VALUES (1, 'anna', 1, 'http_error', 'text/html', 404, 'not found', x'', 0, 1700000002000000);",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let rows = |view: &str| -> (Vec<String>, Vec<Vec<String>>) {
            let mut select =
                connection.prepare(&format!("SELECT * FROM {view} ORDER BY 1")).unwrap();
            let names: Vec<String> = select.column_names().map(str::to_owned).collect();
            let width = names.len();
            let row = |row: &rusqlite::Row<'_>| {
                let value = |column| match row.get_unwrap(column) {
                    rusqlite::types::Value::Null => "NULL".to_owned(),
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => panic!("{other:?}"),
                };
                Ok((0..width).map(value).collect())
            };
            let rows = select.query_map([], row).unwrap().map(Result::unwrap).collect();
            (names, rows)
        };
        let (names, messages) = rows("inbox_message");
        let expected = [
            "id",
            "url",
            "retailer",
            "correlation_id",
            "caller_id",
            "status",
            "created_at",
            "attempts",
        ];
        assert_eq!(names, expected);
        let first = [
            "msg_018bcfe56800ffffffffffffffffffff",
            "http://a.test/",
            "shop",
            "c1",
            "anna",
            "failed",
            "2023-11-14T22:13:20.000001Z",
            "3",
        ];
        assert_eq!(messages[0], first);
        assert_eq!(messages[1][5..], ["queued", "2023-11-14T22:13:21.500000Z", "2"]);
        assert_eq!(messages.len(), 2, "webhooks are no messages");
        let (names, results) = rows("outbox_message");
        let expected = [
            "id",
            "inbox_message_id",
            "url",
            "retailer",
            "correlation_id",
            "status",
            "content",
            "content_type",
            "http_status",
            "error",
            "created_at",
        ];
        assert_eq!(names, expected);
        let result = [
            "out_018bcfe56800ffffffffffffffffffff",
            "msg_018bcfe56800ffffffffffffffffffff",
            "http://a.test/",
            "shop",
            "c1",
            "http_error",
            "NULL",
            "text/html",
            "404",
            "not found",
            "2023-11-14T22:13:22.000000Z",
        ];
        assert_eq!(results, [result]);
    }
}
