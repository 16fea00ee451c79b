//! `fetchwell demo` as its users meet it: the built program, without a network and without a trace.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::alone::alone;
use fetchwell_testkit::crash::{ProcessEnd, Program};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http::ask;
use serde_json::Value;
use tempfile::{TempDir, tempdir, tempdir_in};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

const SMALL: [&str; 7] = ["demo", "--sites", "40", "--pages", "300", "--rate", "20"];

/// A folder for temporary files, in memory where that is possible, so that the fsyncs of other tests do not slow the
/// demo down.
fn temporary() -> TempDir {
    tempdir_in("/dev/shm").or_else(|_| tempdir()).unwrap()
}

fn program(temporary: &TempDir) -> Program {
    let folder = temporary.path().display().to_string();
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).variable("TMPDIR", &folder)
}

fn report(ended: &ProcessEnd) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("no report: {ended:?}"))
}

/// Of each door, everything that was accepted is somewhere, and has one result when it is done.
fn balances(report: &Value) {
    for door in ["fetch", "messages"] {
        let account = &report[door];
        let ledger = |name: &str| account["ledger"][name].as_i64().unwrap();
        let open = ledger("queued") + ledger("in_flight") + ledger("delayed");
        let over = ledger("done") + ledger("skipped");
        assert_eq!(account["accepted"], ledger("accepted"), "{report}");
        assert_eq!(open + over, ledger("accepted"), "none ends without a result: {report}");
        assert_eq!(account["results"], over, "{report}");
        assert_eq!(account["missing"], open, "{report}");
        assert_eq!((&account["doubled"], &account["ledger_fault"]), (&0.into(), &Value::Null));
    }
    assert_eq!(report["origin"]["too_early"], 0, "{report}");
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_loses_nothing_is_polite_and_leaves_no_trace() {
    let _turn = alone().await;
    let temporary = temporary();
    let program = program(&temporary);
    let process = program.start(&[&SMALL[..], &["--seed", "1", "--json"]].concat());
    let ended = process.wait(DEADLINE).await.expect_code(0);
    let report = report(&ended);
    balances(&report);
    assert_eq!((&report["seed"], &report["stopped_early"]), (&1.into(), &false.into()));
    let accepted = |door: &str| report[door]["accepted"].as_u64().unwrap();
    assert_eq!(accepted("fetch") + accepted("messages"), 300);
    assert!((75..150).contains(&accepted("messages")), "about a third: {report}");
    assert_eq!(
        (&report["fetch"]["missing"], &report["messages"]["missing"]),
        (&0.into(), &0.into())
    );
    assert!(report["origin"]["gaps_judged"].as_u64().unwrap() > 150, "{report}");
    // Each ill-behaved site met us as its script has it.
    let trouble = |name: &str| {
        let troubles = report["troubles"].as_array().unwrap();
        troubles.iter().find(|found| found["trouble"] == name).unwrap().clone()
    };
    assert_eq!(report["troubles"].as_array().map(Vec::len), Some(9));
    // How many of its URLs came to this, and how many messages for it to that.
    let came_to = |name: &str, outcome: &str, status: &str| {
        let trouble = trouble(name);
        let count = |part: &str, word: &str| trouble[part][word].as_u64().unwrap_or_default();
        [count("outcomes", outcome), count("messages", status)]
    };
    let is_busy = report["origin"]["tolerance_ms"].as_f64() > Some(50.0);
    for (name, outcome, status, urls) in [
        ("limiter", "fetched", "success", 8),
        ("crawl_delay", "fetched", "success", 8),
        ("redirects", "fetched", "success", 12),
        ("robots", "skipped_by_robots", "refused_by_robots", 4),
    ] {
        let both = came_to(name, outcome, status);
        // On a busy machine, some messages miss their deadline.
        let late = if is_busy { came_to(name, outcome, "timeout")[1] } else { 0 };
        assert!(both.iter().sum::<u64>() + late == urls && both[0] > 0, "{name}: {report}");
        assert!(both[1] > 0 || late > 0, "{name}: {report}");
    }
    let dead = came_to("dead", "site_failure", "network_error")[0];
    let messages = trouble("dead")["messages"].as_object().unwrap().clone();
    assert!(!messages.is_empty() && !messages.contains_key("success"), "{report}");
    assert_eq!(dead + messages.values().filter_map(Value::as_u64).sum::<u64>(), 5, "{report}");
    for (name, answer) in
        [("limiter", "429"), ("unavailable", "503"), ("cuts", "cut"), ("flapping", "503")]
    {
        assert!(trouble(name)["answers"][answer].as_u64() > Some(0), "{name}: {report}");
        assert!(came_to(name, "fetched", "success")[0] > 0, "{name}: {report}");
    }
    assert!(is_empty(temporary.path()));
    assert!(!program.file("fetchwell.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_is_stopped_says_how_far_it_came_and_leaves_no_trace() {
    let _turn = alone().await;
    let temporary = temporary();
    let program = program(&temporary);
    let process = program.start(&[&SMALL[..], &["--json"]].concat());
    tokio::time::sleep(Duration::from_secs(3)).await;
    process.terminate().await;
    let ended = process.wait(DEADLINE).await.expect_code(0);
    let report = report(&ended);
    balances(&report);
    assert_eq!(report["stopped_early"], true);
    let left = report["messages"]["missing"].as_u64().unwrap();
    assert!(left > 0, "some still wait, and are told: {report}");
    assert!(is_empty(temporary.path()));
}

/// A page of the dashboard.
async fn page(at: SocketAddr, path: &str) -> String {
    let answer = ask(at, "", &format!("GET {path}"), &[], "").await.unwrap();
    let page = String::from_utf8(answer.body).unwrap();
    assert_eq!(answer.status, 200, "{path}: {page}");
    page
}

/// The same, as soon as it says this.
async fn page_with(at: SocketAddr, path: &str, expected: &str) -> String {
    eventually_ok(&format!("{expected} in {path}"), async || {
        let page = page(at, path).await;
        if page.contains(expected) { Ok(page) } else { Err(page) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn its_dashboard_shows_messages_failures_and_callers_and_lets_nobody_act() {
    let _turn = alone().await;
    let temporary = temporary();
    let program = program(&temporary);
    let mut process = program.start(&[&SMALL[..], &["--json"]].concat());
    let address = |said: &str| {
        let (_, address) = said.split_once("the dashboard is at http://")?;
        address.split_once('/')?.0.parse::<SocketAddr>().ok()
    };
    let at = process.until_said("the dashboard's address", address).await;
    let completed = page_with(at, "/dashboard/messages?state=completed", "price-watch").await;
    let (_, id) = completed.split_once("/dashboard/messages/msg_").unwrap();
    let one = page(at, &format!("/dashboard/messages/msg_{}", &id[..32])).await;
    for part in ["Result stored", "the server answered 200", "success"] {
        assert!(one.contains(part), "{part}: {one}");
    }
    let failures = page_with(at, "/dashboard/dead-letters", "refused_by_robots").await;
    assert!(failures.contains("robots-01.test"), "{failures}");
    let system = page(at, "/dashboard/system").await;
    for part in ["add_caller", "submit", "news-desk", "<th scope=\"row\">messages</th>", "fetch:"] {
        assert!(system.contains(part), "{part}: {system}");
    }
    // Whoever comes may look, and that is all.
    for page in [completed, one, failures, system] {
        assert!(page.contains("onlooker") && !page.contains("/dashboard/messages/act"), "{page}");
    }
    let ours = format!("http://{at}");
    let act = ask(at, "", "POST /dashboard/messages/act", &[("origin", &ours)], "what=retry").await;
    assert_eq!(act.unwrap().status, 403);
    process.terminate().await;
    balances(&report(&process.wait(DEADLINE).await.expect_code(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_demo_brings_itself_is_not_to_be_given() {
    let temporary = temporary();
    let program = program(&temporary);
    for arguments in [
        &["demo", "--store", "sqlite:x.db"][..],
        &["demo", "--resolve", "*.test=127.0.0.1:1"],
        &["demo", "--allow-private", "10.0.0.0/8"],
        &["demo", "--config", "x.toml"],
        &["demo", "--rate", "0"],
        &["demo", "--rate", "fast"],
        &["demo", "--sites", "1"],
        &["demo", "--pages", "0"],
    ] {
        let ended = program.run(arguments).await.expect_code(2);
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{arguments:?}: {ended:?}");
    }
    assert!(is_empty(temporary.path()));
}

/// On a terminal, which `script` makes.
fn terminal(temporary: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Child {
    let demo = [env!("CARGO_BIN_EXE_fetchwell"), &arguments.join(" ")].join(" ");
    Command::new("script")
        .args(["--quiet", "--return", "--command", &demo, "/dev/null"])
        .current_dir(temporary)
        .env("TMPDIR", temporary.path())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// The same with these bytes typed after three seconds. Returns what was on it, and the exit code.
async fn on_a_terminal(
    temporary: &TempDir,
    arguments: &[&str],
    typed: &[u8],
) -> (String, Option<i32>) {
    let mut terminal = terminal(temporary, arguments, &[]);
    let mut keys = terminal.stdin.take().unwrap();
    let mut shown = terminal.stdout.take().unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    keys.write_all(typed).await.unwrap();
    let mut screen = Vec::new();
    tokio::time::timeout(DEADLINE, shown.read_to_end(&mut screen)).await.unwrap().unwrap();
    let code = terminal.wait().await.unwrap().code();
    (String::from_utf8_lossy(&screen).into_owned(), code)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_is_given_back_and_the_summary_follows() {
    let _turn = alone().await;
    let temporary = temporary();
    let (screen, code) = on_a_terminal(&temporary, &SMALL, b"q").await;
    assert_eq!(code, Some(0), "{screen}");
    let (live, after) = screen.split_once("\u{1b}[?1049l").expect("the terminal is given back");
    assert!(live.contains("\u{1b}[?1049h") && live.contains("40 simulated sites"), "{live}");
    assert!(live.contains("\u{1b}[?25h"), "the cursor is shown again: {live}");
    assert!(after.contains("of 300 URLs") && after.contains("0 came too early"), "{after}");
    assert!(is_empty(temporary.path()));
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_twice_it_ends_at_once_and_still_gives_the_terminal_back() {
    let _turn = alone().await;
    let temporary = temporary();
    // Ctrl-C, twice: a terminal in raw mode makes no signals of them.
    let (screen, code) = on_a_terminal(&temporary, &SMALL, b"\x03\x03").await;
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("\u{1b}[?1049l") && screen.contains("\u{1b}[?25h"), "{screen}");
    assert!(is_empty(temporary.path()));
}

/// On a screen, and where the log is read line by line.
#[tokio::test(flavor = "multi_thread")]
async fn its_dashboard_stays_until_a_key_is_pressed() {
    let _turn = alone().await;
    tokio::join!(
        stays_until(&[], "done; press any key to exit", b" "),
        stays_until(&[("NO_COLOR", "1")], "until you press Enter", b"\n"),
    );
}

async fn stays_until(variables: &[(&str, &str)], said: &str, typed: &[u8]) {
    let few = ["demo", "--sites", "10", "--pages", "20", "--rate", "50"];
    let temporary = temporary();
    let mut terminal = terminal(&temporary, &few, variables);
    let mut keys = terminal.stdin.take().unwrap();
    let mut shown = terminal.stdout.take().unwrap();
    let mut screen = Vec::new();
    let text = |screen: &[u8]| String::from_utf8_lossy(screen).into_owned();
    let ended = async {
        while !text(&screen).contains(said) {
            let read = shown.read_buf(&mut screen).await.unwrap();
            assert!(read > 0, "it ended without a word: {}", text(&screen));
        }
    };
    tokio::time::timeout(DEADLINE, ended).await.unwrap();
    let seen = text(&screen);
    let (_, at) = seen.split_once("http://127.0.0.1:").expect("the dashboard's address");
    let port: String = at.chars().take_while(char::is_ascii_digit).collect();
    let at: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    assert!(page(at, "/dashboard/messages").await.contains("price-watch"));
    keys.write_all(typed).await.unwrap();
    let rest = shown.read_to_end(&mut screen);
    tokio::time::timeout(DEADLINE, rest).await.expect("a key ends it").unwrap();
    assert_eq!(terminal.wait().await.unwrap().code(), Some(0), "{}", text(&screen));
    assert!(text(&screen).contains("URLs on 10 simulated sites"), "{}", text(&screen));
    assert!(is_empty(temporary.path()));
}
