//! Failures of real servers and broken files, and the kind of error that each adapter reports for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::{Batch, BatchQueue};
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::{Demand, Source};
use fetchwell_policy::chance::Chance;
use fetchwell_sqlite::db::{Db, Durability};
use fetchwell_stores::StoreClock;
use fetchwell_stores::postgres::{Database, PostgresQueue};
use fetchwell_stores::rabbitmq::RabbitQueue;
use fetchwell_stores::redis::{QueueNames, RedisQueue};
use fetchwell_stores::sqlite::{self, SqliteQueue};
use fetchwell_testkit::conformance::rabbitmq::RabbitStore;
use fetchwell_testkit::conformance::servers::{
    redis_connection, run_sql, unused_postgres, unused_redis,
};
use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use rusqlite::Connection;

use StoreErrorKind::{Corrupt, Incompatible, TooLarge, Transient};

const LEASE_TTL: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(500);
const LIST: &str = "crawler_queue";

fn job(url: &str) -> NewJob {
    let lane = Lane::default();
    let url = url.to_owned();
    NewJob::now(Job { url, site: None, lane, deadline: None, payload: Vec::new() })
}

fn some_jobs() -> Vec<NewJob> {
    (0..50).map(|n| job(&format!("http://a.test/{n}"))).collect()
}

#[track_caller]
fn expect<T>(result: Result<T, StoreError>, kind: StoreErrorKind, words: &str) {
    let error = result.err().expect("the store refuses");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

mod on_sqlite {
    use super::*;

    fn db(path: &Path) -> Result<Db, StoreError> {
        sqlite::open(path, Durability::Disk)
    }

    async fn queue(path: &Path) -> Result<SqliteQueue, StoreError> {
        SqliteQueue::open(db(path)?, "q", Clock::system(), LEASE_TTL, false).await
    }

    fn execute(path: &Path, sql: &str) {
        let file = Connection::open(path).unwrap();
        file.busy_timeout(Duration::from_secs(20)).unwrap();
        file.execute_batch(sql).unwrap();
    }

    #[tokio::test]
    async fn a_dropped_table_is_incompatible() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.db");
        let queue = queue(&path).await.unwrap();
        execute(&path, "DROP TABLE job");
        expect(queue.enqueue(some_jobs()).await, Incompatible, "no such table: job");
    }

    #[tokio::test]
    async fn a_file_that_may_only_be_read_is_incompatible() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.db");
        drop(queue(&path).await.unwrap());
        let reader = Db::open_for_reading(&path).unwrap();
        let queue = SqliteQueue::open(reader, "other", Clock::system(), LEASE_TTL, false).await;
        expect(queue, Incompatible, "make it writable");
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_incompatible() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.db");
        fs::write(&path, "no database".repeat(1_000)).unwrap();
        expect(db(&path), Incompatible, "it is not an SQLite file");
    }

    #[tokio::test]
    async fn a_file_of_a_newer_version_is_incompatible() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.db");
        drop(queue(&path).await.unwrap());
        execute(&path, "PRAGMA user_version = 99");
        expect(db(&path), Incompatible, "99");
    }

    #[tokio::test]
    async fn damaged_pages_are_corrupt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.db");
        let queue_before = queue(&path).await.unwrap();
        queue_before.enqueue(some_jobs()).await.unwrap();
        drop(queue_before);
        execute(&path, "PRAGMA wal_checkpoint(TRUNCATE)");
        let mut pages = fs::read(&path).unwrap();
        // The first page holds the schema. It stays intact, so that the file can still be opened.
        pages[4096..].fill(0xaa);
        fs::write(&path, pages).unwrap();
        expect(queue(&path).await, Corrupt, "restore a backup");
    }

    #[tokio::test]
    async fn a_value_over_the_limit_of_sqlite_is_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let db = db(&folder.path().join("f.db")).unwrap();
        let too_large = "CREATE TABLE t AS SELECT zeroblob(1000000001)";
        expect(db.write(move |tx| tx.execute(too_large, ())).await, TooLarge, "too big");
    }
}

mod on_postgres {
    use super::*;

    async fn queue(url: &str) -> Result<PostgresQueue, StoreError> {
        let db = Database::open(url).await?;
        let clock = StoreClock::Server(Clock::system());
        PostgresQueue::open(db, "q", clock, LEASE_TTL, false, POLL).await
    }

    #[tokio::test]
    async fn a_dropped_table_is_incompatible() {
        let Some(url) = unused_postgres().await else { return };
        let queue = queue(&url).await.unwrap();
        run_sql(&url, "DROP TABLE fetchwell_job CASCADE").await;
        expect(queue.enqueue(some_jobs()).await, Incompatible, "fetchwell_job");
    }

