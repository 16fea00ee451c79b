//! The views for other programs, in a database of their own: they have one place in each.

use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_stores::StoreClock;
use fetchwell_stores::postgres::{Database, open_retriever};
use fetchwell_testkit::conformance::servers::{run_sql, server_url, unique};

/// What the design says of the two, with the types that other programs can rely on.
const COLUMNS: &str = "
    inbox_message.id text
    inbox_message.url text
    inbox_message.retailer text
    inbox_message.correlation_id text
    inbox_message.caller_id text
    inbox_message.status text
    inbox_message.created_at timestamp with time zone
    inbox_message.attempts bigint
    outbox_message.id text
    outbox_message.inbox_message_id text
    outbox_message.url text
    outbox_message.retailer text
    outbox_message.correlation_id text
    outbox_message.status text
    outbox_message.content text
    outbox_message.content_type text
    outbox_message.http_status integer
    outbox_message.error text
    outbox_message.created_at timestamp with time zone";

/// Three messages: one that failed, one that waits for its next attempt, one under way.
const MESSAGES: &str = "
    INSERT INTO fetchwell_job (id, queue, due, accepted_at, ended_at, state, attempts, url_failures, key, kind, site,
        url, caller, retailer, correlation_id, payload)
    SELECT number, (SELECT id FROM fetchwell_queue WHERE name = 'messages'), 0, 1700000000000000 + number, 0, state,
        attempts, 2, decode(lpad(to_hex(number), 32, '0'), 'hex'), '', 'a.test', 'http://a.test/' || number, 'anna',
        'shop', 'c' || number, ''
    FROM (VALUES (1, 5, 3), (2, 1, 0), (3, 2, 0)) AS new (number, state, attempts);
    INSERT INTO fetchwell_outbox (job, cursor, stored_at, http_status, kind, caller, status, content_type, error)
    VALUES (1, 1, 1700000002000000, 404, '', 'anna', 'http_error', 'text/html', 'not found')";

/// A database of its own on the server; dropped at the end.
async fn with_database(test: impl AsyncFnOnce(&str)) {
    let Some(server) = server_url("FETCHWELL_TEST_POSTGRES_URL") else { return };
    let name = format!("views_{:016x}", unique());
    run_sql(&server, &format!("CREATE DATABASE {name}")).await;
    let (place, _) = server.rsplit_once('/').unwrap();
    test(&format!("{place}/{name}")).await;
    run_sql(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

async fn open(url: &str) {
    let db = Database::open(url).await.unwrap();
    let ttl = Duration::from_secs(20);
    let poll = Duration::from_secs(1);
    drop(open_retriever(db, StoreClock::Server(Clock::system()), ttl, poll).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_results_have_the_columns_of_the_design() {
    with_database(async |url: &str| {
        open(url).await;
        let columns = run_sql(
            url,
            "SELECT table_name || '.' || column_name || ' ' || data_type FROM information_schema.columns
             WHERE table_schema = 'fetchwell' ORDER BY table_name, ordinal_position",
        )
        .await;
        let expected: Vec<&str> = COLUMNS.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(columns, expected);
        run_sql(url, MESSAGES).await;
        let messages = run_sql(
            url,
            "SET TIME ZONE 'UTC'; SELECT row(inbox_message.*)::TEXT FROM fetchwell.inbox_message ORDER BY id",
        )
        .await;
        let id = |number| format!("{number:032x}");
        assert_eq!(
            messages,
            [
                format!(
                    "(msg_{},http://a.test/1,shop,c1,anna,failed,\"2023-11-14 22:13:20.000001+00\",3)",
                    id(1)
                ),
                format!(
                    "(msg_{},http://a.test/2,shop,c2,anna,queued,\"2023-11-14 22:13:20.000002+00\",2)",
                    id(2)
                ),
                format!(
                    "(msg_{},http://a.test/3,shop,c3,anna,processing,\"2023-11-14 22:13:20.000003+00\",2)",
                    id(3)
                ),
            ]
        );
        let results = run_sql(
            url,
            "SET TIME ZONE 'UTC'; SELECT row(outbox_message.*)::TEXT FROM fetchwell.outbox_message",
        )
        .await;
        let one = id(1);
        let time = "2023-11-14 22:13:22+00";
        let expected = format!(
            "(out_{one},msg_{one},http://a.test/1,shop,c1,http_error,,text/html,404,\"not found\",\"{time}\")"
        );
        assert_eq!(results, [expected]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_fetchwell_in_the_database_has_its_views_beside_its_tables() {
    with_database(async |url: &str| {
        open(url).await;
        run_sql(url, "CREATE SCHEMA another").await;
        let another = format!("{url}?options=-c%20search_path%3Danother");
        open(&another).await;
        run_sql(&another, MESSAGES).await;
        let counts = "SELECT (SELECT count(*) FROM fetchwell.inbox_message) || ' '
            || (SELECT count(*) FROM another.inbox_message)";
        assert_eq!(run_sql(url, counts).await, ["0 3"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_make_a_schema_has_the_views_beside_the_tables() {
    with_database(async |url: &str| {
        let role = format!("views_{:016x}", unique());
        run_sql(
            url,
            &format!("CREATE ROLE {role} NOLOGIN; CREATE SCHEMA small AUTHORIZATION {role}"),
        )
        .await;
        let small = format!("{url}?options=-c%20search_path%3Dsmall%20-c%20role%3D{role}");
        open(&small).await;
        run_sql(&small, MESSAGES).await;
        let counted = run_sql(url, "SELECT count(*)::TEXT FROM small.outbox_message").await;
        assert_eq!(counted, ["1"]);
        run_sql(url, &format!("DROP SCHEMA small CASCADE; DROP ROLE {role}")).await;
    })
    .await;
}
