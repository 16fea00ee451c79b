//! The dashboard in a real Chromium, driven by Playwright: `browser.py` says what is done there.
//!
//! It needs `FETCHWELL_TEST_PYTHON` (an environment with playwright, as `scripts/setup --test` makes) and
//! Chromium; without them it says that it skips. `FETCHWELL_SCREENSHOTS` names a folder for pictures; with it, and in
//! the soak, every page is looked at in both colours and both widths.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fetchwell_testkit::crash::{Program, Service};
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::python::python;
use fetchwell_testkit::replay::is_soak;
use fetchwell_testkit::skip::skipped;
use rusqlite::Connection;
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use super::place::{Pages, program, send, serve, web};
use super::visit::Visitor;

const PATIENCE: Duration = Duration::from_secs(900);
/// The first takes half as much CPU time as the others.
const BROWSERS: [&str; 4] = [
    "/usr/bin/chromium-headless-shell",
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

pub(super) fn chromium() -> Option<&'static Path> {
    let found = BROWSERS.into_iter().map(Path::new).find(|path| path.exists());
    if found.is_none() {
        skipped("there is no Chromium; scripts/setup --test installs one");
    }
    found
}

/// Messages of every fate, articles, and what a Common Crawl pipeline leaves.
async fn fill(service: &Service) {
    let program = service.program();
    for number in 0..12 {
        send(
            service,
            &format!("http://shop.test/page?{number}"),
            &format!("order-{number}"),
            false,
        )
        .await;
        send(service, &format!("http://slow.test/{number}"), &format!("slow-{number}"), false)
            .await;
    }
    for number in 0..6 {
        send(
            service,
            &format!("http://shop.test/missing?{number}"),
            &format!("lost-{number}"),
            false,
        )
        .await;
        send(
            service,
            &format!("http://down.test/shelf/{number}"),
            &format!("shelf-{number}"),
            false,
        )
        .await;
    }
    send(service, "http://private.test/", "private", false).await;
    send(service, "http://busy.test/now", "busy", false).await;
    send(service, "http://shop.test/missing?last", "lost-last", true).await;
    let feed = ["feeds", "add", "http://news.test/feed.xml", "--category", "news"];
    program.run(&feed).await.expect_code(0);
    program.run(&["feeds", "ingest"]).await.expect_code(0);
    program.run(&["articles", "run"]).await.expect_code(0);
    common_crawl(program);
    let operator = Visitor::log_in(service.address, &service.token).await;
    eventually("an open breaker", async || {
        operator.page("/dashboard/sites?is=breaker-open").await.contains("down.test")
    })
    .await;
}

fn common_crawl(program: &Program) {
    std::fs::write(program.file("cluster.idx"), [b'x'; 1_000]).unwrap();
    let counts = json!({"blocks": 40, "bytes": 9_000_000, "lines": 120_000, "wanted": 30_000,
                        "filtered": {"language": 90_000}, "errors": {"cdx_line": 3}});
    let checkpoint = json!({
        "selection": {}, "position": {"index_offset": 420, "batches": 0, "digest": ""}, "batches": 600,
        "pages": 30_000, "counts": counts, "unread_blocks": 1, "unread": [], "cut": null, "is_finished": false,
    });
    std::fs::write(program.file("cluster.idx.checkpoint"), checkpoint.to_string()).unwrap();
    std::fs::create_dir_all(program.file("documents")).unwrap();
    let manifest = Connection::open(program.file("documents/manifest.db")).unwrap();
    manifest
        .execute_batch(
            "CREATE TABLE segment (name TEXT, length INTEGER, documents INTEGER, is_sealed INTEGER);
             INSERT INTO segment VALUES ('a', 5000000, 12000, 1), ('b', 700, 30, 0), ('errors.jsonl', 99, 0, 1);",
        )
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_browser_finds_every_page_in_order_and_every_button_at_work() {
    let (Some(python), Some(chromium)) = (python(), chromium()) else { return };
    let origin = web();
    let service = serve(&origin).await;
    fill(&service).await;
    let viewer = service.caller("looker", "viewer").await;
    let urls: Vec<String> = (0..14).map(|n| format!("http://shop.test/missing?{n}")).collect();
    let mut all: Vec<&str> = urls.iter().map(String::as_str).collect();
    all.extend(["http://10.0.0.1/", "http://news.test/gone"]);
    let pages = Pages::start(program(&origin), &all).await;
    let shots = std::env::var_os("FETCHWELL_SCREENSHOTS").map(PathBuf::from);
    let is_thorough = is_soak() || shots.is_some();
    let shots = shots.unwrap_or_else(|| service.program().file("screenshots"));
    std::fs::create_dir_all(&shots).unwrap();

    let mut command = Command::new(&python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/dashboard/browser.py"))
        .env("CHROMIUM", chromium)
        .env("SCREENSHOTS", &shots)
        .envs(is_thorough.then_some(("THOROUGH", "1")))
        .env("SERVE_URL", format!("http://{}", service.address))
        .env("OPERATOR_TOKEN", &service.token)
        .env("VIEWER_TOKEN", viewer)
        .env("PAGES_URL", format!("http://{}", pages.address))
        .env("PAGES_TOKEN", &pages.token)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let ended = timeout(PATIENCE, command.output()).await.expect("an end in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let faults = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}\n{faults}\nthe service:\n{}", service.log());
    assert_eq!(said.lines().last(), Some("all held"), "{said}\n{faults}");
}