    /// As during a failover.
    #[tokio::test]
    async fn a_server_that_may_only_be_read_is_transient() {
        let Some(url) = unused_postgres().await else { return };
        drop(queue(&url).await.unwrap());
        let url = format!("{url}%20-c%20default_transaction_read_only%3Don");
        expect(queue(&url).await, Transient, "read-only");
    }

    #[tokio::test]
    async fn an_unknown_user_and_an_unknown_database_are_incompatible() {
        let Some(url) = unused_postgres().await else { return };
        let (_, after_user) = url.split_once('@').unwrap();
        let unknown_user = format!("postgres://nobody_of_that_name@{after_user}");
        expect(queue(&unknown_user).await, Incompatible, "nobody_of_that_name");
        let (server, options) = url.split_once("/fetchwell?").unwrap();
        let unknown_database = format!("{server}/no_database?{options}");
        expect(queue(&unknown_database).await, Incompatible, "no_database");
    }

    #[tokio::test]
    async fn a_user_without_rights_is_incompatible() {
        let Some(url) = unused_postgres().await else { return };
        drop(queue(&url).await.unwrap());
        let role = format!("nobody_{}", std::process::id());
        run_sql(&url, &format!("CREATE ROLE {role} LOGIN")).await;
        let (_, after_user) = url.split_once('@').unwrap();
        let refused = queue(&format!("postgres://{role}@{after_user}")).await;
        run_sql(&url, &format!("DROP ROLE {role}")).await;
        expect(refused, Incompatible, "");
    }

    #[tokio::test]
    async fn a_database_of_a_newer_version_is_incompatible() {
        let Some(url) = unused_postgres().await else { return };
        drop(queue(&url).await.unwrap());
        run_sql(&url, "INSERT INTO fetchwell_schema VALUES (99)").await;
        expect(queue(&url).await, Incompatible, "99");
    }

    #[tokio::test]
    async fn a_value_that_no_index_can_hold_is_too_large() {
        let Some(url) = unused_postgres().await else { return };
        let queue = queue(&url).await.unwrap();
        let mut chance = Chance::seeded(1);
        let party = (0..2_000).map(|_| format!("{:016x}", chance.next_u64())).collect();
        let mut job = job("http://a.test/");
        job.job.lane.party = Some(party);
        expect(queue.enqueue(vec![job]).await, TooLarge, "index row");
    }

    #[tokio::test]
    async fn a_stopped_and_a_full_server_are_transient_and_a_damaged_one_is_corrupt() {
        let Some(server) = OwnServer::start("postgres").await else { return };
        let queue = queue(server.url()).await.unwrap();
        let file = run_sql(
            server.url(),
            "SELECT current_setting('data_directory') || '/' || \
             pg_relation_filepath('fetchwell_job')",
        );
        let file = file.await.remove(0);
        server.stop().await;
        expect(queue.ledger().await, Transient, "");

        // A table on this device is empty, and there is no space for its first page.
        let set_aside = format!("{file}.set_aside");
        fs::rename(&file, &set_aside).unwrap();
        symlink("/dev/full", &file).unwrap();
        server.restart().await;
        eventually_ok("the server", async || queue.ledger().await).await;
        expect(queue.enqueue(some_jobs()).await, Transient, "No space left on device");
        // It can't write a checkpoint on that device.
        server.crash().await;
        fs::rename(&set_aside, &file).unwrap();
        server.restart().await;
        eventually_ok("the server", async || queue.enqueue(some_jobs()).await).await;

        server.stop().await;
        let mut pages = fs::read(&file).unwrap();
        assert!(!pages.is_empty());
        pages.fill(0xaa);
        fs::write(&file, pages).unwrap();
        server.restart().await;
        eventually_ok("the server", async || queue.ledger().await).await;
        expect(queue.audit().await, Corrupt, "invalid page");
    }
}

mod on_redis {
    use super::*;

    async fn queue(url: &str) -> Result<RedisQueue, StoreError> {
        let dead_letters = "page_fetcher_dlq".to_owned();
        let names = QueueNames { input: LIST.to_owned(), dead_letters };
        let clock = StoreClock::Server(Clock::system());
        RedisQueue::open(url, &names, clock, LEASE_TTL, false, POLL).await
    }

    async fn ask(url: &str, command: &str) {
        let mut words = command.split(' ');
        let mut cmd = redis::cmd(words.next().unwrap());
        for word in words {
            cmd.arg(word);
        }
        cmd.query_async::<()>(&mut redis_connection(url).await).await.unwrap();
    }

    #[tokio::test]
    async fn a_key_of_another_type_is_incompatible() {
        let Some(url) = unused_redis().await else { return };
        let queue = queue(&url).await.unwrap();
        ask(&url, &format!("SET {LIST}:jobs text")).await;
        expect(queue.enqueue(some_jobs()).await, Incompatible, "WRONGTYPE");
    }

