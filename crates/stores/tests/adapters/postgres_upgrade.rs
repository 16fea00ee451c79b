//! A database of an earlier version is brought to the newest one, with all that is in it.

use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::oversight::MessageFilter;
use fetchwell_stores::StoreClock;
use fetchwell_stores::postgres::{Database, open_retriever};
use fetchwell_testkit::conformance::servers::unused_postgres;
use sqlx::{Connection, Executor, PgConnection};

/// What was not there before operators could look at messages: the last steps, undone but for the views.
const BEFORE_OVERSIGHT: &str = "
    DROP TABLE fetchwell_message_batch, fetchwell_message_batch_result, fetchwell_message_body, fetchwell_token,
        fetchwell_delivery;
    DROP INDEX fetchwell_job_sent;
    ALTER TABLE fetchwell_job DROP COLUMN batch;
    ALTER TABLE fetchwell_outbox DROP COLUMN details, DROP COLUMN cached_age, DROP COLUMN body_of;
    ALTER TABLE fetchwell_caller DROP COLUMN batches, DROP COLUMN body_bytes, DROP COLUMN webhook_since,
        DROP COLUMN webhook_key, DROP COLUMN webhook_key_before, DROP COLUMN webhook_before_until;
    DROP TABLE fetchwell_site_order;
    DROP INDEX fetchwell_job_failed;
    ALTER TABLE fetchwell_job DROP COLUMN story, DROP COLUMN retry_of, DROP COLUMN retried_as;
    ALTER TABLE fetchwell_instance DROP COLUMN who, DROP COLUMN since, DROP COLUMN heartbeat_at;
    DELETE FROM fetchwell_schema WHERE version > (SELECT max(version) - 8 FROM fetchwell_schema);
    INSERT INTO fetchwell_queue (name) VALUES ('messages');
    INSERT INTO fetchwell_job (id, queue, due, accepted_at, ended_at, state, key, kind, site, url, caller,
        retailer, correlation_id, payload)
    SELECT number, 1, 0, 0, 0, 5, decode(lpad(to_hex(number), 32, '0'), 'hex'), '', 'a.test', 'http://a.test/',
        'anna', 'shop', 'c', '' FROM generate_series(1, 2) AS number;
    INSERT INTO fetchwell_outbox (job, cursor, stored_at, http_status, kind, caller, status)
    VALUES (1, 1, 0, 404, '', 'anna', 'http_error'), (2, 2, 0, NULL, '', 'anna', 'timeout');
    INSERT INTO fetchwell_job (id, queue, due, accepted_at, state, site, url, payload, reason)
    VALUES (9, 2, 0, 0, 3, '', 'x', '', repeat('x', 5000));";

#[tokio::test(flavor = "multi_thread")]
async fn what_had_failed_in_an_older_database_has_its_reason_in_the_newer_one() {
    let Some(address) = unused_postgres().await else { return };
    drop(Database::open(&address).await.unwrap());
    let mut connection = PgConnection::connect(&address).await.unwrap();
    connection.execute(BEFORE_OVERSIGHT).await.unwrap();

    let db = Database::open(&address).await.unwrap();
    let clock = StoreClock::Server(Clock::system());
    let ttl = Duration::from_secs(20);
    let poll = Duration::from_secs(1);
    let store = open_retriever(db, clock, ttl, poll).await.unwrap();
    let page = store.oversight.list(&MessageFilter::default(), None, 10).await.unwrap();
    let reasons: Vec<_> = page.messages.iter().map(|seen| seen.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("timeout"), Some("http_error 404")]);
    let failures = store.oversight.failures().await.unwrap();
    assert_eq!((failures.groups.len(), failures.is_exact), (2, true));
}
