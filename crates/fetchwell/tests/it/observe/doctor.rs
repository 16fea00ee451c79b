//! `fetchwell doctor` against settings, files and real servers that are wrong in one thing.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use fetchwell_testkit::conformance::servers::{
    redis_connection, server_url, unused_postgres_schema,
};
use fetchwell_testkit::crash::{OwnServer, Program};
use fetchwell_testkit::dns::{DnsServer, Script};
use fetchwell_testkit::eventually::eventually_ok;
use serde_json::Value;

use super::program;

/// A program whose name servers answer nobody, so that no test asks the world.
fn alone() -> Program {
    program()
        .variable("FETCHWELL_DNS__SERVERS", "127.0.0.1:1")
        .variable("FETCHWELL_DNS__TIMEOUT", "1s")
        .variable("FETCHWELL_CONTACT", "ops@example.com")
        .variable("FETCHWELL_RETRIEVER__LISTEN", "127.0.0.1:0")
        .variable("FETCHWELL_PAGES__METRICS_LISTEN", "")
        .variable("FETCHWELL_COMMONCRAWL__BATCH_METRICS_LISTEN", "")
        .variable("FETCHWELL_COMMONCRAWL__WORK_METRICS_LISTEN", "")
}

struct Report(Value);

impl Report {
    async fn of(program: &Program, code: i32) -> Report {
        let ended = program.run(&["doctor", "--json"]).await.expect_code(code);
        Report(
            serde_json::from_str(&ended.stdout)
                .unwrap_or_else(|error| panic!("{error}: {} {}", ended.stdout, ended.stderr)),
        )
    }

