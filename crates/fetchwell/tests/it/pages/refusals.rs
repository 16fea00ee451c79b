//! What ends the door before it begins, and what it says then.

use std::net::TcpListener;
use std::process::Stdio;

use fetchwell_testkit::conformance::servers::server_url;
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::scene::StoreKind;
use tokio::process::Command;

use super::door::Door;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

/// It ends with this code and says this.
async fn ends(program: &Program, arguments: &[&str], code: i32, says: &[&str]) {
    let said = program.run(arguments).await.expect_code(code).stderr;
    for word in says {
        assert!(said.contains(word), "{word} is missing in: {said}");
    }
}

const RUN: [&str; 3] = ["pages", "--metrics-listen", ""];
/// Nobody listens there.
const NOBODY: &str = "127.0.0.1:1";

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_will_not_do_is_refused_by_name() {
    let program = program();
    let postgres = [&["--store", "postgres://u:secret@db/x"], &RUN[..]].concat();
    ends(&program, &postgres, 2, &["postgres://", "--store redis://HOST", "--store sqlite:PATH"])
        .await;
    let said = program.run(&postgres).await.stderr;
    assert!(!said.contains("secret"), "{said}");
    let cached = program.variable("FETCHWELL_PAGES__CACHE", "sqlite:pages.db");
    ends(&cached, &RUN, 2, &["pages.cache", "redis://"]).await;
    ends(&cached, &["pages", "unpark"], 2, &["unpark needs redis://"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_ends_it_with_5() {
    let redis = program().variable("PAGE_FETCHER_REDIS_URL", &format!("redis://{NOBODY}"));
    ends(&redis, &RUN, 5, &["Redis at", NOBODY]).await;
    ends(&redis, &["pages", "add", "http://a.test/"], 5, &["Redis at", NOBODY]).await;
    let kafka = program().variable("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", NOBODY);
    ends(&kafka, &RUN, 5, &["Kafka's topic webpage_log", NOBODY]).await;
    ends(&kafka, &["pages", "events"], 2, &["webpage_log", NOBODY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_keeps_to_the_politeness_store_it_was_first_used_with() {
    let Some(door) = Door::on(StoreKind::Redis, []).await else { return };
    door.add(&["http://a.test/"]).await;
    let elsewhere = [&RUN[..], &["--politeness", "sqlite:other.db"]].concat();
    let says = ["the pace of sites in the store itself", "--politeness"];
    ends(&door.scene.program, &elsewhere, 2, &says).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ledger_and_top_bind_no_politeness_store() {
    let Some(door) = Door::on(StoreKind::Redis, []).await else { return };
    let program = &door.scene.program;
    let looks = [&["ledger"][..], &["top", "--once"]];
    for look in looks {
        program.run(look).await.expect_code(0);
    }
    let add = ["pages", "add", "http://a.test/", "--politeness", "sqlite:other.db"];
    program.run(&add).await.expect_code(0);
    // They do not reject a different politeness store, either.
    for look in looks {
        program.run(look).await.expect_code(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_cluster_is_refused() {
    if server_url("FETCHWELL_TEST_REDIS_URL").is_none() {
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let settings = ["--bind", "127.0.0.1", "--cluster-enabled", "yes", "--save", ""];
    let _cluster = Command::new("redis-server")
        .args(["--port", &port])
        .args(settings)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let url = format!("redis://127.0.0.1:{port}");
    let client = redis::Client::open(url.as_str()).unwrap();
    eventually_ok("the cluster", async || client.get_multiplexed_async_connection().await).await;
    let program = program().variable("PAGE_FETCHER_REDIS_URL", &url);
    ends(&program, &RUN, 2, &["is a Redis Cluster", "use a single Redis server"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_only_become_a_dead_letter_is_not_added() {
    for store in [StoreKind::Sqlite, StoreKind::Redis] {
        let Some(door) = Door::on(store, []).await else { continue };
        let program = &door.scene.program;
        for (url, why) in [
            ("ftp://a.test/", "use http:// or https://"),
            ("mailto:me@a.test", "use http:// or https://"),
            ("a.test/page", "write it as https://host/path"),
            ("http://", "names no host"),
        ] {
            let add = ["pages", "add", "http://a.test/good", url];
            ends(program, &add, 2, &["nothing was added: 1 of 2", url, why]).await;
        }
        let add = ["pages", "add", "http://me:secret@a.test/"];
        let said = program.run(&add).await.expect_code(2).stderr;
        assert!(said.contains("…@a.test/") && !said.contains("secret"), "{said}");
        let list: String = (0..9).map(|number| format!("gopher://a.test/{number}\n")).collect();
        let ended = program.run_with_input(&["pages", "add", "-"], &list).await.expect_code(2);
        assert!(
            ended.stderr.contains("9 of 9") && ended.stderr.contains("and 4 more"),
            "{ended:?}"
        );
        assert_eq!(door.waiting().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_named_with_the_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = ["pages", "--metrics-listen", &address];
    ends(&program(), &run, 2, &[&address, "--metrics-listen"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_means_nothing_is_reported() {
    let program = program().variable("PAGE_FETCHER_USER_AGNET", "MyBot/1.0");
    let hint =
        ["PAGE_FETCHER_USER_AGNET: no such setting", "did you mean PAGE_FETCHER_USER_AGENT?"];
    ends(&program, &["pages", "add", "http://a.test/"], 0, &hint).await;
    ends(&program, &["dlq", "list"], 0, &hint).await;
    let said = program.run(&["config", "check"]).await.expect_code(0).stdout;
    assert!(hint.iter().all(|word| said.contains(word)), "{said}");
}
