//! The tables, and the migrations between their versions.

use sqlx::{Connection, Executor, PgConnection};

/// Each step brings a database from one version to the next. A step is never changed once it has shipped. For one
/// release a step may only add, so that instances of the previous release can share the server.
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
", "
    -- For other programs that read the database: messages and results as the API shows them. They are in the schema
    -- `fetchwell`; beside the tables where this user may not make that schema, or where it has the views of another
    -- Fetchwell in the same database.
    DO $$
    DECLARE
        place TEXT := current_schema();
    BEGIN
        IF to_regnamespace('fetchwell') IS NULL THEN
            BEGIN
                CREATE SCHEMA fetchwell;
            EXCEPTION WHEN insufficient_privilege THEN
                NULL;
            END;
        END IF;
        IF to_regnamespace('fetchwell') IS NOT NULL THEN
            IF has_schema_privilege('fetchwell', 'USAGE') AND has_schema_privilege('fetchwell', 'CREATE') THEN
                IF to_regclass('fetchwell.inbox_message') IS NULL
                    AND to_regclass('fetchwell.outbox_message') IS NULL THEN
                    place := 'fetchwell';
                END IF;
            END IF;
        END IF;
        IF to_regclass(format('%I.inbox_message', place)) IS NULL THEN EXECUTE format('
            CREATE VIEW %I.inbox_message AS
                SELECT ''msg_'' || encode(job.key, ''hex'') AS id, job.url AS url, job.retailer AS retailer,
                    job.correlation_id AS correlation_id, job.caller AS caller_id,
                    CASE WHEN job.state IN (0, 1) THEN ''queued'' WHEN job.state = 2 THEN ''processing''
                        WHEN job.state = 4 THEN ''completed'' ELSE ''failed'' END AS status,
                    TIMESTAMPTZ ''epoch'' + job.accepted_at * INTERVAL ''1 microsecond'' AS created_at,
                    CASE WHEN outbox.job IS NULL
                        THEN job.url_failures + job.site_failures + job.paced
                        ELSE job.attempts END AS attempts
                FROM fetchwell_job AS job
                LEFT JOIN fetchwell_outbox AS outbox ON outbox.job = job.id
                WHERE job.queue = (SELECT id FROM fetchwell_queue WHERE name = ''messages'')', place);
        END IF;
        IF to_regclass(format('%I.outbox_message', place)) IS NULL THEN EXECUTE format('
            CREATE VIEW %I.outbox_message AS
                SELECT ''out_'' || encode(job.key, ''hex'') AS id,
                    ''msg_'' || encode(job.key, ''hex'') AS inbox_message_id, job.url AS url,
                    job.retailer AS retailer, job.correlation_id AS correlation_id, outbox.status AS status,
                    outbox.content AS content, outbox.content_type AS content_type,
                    outbox.http_status AS http_status, outbox.error AS error,
                    TIMESTAMPTZ ''epoch'' + outbox.stored_at * INTERVAL ''1 microsecond'' AS created_at
                FROM fetchwell_outbox AS outbox
                JOIN fetchwell_job AS job ON job.id = outbox.job', place);
        END IF;
    END $$;
", "
    -- How a result came about, as JSON; and, if it is a stored page that answered at once, its age then.
    ALTER TABLE fetchwell_outbox ADD COLUMN details TEXT, ADD COLUMN cached_age BIGINT;
", "
    -- The messages of a caller. It grows at its end for each caller.
    CREATE INDEX fetchwell_job_sent ON fetchwell_job (caller, id) WHERE caller IS NOT NULL;
", "
    -- Tokens of callers. `since` is `created_at` of the caller: if an instance of an earlier release revoked the caller
    -- and added it again meanwhile, it is another time, and the token is void. The first token is in
    -- `fetchwell_caller`, too.
    CREATE TABLE fetchwell_token (
        caller TEXT COLLATE \"C\" NOT NULL,
        name TEXT COLLATE \"C\" NOT NULL,
        hash BYTEA NOT NULL UNIQUE,
        since BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        expires_at BIGINT,
        last_used_at BIGINT,
        PRIMARY KEY (caller, name)
    ) WITH (fillfactor = 50);
    INSERT INTO fetchwell_token (caller, name, hash, since, created_at)
        SELECT name, 'default', token_hash, created_at, created_at FROM fetchwell_caller
        WHERE token_hash IS NOT NULL;
    -- The key of a caller's webhook secret, unless it is the hash of the first token, and the one before it. They are
    -- void if `webhook_since` is not `created_at`, as above.
    ALTER TABLE fetchwell_caller ADD COLUMN webhook_since BIGINT, ADD COLUMN webhook_key BYTEA,
        ADD COLUMN webhook_key_before BYTEA, ADD COLUMN webhook_before_until BIGINT;

    -- What became of deliveries to webhooks. `webhook` is the payload of the job; `story` has the last attempts, JSON
    -- lines.
    CREATE TABLE fetchwell_delivery (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        webhook TEXT COLLATE \"C\" NOT NULL UNIQUE,
        caller TEXT COLLATE \"C\" NOT NULL,
        url TEXT NOT NULL,
        status TEXT NOT NULL,
        attempts BIGINT NOT NULL DEFAULT 0,
        created_at BIGINT NOT NULL,
        story TEXT
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX fetchwell_delivery_caller ON fetchwell_delivery (caller, id);
    CREATE INDEX fetchwell_delivery_status ON fetchwell_delivery (caller, status, id);
    CREATE INDEX fetchwell_delivery_time ON fetchwell_delivery (caller, created_at, id);
    CREATE INDEX fetchwell_delivery_age ON fetchwell_delivery (created_at);
", "
    -- Messages that were submitted together. Their jobs are among those from `first_job` to `last_job`. `number` counts
    -- the ended batches of a caller, `place` is the cursor of its newest result at that time; the batch's own results up
    -- to `pruned` are gone.
    CREATE TABLE fetchwell_message_batch (
        id BYTEA PRIMARY KEY,
        caller TEXT COLLATE \"C\" NOT NULL,
        callback_url TEXT,
        created_at BIGINT NOT NULL,
        expected_at BIGINT NOT NULL,
        cancelled_at BIGINT,
        ended_at BIGINT,
        first_job BIGINT NOT NULL,
        last_job BIGINT NOT NULL,
        total BIGINT NOT NULL,
        completed BIGINT NOT NULL DEFAULT 0,
        failed BIGINT NOT NULL DEFAULT 0,
        cancelled BIGINT NOT NULL DEFAULT 0,
        skipped BIGINT NOT NULL DEFAULT 0,
        skipped_told TEXT,
        number BIGINT,
        place BIGINT,
        pruned BIGINT NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
    CREATE INDEX fetchwell_message_batch_caller ON fetchwell_message_batch (caller, id);
    CREATE UNIQUE INDEX fetchwell_message_batch_number ON fetchwell_message_batch (caller, number)
        WHERE number IS NOT NULL;
    CREATE INDEX fetchwell_message_batch_ended ON fetchwell_message_batch (ended_at)
        WHERE ended_at IS NOT NULL;
    CREATE INDEX fetchwell_message_batch_cancelled ON fetchwell_message_batch (id)
        WHERE cancelled_at IS NOT NULL AND ended_at IS NULL;

    -- The results of batches, by their cursors.
    CREATE TABLE fetchwell_message_batch_result (
        batch BYTEA NOT NULL,
        place BIGINT NOT NULL,
        job BIGINT NOT NULL,
        PRIMARY KEY (batch, place)
    );

    ALTER TABLE fetchwell_job ADD COLUMN batch BYTEA;
    ALTER TABLE fetchwell_caller ADD COLUMN batches BIGINT NOT NULL DEFAULT 0;
", "
    -- All open batches are looked after. The index of the cancelled ones is for instances of the previous release.
    CREATE INDEX fetchwell_message_batch_open ON fetchwell_message_batch (id) WHERE ended_at IS NULL;

    -- Bodies of responses. `body_bytes` of a caller counts theirs. `body_of` of a result is the job whose body it has,
    -- or 0 if `content` is the body.
    CREATE TABLE fetchwell_message_body (
        job BIGINT PRIMARY KEY,
        expires_at BIGINT NOT NULL,
        caller TEXT COLLATE \"C\" NOT NULL,
        bytes BYTEA NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX fetchwell_message_body_caller ON fetchwell_message_body (caller, expires_at, job);
    CREATE INDEX fetchwell_message_body_expires ON fetchwell_message_body (expires_at);
    ALTER TABLE fetchwell_caller ADD COLUMN body_bytes BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE fetchwell_outbox ADD COLUMN body_of BIGINT;
"];

/// The version of a database that has all steps.
pub(super) const NEWEST: i64 = STEPS.len() as i64;

/// PostgreSQL creates tables in the schema named like the user, if there is one. For a user called `fetchwell`, whose
/// tables are in `public`, that would be the schema of the views: without this, the next step would begin a second
/// store.
const TABLES_STAY_TOGETHER: &str = "
    SELECT set_config('search_path', quote_ident(coalesce(
        (SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
         WHERE pg_class.oid = to_regclass('fetchwell_schema')),
        current_schema()
    )) || ', ' || current_setting('search_path'), true)
";

/// An arbitrary number that nothing else uses.
const LOCK: i64 = 0x6665_7463_6877_656c;

/// Migrates the database to the newest version, unless it is newer, and returns its version. If several processes try,
/// one of them does it. The commits of the connection must wait for the disk: later code does not check again whether
/// the tables exist.
pub(super) async fn migrate(connection: &mut PgConnection) -> sqlx::Result<i64> {
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *tx).await?;
    tx.execute(TABLES_STAY_TOGETHER).await?;
    tx.execute("CREATE TABLE IF NOT EXISTS fetchwell_schema (version INTEGER NOT NULL)").await?;
    let version: Option<i32> =
        sqlx::query_scalar("SELECT max(version) FROM fetchwell_schema").fetch_one(&mut *tx).await?;
    let from = version.unwrap_or(0);
    for (done, step) in STEPS.iter().enumerate().skip(usize::try_from(from).unwrap_or(0)) {
        tx.execute(*step).await?;
        let version = i32::try_from(done + 1).unwrap_or(i32::MAX);
        sqlx::query("INSERT INTO fetchwell_schema VALUES ($1)")
            .bind(version)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(NEWEST.max(from.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instances of the release before share the server: what they know must stay as it is.
    #[test]
    fn steps_since_the_last_release_only_add() {
        let last_release = 5;
        for step in &STEPS[last_release..] {
            for word in ["DROP ", "RENAME ", "DELETE ", "UPDATE "] {
                assert!(!step.contains(word), "{word}in: {step}");
            }
        }
    }
}