    /// What was found of a check; a bad one says why it matters and what to do.
    fn verdict(&self, check: &str) -> (&str, &str) {
        let findings = self.0["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["check"] == check);
        let found = found.unwrap_or_else(|| panic!("no {check} in {:#}", self.0));
        let text = |name: &str| found[name].as_str().unwrap();
        if text("verdict") != "ok" {
            assert!(!text("why").is_empty() && !text("mend").is_empty(), "{found:#}");
        }
        (text("verdict"), text("what"))
    }

    fn expect(&self, check: &str, verdict: &str, part: &str) {
        let (found, what) = self.verdict(check);
        assert_eq!(found, verdict, "{check}: {what}");
        assert!(what.contains(part), "{check}: {what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_folder_is_well() {
    let program = alone();
    let report = Report::of(&program, 0).await;
    report.expect("settings", "ok", "valid");
    report.expect("store", "ok", "it is created on first use");
    report.expect("user agent", "ok", "ops@example.com");
    report.expect("politeness", "ok", "fetchwell.db");
    report.expect("clock", "ok", "");
    report.expect("name servers", "warn", "");
    assert_eq!(report.0["failures"], 0);
    assert!(!program.file("fetchwell.db").exists(), "a doctor makes nothing");
    let told = program.run(&["doctor"]).await.expect_code(0).stdout;
    assert!(told.contains("fix: ") && told.contains("failed: 0"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_whose_names_do_not_exist_are_listed() {
    let server = DnsServer::start([("nosuch.test", Script::NoSuchName(None))]).await.unwrap();
    let program = alone().variable("FETCHWELL_DNS__SERVERS", &server.address.to_string());
    program.run(&["pages", "add", "http://nosuch.test/"]).await.expect_code(0);
    let process = program.start(&["pages"]);
    eventually_ok("word of the name", async || {
        let report = Report::of(&program, 0).await;
        match report.verdict("host names") {
            ("warn", what) if what.contains("nosuch.test") => Ok(()),
            (_, what) => Err(what.to_owned()),
        }
    })
    .await;
    process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_are_told_one_by_one() {
    let program = alone().variable("FETCHWELL_RATE", "fast").variable("FETCHWELL_WINDOW", "0");
    let report = Report::of(&program, 2).await;
    assert_eq!(report.0["failures"], 2);
    report.expect("settings", "fail", "FETCHWELL_");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_to_write_to_a_port_that_is_taken_and_few_files() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let program = alone()
        .variable("FETCHWELL_USER_AGENT", "Bot/1.0")
        .variable("FETCHWELL_MAX_IN_FLIGHT", "100000")
        .variable("FETCHWELL_RETRIEVER__LISTEN", &address);
    let report = Report::of(&program, 0).await;
    report.expect("user agent", "warn", "Bot/1.0");
    report.expect("port of \"serve\"", "warn", &address);
    let limit = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limit.lines().find(|line| line.starts_with("Max open files")).unwrap();
    // The program raises its soft limit to the hard one, and a request may need four descriptors.
    let hard = line.split_whitespace().nth(4).unwrap();
    let is_enough = hard.parse::<u64>().map_or(true, |most| most / 4 * 3 > 400_040);
    report.expect("open files", if is_enough { "ok" } else { "warn" }, hard);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_is_found_out() {
    let program = alone();
    program.run(&["callers", "add", "me"]).await.expect_code(0);
    Report::of(&program, 0).await.expect("store", "ok", "wal");
    let path = program.file("fetchwell.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[4096..middle].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let (verdict, _) = {
        let report = Report::of(&program, 5).await;
        let (verdict, what) = report.verdict("store");
        (verdict.to_owned(), what.to_owned())
    };
    assert_eq!(verdict, "fail");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_others_can_read_is_found_out() {
    let program = alone();
    program.run(&["callers", "add", "me"]).await.expect_code(0);
    let path = program.file("fetchwell.db");
    let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600, "it was made so");
    assert!(!program.file("fetchwell.db-wal").exists(), "the last to leave merges the WAL");
    let report = Report::of(&program, 0).await;
    assert!(!report.0.to_string().contains("file mode"), "{:#}", report.0);
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let report = Report::of(&program, 0).await;
    report.expect("store: file mode", "warn", "fetchwell.db");
    assert_eq!(mode(), 0o644, "a doctor changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_told_with_its_address_and_without_its_password() {
    let program = alone()
        .variable("FETCHWELL_STORE", "postgres://me:hush@127.0.0.1:1/db")
        .variable("FETCHWELL_POLITENESS", "redis://:hush@127.0.0.1:2/0")
        .variable("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:3")
        .variable("RABBITMQ_CONNECTION_STRING", "amqp://me:hush@127.0.0.1:4/%2f");
    let report = Report::of(&program, 5).await;
    for (check, address) in [
        ("store", "127.0.0.1:1"),
        ("politeness", "127.0.0.1:2"),
        ("kafka", "127.0.0.1:3"),
        ("rabbitmq", "127.0.0.1:4"),
    ] {
        let findings = report.0["findings"].as_array().unwrap();
        let told = findings.iter().any(|finding| {
            finding["check"] == check
                && finding["verdict"] == "fail"
                && finding["what"].as_str().unwrap().contains(address)
        });
        assert!(told, "{check}: {:#}", report.0);
    }
    assert!(!report.0.to_string().contains("hush"), "{:#}", report.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_would_lose_urls_is_found_out() {
    let Some(server) = OwnServer::start("redis").await else { return };
    let mut connection = redis_connection(server.url()).await;
    let mut set = async |name: &str, value: &str| {
        let mut command = redis::cmd("CONFIG");
        command.arg("SET").arg(name).arg(value);
        command.query_async::<()>(&mut connection).await.unwrap();
    };
    let program = alone().variable("FETCHWELL_STORE", server.url());
    set("maxmemory-policy", "noeviction").await;
    set("appendonly", "yes").await;
    set("appendfsync", "always").await;
    let report = Report::of(&program, 0).await;
    report.expect("store", "ok", "Redis ");
    report.expect("store: clock", "ok", "agrees");
    assert!(!report.0.to_string().contains("durability"), "{:#}", report.0);
    set("appendfsync", "everysec").await;
    set("maxmemory-policy", "allkeys-lru").await;
    let report = Report::of(&program, 0).await;
    report.expect("store: durability", "warn", "everysec");
    report.expect("store: eviction", "warn", "allkeys-lru");
    set("maxmemory", "100mb").await;
    Report::of(&program, 5).await.expect("store: eviction", "fail", "allkeys-lru");
    // The cache may evict, and doors that keep the pace in different places share nothing.
    let program = alone()
        .variable("PAGE_FETCHER_REDIS_URL", server.url())
        .variable("FETCHWELL_PAGES__CACHE", server.url());
    let report = Report::of(&program, 5).await;
    report.expect("politeness", "warn", "\"pages\"");
    report.expect("page cache", "ok", "Redis ");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_asked_and_a_wrong_password_is_no_way_in() {
    let Some(url) = server_url("FETCHWELL_TEST_POSTGRES_URL") else { return };
    let good = unused_postgres_schema(url.clone()).await;
    let report = Report::of(&alone().variable("FETCHWELL_STORE", &good), 0).await;
    report.expect("store", "ok", "PostgreSQL ");
    report.expect("store: clock", "ok", "agrees");
    let (_, host) = url.split_once('@').unwrap_or(("", url.trim_start_matches("postgres://")));
    let wrong = format!("postgres://nobody:hush@{host}");
    let report = Report::of(&alone().variable("FETCHWELL_STORE", &wrong), 5).await;
    report.expect("store", "fail", "nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_and_rabbitmq_tell_of_topic_and_queue_and_nothing_is_made() {
    let (Some(kafka), Some(rabbitmq)) =
        (server_url("FETCHWELL_TEST_KAFKA_BOOTSTRAP"), server_url("FETCHWELL_TEST_RABBITMQ_URL"))
    else {
        return;
    };
    let unused = format!("doctor_{:016x}", fetchwell_testkit::conformance::servers::unique());
    let program = alone()
        .variable("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", &kafka)
        .variable("PAGE_FETCHER_WEBPAGE_LOG_TOPIC", &unused)
        .variable("RABBITMQ_CONNECTION_STRING", &rabbitmq)
        .variable("FETCHWELL_COMMONCRAWL__QUEUE", &unused);
    for _ in 0..2 {
        let report = Report::of(&program, 0).await;
        report.expect("kafka", "warn", "there is no topic");
        report.expect("rabbitmq", "ok", "is created on first use");
    }
}
