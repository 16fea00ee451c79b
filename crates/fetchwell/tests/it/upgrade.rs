//! Stores of other versions. What an earlier version wrote is used with all that is in it; what a newer version has
//! changed is refused.
//!
//! `scripts/store-fixtures COMMIT` makes the stores of an earlier version. There is a folder for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::servers::{
    redis_connection, run_sql, server_url, unused_postgres, unused_redis,
};
use fetchwell_testkit::crash::{Program, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::skip::skipped;
use rusqlite::Connection;
use rusqlite::types::Value as SqlValue;
use serde_json::{Value, json};

/// The schema that the fixture of PostgreSQL is in.
const FIXTURE_SCHEMA: &str = "store_fixture";
/// These change whenever a store is opened or used: its clock, and who is at work.
const LIVELY: [&str; 3] = ["meta", "instance", "sqlite_sequence"];

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

// ---- newer stores ---------------------------------------------------------------------------------------------

async fn expect_refusal(program: &Program, command: &[&str]) {
    let ended = program.run(command).await.expect_code(2);
    let said = ended.stderr;
    let own = format!("fetchwell {}", env!("CARGO_PKG_VERSION"));
    assert!(said.contains("has version 99, and") && said.contains(&own), "{said}");
}

fn make_newer(file: &Path) {
    Connection::open(file).unwrap().pragma_update(None, "user_version", 99).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_sqlite_file_is_refused_and_not_changed() {
    // A doctor whose name servers answer nobody.
    let program = program()
        .variable("FETCHWELL_DNS__SERVERS", "127.0.0.1:1")
        .variable("FETCHWELL_DNS__TIMEOUT", "1s");
    program.run(&["callers", "add", "anna"]).await.expect_code(0);
    let file = program.file("fetchwell.db");
    make_newer(&file);
    let before = fs::read(&file).unwrap();
    for command in [
        &["callers", "list"][..],
        &["serve", "--listen", "127.0.0.1:0"],
        &["fetch", "http://a.test/"],
        &["pages", "add", "http://a.test/"],
        &["sites", "list"],
        &["articles", "run"],
    ] {
        expect_refusal(&program, command).await;
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    let doctor = program.run(&["doctor"]).await.expect_code(5).stdout;
    assert!(doctor.contains("has version 99"), "{doctor}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_refused() {
    let Some(url) = unused_postgres().await else { return };
    let program = program().store(&url);
    program.run(&["callers", "add", "anna"]).await.expect_code(0);
    run_sql(&url, "INSERT INTO fetchwell_schema VALUES (99)").await;
    expect_refusal(&program, &["callers", "list"]).await;
    expect_refusal(&program, &["serve", "--listen", "127.0.0.1:0"]).await;
    let elsewhere = self::program().flags(["--politeness", &url]);
    expect_refusal(&elsewhere, &["fetch", "http://a.test/"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_redis_is_refused() {
    let Some(url) = unused_redis().await else { return };
    let mut set = redis::cmd("SET");
    set.arg("fetchwell:store:version").arg(99);
    set.query_async::<()>(&mut redis_connection(&url).await).await.unwrap();
    let program = program().store(&url);
    for command in [&["pages", "add", "http://a.test/"][..], &["articles", "run"], &["dlq", "list"]]
    {
        expect_refusal(&program, command).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_manifest_and_a_newer_checkpoint_are_refused() {
    let program = program();
    fs::create_dir(program.file("documents")).unwrap();
    fs::create_dir(program.file("archive")).unwrap();
    make_newer(&program.file("documents/manifest.db"));
    let work = ["commoncrawl", "work", "--base", "archive", "--metrics-listen", ""];
    expect_refusal(&program, &work).await;
    fs::write(program.file("cluster.idx"), "").unwrap();
    fs::write(program.file("cluster.idx.checkpoint"), json!({"version": 99}).to_string()).unwrap();
    let batch = ["commoncrawl", "batch", "--cluster-idx", "cluster.idx", "--base", "archive"];
    expect_refusal(&program, &[&batch[..], &["--metrics-listen", ""]].concat()).await;
}

// ---- earlier stores -------------------------------------------------------------------------------------------

/// The stores of an earlier version.
struct Fixture {
    folder: PathBuf,
    expected: Value,
}

/// Those that have this part.
fn fixtures(part: &str) -> Vec<Fixture> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores");
    let folders = fs::read_dir(all).into_iter().flatten();
    let fixture = |folder: PathBuf| {
        let expected = fs::read(folder.join("expected.json")).ok()?;
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        expected.get(part)?;
        Some(Fixture { folder, expected: expected[part].clone() })
    };
    let found: Vec<_> = folders.filter_map(|entry| fixture(entry.unwrap().path())).collect();
    if found.is_empty() {
        skipped(&format!("there are no fixtures for {part}; scripts/store-fixtures makes them"));
    }
    found
}

impl Fixture {
    /// Every list that the earlier version made is the same now.
    async fn expect_lists(&self, program: &Program) {
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        for (name, list) in self.expected.as_object().unwrap() {
            let command = strings(&list["command"]);
            let fields = strings(&list["fields"]);
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let said = program.run(&command).await.expect_code(0).stdout;
            let pick = |line: &str| {
                let line: Value = serde_json::from_str(line).unwrap();
                let picked: BTreeMap<_, _> =
                    fields.iter().map(|name| (name, &line[name])).collect();
                json!(picked).to_string()
            };
            // A queue that came later is empty.
            let is_newer = |line: &str| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["queue"] == "crawls" && line["accepted"] == 0
            };
            let mut found: Vec<String> =
                said.lines().filter(|line| !is_newer(line)).map(pick).collect();
            let mut expected: Vec<String> =
                list["lines"].as_array().unwrap().iter().map(Value::to_string).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{name} of {}", self.folder.display());
        }
    }
}

/// All that a file holds, by table and column.
fn rows_of(file: &Path) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let connection = Connection::open(file).unwrap();
    let mut names =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    let names: Vec<String> = names.filter(|name| !LIVELY.contains(&name.as_str())).collect();
    names.into_iter().map(|name| (name.clone(), table(&connection, &name, None))).collect()
}

/// The rows of a table, in these columns; `None`: in all.
fn table(
    connection: &Connection,
    name: &str,
    columns: Option<&[String]>,
) -> (Vec<String>, Vec<String>) {
    let quoted = |columns: &[String]| format!("\"{}\"", columns.join("\", \""));
    let chosen = columns.map_or("*".to_owned(), quoted);
    let mut select = connection.prepare(&format!("SELECT {chosen} FROM \"{name}\"")).unwrap();
    let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
    let width = columns.len();
    let row = |row: &rusqlite::Row<'_>| {
        Ok(format!("{:?}", (0..width).map(|n| row.get_unwrap(n)).collect::<Vec<SqlValue>>()))
    };
    let mut rows: Vec<String> = select.query_map([], row).unwrap().map(Result::unwrap).collect();
    rows.sort();
    (columns, rows)
}

/// What waits in the queue of messages, and what was accepted.
async fn messages(program: &Program) -> (i64, i64) {
    let said = program.run(&["ledger", "--json"]).await.expect_code(0).stdout;
    let queues = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages = queues.into_iter().find(|queue| queue["queue"] == "messages").unwrap();
    let number = |name: &str| messages[name].as_i64().unwrap();
    (number("queued") + number("delayed") + number("in_flight"), number("accepted"))
}

/// A service of this version ends what waits.
async fn expect_work_to_go_on(program: &Program) {
    let (waiting, accepted) = messages(program).await;
    assert!(waiting > 0, "nothing waits, so nothing is shown");
    let service = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    eventually_ok("the end of what waits", async || {
        let (waiting, _) = messages(program).await;
        if waiting == 0 {
            Ok(())
        } else {
            Err(format!("{waiting} wait: {}", service.said_so_far()))
        }
    })
    .await;
    service.terminate().await;
    service.wait(DEADLINE).await.expect_code(0);
    assert_eq!(messages(program).await, (0, accepted));
    program.run(&["ledger", "--check"]).await.expect_code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_of_an_earlier_version_is_used_and_loses_nothing() {
    for fixture in fixtures("sqlite") {
        let origin = TestWeb::start([SiteScript::new("slow.test"), SiteScript::new("shop.test")]);
        let program = program().on(&origin);
        let file = program.file("fetchwell.db");
        fs::copy(fixture.folder.join("fetchwell.db"), &file).unwrap();
        let before = rows_of(&file);
        fixture.expect_lists(&program).await;
        let connection = Connection::open(&file).unwrap();
        for (name, (columns, rows)) in &before {
            let (_, mut after) = table(&connection, name, Some(columns));
            if name == "queue" {
                // This queue came later.
                after.retain(|row| !row.contains(r#"Text("crawls")"#));
            }
            assert_eq!(rows, &after, "table {name} of {}", fixture.folder.display());
        }
        let views = table(&connection, "inbox_message", Some(&["id".to_owned()])).1.len();
        assert_eq!(views, fixture.expected["messages"]["lines"].as_array().unwrap().len());
        drop(connection);
        expect_work_to_go_on(&program).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_earlier_version_is_used_and_loses_nothing() {
    for fixture in fixtures("postgres") {
        let Some(server) = server_url("FETCHWELL_TEST_POSTGRES_URL") else { return };
        let Some(empty) = unused_postgres().await else { return };
        // The fixture makes a schema of its own, beside the empty one.
        let schema = format!("{}_fixture", empty.rsplit("%3D").next().unwrap());
        let sql = fs::read_to_string(fixture.folder.join("postgres.sql")).unwrap();
        run_sql(&server, &sql.replace(FIXTURE_SCHEMA, &schema)).await;
        let url = format!("{server}?options=-c%20search_path%3D{schema}");
        let tables = run_sql(
            &url,
            "SELECT tablename::TEXT FROM pg_tables WHERE schemaname = current_schema()
                 AND tablename NOT IN ('fetchwell_schema', 'fetchwell_run', 'fetchwell_instance', 'fetchwell_meta')",
        )
        .await;
        let mut before = Vec::new();
        for table in &tables {
            let columns = run_sql(
                &url,
                &format!(
                    "SELECT column_name::TEXT FROM information_schema.columns
                     WHERE table_schema = current_schema() AND table_name = '{table}' ORDER BY 1"
                ),
            )
            .await;
            // Only the columns that there were, whatever a step adds.
            let columns = columns.join("\", \"");
            let select = format!("SELECT row(\"{columns}\")::TEXT FROM {table} ORDER BY 1");
            before.push((select.clone(), run_sql(&url, &select).await));
        }
        let origin = TestWeb::start([SiteScript::new("slow.test"), SiteScript::new("shop.test")]);
        let program = program().on(&origin).store(&url);
        fixture.expect_lists(&program).await;
        for (select, rows) in &before {
            assert_eq!(&run_sql(&url, select).await, rows, "{select}");
        }
        expect_work_to_go_on(&program).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_of_an_earlier_version_is_used_and_loses_nothing() {
    for fixture in fixtures("redis") {
        let Some(url) = unused_redis().await else { return };
        let mut connection = redis_connection(&url).await;
        let entries = fs::read(fixture.folder.join("redis.json")).unwrap();
        let entries: Vec<Value> = serde_json::from_slice(&entries).unwrap();
        for entry in &entries {
            let dump = entry["dump"].as_str().unwrap().as_bytes().chunks(2);
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
            let dump: Vec<u8> = dump.map(|pair| byte(pair).unwrap()).collect();
            let mut restore = redis::cmd("RESTORE");
            restore.arg(entry["key"].as_str()).arg(entry["ttl_ms"].as_i64()).arg(dump);
            restore.query_async::<()>(&mut connection).await.unwrap();
        }
        let program = program().store(&url);
        fixture.expect_lists(&program).await;
        program.run(&["ledger", "--check"]).await.expect_code(0);
        // What waited for a slow site waits still, and can be had back.
        program.run(&["pages", "unpark"]).await.expect_code(0);
        let mut range = redis::cmd("LRANGE");
        range.arg("crawler_queue").arg(0).arg(-1);
        let waiting: Vec<String> = range.query_async(&mut connection).await.unwrap();
        let urls: BTreeSet<&String> = waiting.iter().collect();
        assert_eq!((waiting.len(), urls.len()), (3, 3), "{waiting:?}");
        assert!(urls.iter().all(|url| url.starts_with("http://slowly.test/page/")), "{waiting:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_and_documents_of_an_earlier_version_are_gone_on_with() {
    for fixture in fixtures("commoncrawl") {
        let program = program().variable("FETCHWELL_STORE", "sqlite:batches.db");
        copy(&fixture.folder.join("commoncrawl"), program.folder());
        let strings = |name: &str| -> Vec<String> {
            let words = fixture.expected[name].as_array().unwrap();
            words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
        };
        let pages = fixture.expected["pages"].as_i64().unwrap();
        let known = |query: &str| -> i64 {
            let manifest = Connection::open(program.file("documents/manifest.db")).unwrap();
            manifest.query_row(query, [], |row| row.get(0)).unwrap()
        };
        let documents = "SELECT sum(documents) FROM segment";
        assert_eq!(known(documents), fixture.expected["documents"].as_i64().unwrap());
        let batch = strings("batch");
        let work = strings("work");
        let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
        let work: Vec<&str> = work.iter().map(String::as_str).collect();
        program.run(&batch).await.expect_code(0);
        let worker = program.start(&work);
        eventually_ok("all documents", async || {
            let found = known("SELECT count(*) FROM page");
            if found >= pages { Ok(()) } else { Err(format!("{found}: {}", worker.said_so_far())) }
        })
        .await;
        worker.terminate().await;
        worker.wait(DEADLINE).await.expect_code(0);
        assert_eq!(known(documents), pages, "each page is one document, and none is two");
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