    #[tokio::test]
    async fn a_job_that_was_deleted_is_corrupt() {
        let Some(url) = unused_redis().await else { return };
        let queue = queue(&url).await.unwrap();
        queue.enqueue(some_jobs()).await.unwrap();
        let worker = queue.instance();
        worker.renew().await.unwrap();
        ask(&url, &format!("DEL {LIST}:jobs")).await;
        let demand = Demand { most: 1, most_per_site: 1, ..Demand::default() };
        expect(worker.take(&demand).await, Corrupt, "has lost job");
    }

    #[tokio::test]
    async fn a_server_of_a_newer_version_is_incompatible() {
        let Some(url) = unused_redis().await else { return };
        ask(&url, "SET fetchwell:store:version 99").await;
        expect(queue(&url).await, Incompatible, "99");
    }

    #[tokio::test]
    async fn a_database_that_is_not_there_is_incompatible() {
        let Some(url) = unused_redis().await else { return };
        let (server, _) = url.rsplit_once('/').unwrap();
        expect(queue(&format!("{server}/99999999")).await, Incompatible, "DB index");
    }

    #[tokio::test]
    async fn what_passes_by_itself_is_transient_and_a_missing_password_is_not() {
        let Some(server) = OwnServer::start("redis").await else { return };
        let url = server.url();
        let queue_before = queue(url).await.unwrap();
        ask(url, "CONFIG SET maxmemory 1").await;
        expect(queue_before.enqueue(some_jobs()).await, Transient, "OOM");
        ask(url, "CONFIG SET maxmemory 0").await;
        ask(url, "REPLICAOF 127.0.0.1 1").await;
        expect(queue_before.enqueue(some_jobs()).await, Transient, "ReadOnly");
        ask(url, "REPLICAOF NO ONE").await;
        queue_before.enqueue(some_jobs()).await.unwrap();
        ask(url, "CONFIG SET proto-max-bulk-len 1mb").await;
        let mut too_large = job("http://a.test/");
        too_large.job.payload = vec![b' '; 2 << 20];
        // The server replies, and closes the connection before it has read everything: sometimes the reply is lost.
        let refused =
            async || queue_before.enqueue(vec![too_large.clone()]).await.expect_err("too large");
        eventually("the reply", async || refused().await.kind() == TooLarge).await;
        server.crash().await;
        expect(queue_before.ledger().await, Transient, "");
        server.restart().await;
        eventually_ok("the server", async || queue_before.ledger().await).await;
        ask(url, "ACL SETUSER reader on >word ~* +@read +@connection").await;
        let reader = url.replacen("redis://", "redis://reader:word@", 1);
        let refused = async { queue(&reader).await?.enqueue(some_jobs()).await };
        expect(refused.await, Incompatible, "");
        ask(url, "CONFIG SET requirepass word").await;
        expect(queue(url).await, Incompatible, "");
        expect(queue(&reader.replacen("word", "wrong", 1)).await, Incompatible, "");
    }
}

mod on_rabbitmq {
    use super::*;

    fn batch(bytes: usize) -> Batch {
        Batch { id: "b-1".to_owned(), body: Bytes::from(vec![b' '; bytes]) }
    }

    #[tokio::test]
    async fn a_wrong_password_and_an_unknown_virtual_host_are_incompatible() {
        let Some(store) = RabbitStore::if_there() else { return };
        let open =
            async |url: &str| RabbitQueue::open(url, &store.queue, false, Clock::system()).await;
        let wrong = store.url.replace("guest:guest", "guest:wrong");
        expect(open(&wrong).await, Incompatible, "check user, password");
        let (server, _) = store.url.rsplit_once('/').unwrap();
        expect(open(&format!("{server}/no_host")).await, Incompatible, "no_host");
    }

    #[tokio::test]
    async fn a_broker_that_restarts_is_transient_and_a_message_over_its_limit_too_large() {
        let Some(server) = OwnServer::start("rabbitmq").await else { return };
        let store = RabbitStore::on(server.url().to_owned());
        let queue = store.open(Clock::system()).await;
        queue.publish(&[batch(10)]).await.unwrap();
        server.rabbitmqctl(&["eval", "application:set_env(rabbit, max_message_size, 1000)."]).await;
        // The limit applies to new channels.
        let limited = store.open(Clock::system()).await;
        expect(limited.publish(&[batch(2_000)]).await, TooLarge, "");
        server.stop().await;
        expect(queue.waiting().await, Transient, "");
        server.restart().await;
        eventually_ok("the broker", async || queue.waiting().await).await;
    }
}
