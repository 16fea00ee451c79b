//! The tables, and how an older database becomes a newer one.

use sqlx::{Connection, Executor, PgConnection};

/// Each step brings a database from one version to the next; a step is never changed once it has
/// shipped.
const STEPS: &[&str] = &["
    CREATE TABLE fetchwell_site (
        site TEXT PRIMARY KEY,
        rate_limit TEXT NOT NULL,
        circuit TEXT,
        -- Microseconds since the Unix epoch; NULL: never.
        forgettable_at BIGINT
    );
    CREATE INDEX fetchwell_site_forgettable ON fetchwell_site (forgettable_at);

    CREATE TABLE fetchwell_robots (
        origin TEXT PRIMARY KEY,
        record TEXT NOT NULL,
        kept_at BIGINT NOT NULL
    );

    -- Unlogged, so that it is empty after a crash of the server: site states are committed without
    -- waiting for the disk, and what was committed last may be lost with it.
    CREATE UNLOGGED TABLE fetchwell_run (
        the_one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (the_one),
        started TEXT NOT NULL,
        lost_until BIGINT NOT NULL
    );
", "
    CREATE TABLE fetchwell_queue (
        id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    );

    -- The ledger of a queue is the sum of its shards. A transaction changes one of them, so that those
    -- at work at the same time do not wait for each other.
    CREATE TABLE fetchwell_ledger (
        queue INTEGER NOT NULL,
        shard INTEGER NOT NULL,
        accepted BIGINT NOT NULL DEFAULT 0,
        done BIGINT NOT NULL DEFAULT 0,
        skipped BIGINT NOT NULL DEFAULT 0,
        queued BIGINT NOT NULL DEFAULT 0,
        in_flight BIGINT NOT NULL DEFAULT 0,
        delayed BIGINT NOT NULL DEFAULT 0,
        dead BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (queue, shard)
    ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

    -- In whose name jobs are done; '' is nobody, and so is a job's lane 0.
    CREATE TABLE fetchwell_lane (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        queue INTEGER NOT NULL,
        grp TEXT NOT NULL,
        party TEXT NOT NULL,
        UNIQUE (queue, grp, party)
    );

    -- state: 0 queued, 1 delayed, 2 leased, 3 dead. Times are microseconds since the Unix epoch, by the
    -- server's clock. Text can't hold every string: `odd_url` is the exact URL where `url` is not.
    --
    -- A message of an inbox is a job whose key is its id, and that stays when it has ended: state 4
    -- completed, 5 failed. Those that `share` may have each other's results, if they are of one kind;
    -- `follows` is the job whose result will be this one's, too.
    CREATE TABLE fetchwell_job (
        id BIGINT PRIMARY KEY,
        queue INTEGER NOT NULL,
        lane BIGINT NOT NULL DEFAULT 0,
        due BIGINT NOT NULL,
        deadline BIGINT,
        accepted_at BIGINT NOT NULL,
        first_site_failure BIGINT,
        epoch BIGINT,
        follows BIGINT,
        ended_at BIGINT,
        url_failures BIGINT NOT NULL DEFAULT 0,
        site_failures BIGINT NOT NULL DEFAULT 0,
        paced BIGINT NOT NULL DEFAULT 0,
        interruptions BIGINT NOT NULL DEFAULT 0,
        attempts BIGINT NOT NULL DEFAULT 0,
        state SMALLINT NOT NULL,
        started BOOLEAN NOT NULL DEFAULT FALSE,
        shares BOOLEAN NOT NULL DEFAULT FALSE,
        key BYTEA,
        kind BYTEA,
        site TEXT COLLATE \"C\" NOT NULL,
        url TEXT NOT NULL,
        odd_url BYTEA,
        caller TEXT COLLATE \"C\",
        retailer TEXT,
        correlation_id TEXT,
        callback_url TEXT,
        reason TEXT,
        payload BYTEA NOT NULL
    ) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
            autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 0.05);
    CREATE SEQUENCE fetchwell_job_id OWNED BY fetchwell_job.id;
    CREATE UNIQUE INDEX fetchwell_job_key ON fetchwell_job (queue, key) WHERE key IS NOT NULL;
    CREATE INDEX fetchwell_job_waiting ON fetchwell_job (queue, site, lane, due, id) WHERE state < 2;
    CREATE INDEX fetchwell_job_deadline ON fetchwell_job (queue, deadline)
        WHERE state < 2 AND deadline IS NOT NULL;
    CREATE INDEX fetchwell_job_leased ON fetchwell_job (epoch) WHERE state = 2;
    CREATE INDEX fetchwell_job_dead ON fetchwell_job (queue, id) WHERE state = 3;
    CREATE INDEX fetchwell_job_kind ON fetchwell_job (kind)
        WHERE shares AND state < 3 AND follows IS NULL;
    CREATE INDEX fetchwell_job_follows ON fetchwell_job (follows)
        WHERE state < 2 AND follows IS NOT NULL;

    -- A site and lane with something waiting: it gives when its first job is due, and not while it is
    -- closed. Taking looks here first, so that its cost does not grow with the number of jobs. Whoever
    -- adds or takes what waits in a room holds its row until the commit.
    CREATE TABLE fetchwell_room (
        queue INTEGER NOT NULL,
        lane BIGINT NOT NULL,
        due BIGINT NOT NULL,
        closed_until BIGINT NOT NULL DEFAULT 0,
        opens_at BIGINT GENERATED ALWAYS AS (greatest(due, closed_until)) STORED,
        site TEXT COLLATE \"C\" NOT NULL,
        PRIMARY KEY (queue, site, lane)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
            autovacuum_vacuum_cost_delay = 0);
    CREATE INDEX fetchwell_room_opens ON fetchwell_room (queue, lane, opens_at, site);

    CREATE TABLE fetchwell_instance (
        epoch BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        queue INTEGER NOT NULL,
        expires_at BIGINT NOT NULL
    ) WITH (fillfactor = 20);

    -- `results` counts a caller's results; those up to `pruned` are gone.
    CREATE TABLE fetchwell_caller (
        name TEXT COLLATE \"C\" PRIMARY KEY,
        role TEXT NOT NULL,
        token_hash BYTEA UNIQUE,
        created_at BIGINT NOT NULL,
        revoked_at BIGINT,
        results BIGINT NOT NULL DEFAULT 0,
        pruned BIGINT NOT NULL DEFAULT 0
    ) WITH (fillfactor = 20);

    CREATE TABLE fetchwell_outbox (
        job BIGINT PRIMARY KEY,
        cursor BIGINT NOT NULL,
        stored_at BIGINT NOT NULL,
        http_status INTEGER,
        kind BYTEA NOT NULL,
        caller TEXT COLLATE \"C\" NOT NULL,
        status TEXT NOT NULL,
        content_type TEXT,
        error TEXT,
        extracted TEXT,
        content TEXT,
        UNIQUE (caller, cursor)
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,
            toast.autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX fetchwell_outbox_kind ON fetchwell_outbox (kind, stored_at)
        WHERE status = 'success';

    CREATE TABLE fetchwell_idempotency (
        caller TEXT COLLATE \"C\" NOT NULL,
        key TEXT COLLATE \"C\" NOT NULL,
        body_hash BYTEA NOT NULL,
        messages BYTEA NOT NULL,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (caller, key)
    );
    CREATE INDEX fetchwell_idempotency_age ON fetchwell_idempotency (created_at);

    CREATE TABLE fetchwell_audit (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at BIGINT NOT NULL,
        caller TEXT,
        action TEXT NOT NULL,
        detail TEXT NOT NULL,
        origin TEXT NOT NULL
    );
    CREATE INDEX fetchwell_audit_submitted ON fetchwell_audit (at) WHERE action = 'submit';
    CREATE INDEX fetchwell_audit_other ON fetchwell_audit (at) WHERE action <> 'submit';

    CREATE TABLE fetchwell_meta (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    );
", "
    -- Orders of operators and counts, as JSON, and whether there is more to say of a site than its pace.
    ALTER TABLE fetchwell_site ADD COLUMN notes TEXT, ADD COLUMN notable BOOLEAN NOT NULL DEFAULT TRUE;
    CREATE INDEX fetchwell_site_name ON fetchwell_site (site COLLATE \"C\");
    CREATE INDEX fetchwell_site_notable ON fetchwell_site (site COLLATE \"C\") WHERE notable;
", "
    -- For those who look after a service. `story` is what became of the last attempts, JSON lines. A failed
    -- message has its reason here, too, as a dead job has: so one index lists failures, and groups them. It
    -- has no place for long texts.
    ALTER TABLE fetchwell_job ADD COLUMN story TEXT, ADD COLUMN retry_of BYTEA,
        ADD COLUMN retried_as BYTEA;
    UPDATE fetchwell_job SET reason = left(reason, 400) WHERE state = 3 AND length(reason) > 400;
    UPDATE fetchwell_job AS job SET reason = status
        || CASE WHEN status = 'http_error' THEN coalesce(' ' || http_status, '') ELSE '' END
    FROM fetchwell_outbox AS outbox WHERE outbox.job = job.id AND job.state = 5;
    CREATE INDEX fetchwell_job_failed ON fetchwell_job (queue, id) INCLUDE (reason, site, retried_as)
        WHERE reason IS NOT NULL;
    ALTER TABLE fetchwell_instance ADD COLUMN who TEXT, ADD COLUMN since BIGINT,
        ADD COLUMN heartbeat_at BIGINT;
", "
    -- Sites that orders were given to lately, so that whoever works hears of them. Microseconds.
    CREATE TABLE fetchwell_site_order (
        site TEXT COLLATE \"C\" PRIMARY KEY,
        given_at BIGINT NOT NULL
    );
    CREATE INDEX fetchwell_site_order_given ON fetchwell_site_order (given_at);
"];

/// Any number will do that nobody else uses.
const LOCK: i64 = 0x6665_7463_6877_656c;

/// Brings the database to the newest version. Of several processes that try, one does it. Give it a
/// connection whose commits wait for the disk: nobody looks again whether the tables are there.
pub(super) async fn migrate(connection: &mut PgConnection) -> sqlx::Result<()> {
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *tx).await?;
    tx.execute("CREATE TABLE IF NOT EXISTS fetchwell_schema (version INTEGER NOT NULL)").await?;
    let version: Option<i32> =
        sqlx::query_scalar("SELECT max(version) FROM fetchwell_schema").fetch_one(&mut *tx).await?;
    let from = usize::try_from(version.unwrap_or(0)).unwrap_or(0);
    for (done, step) in STEPS.iter().enumerate().skip(from) {
        tx.execute(*step).await?;
        let version = i32::try_from(done + 1).unwrap_or(i32::MAX);
        sqlx::query("INSERT INTO fetchwell_schema VALUES ($1)")
            .bind(version)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}
