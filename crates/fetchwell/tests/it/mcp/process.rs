//! `fetchwell mcp`: a process with a client on its standard streams.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Program, TestWeb};
use fetchwell_testkit::eventually::eventually;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{ToolAnswer, call};

/// How long a slow site takes: longer than rmcp itself waits for calls when the input ends.
const SLOW: Duration = Duration::from_secs(7);

/// Shorter than a call may take.
const GRACE: Duration = Duration::from_secs(25);

/// A running process, as a client sees it.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Client {
    async fn start(program: &Program, arguments: &[&str]) -> Client {
        let mut command = program.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Client { child, input, output };
        let about = json!({"name": "a test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
        client
            .send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        let hello = client.receive().await;
        assert_eq!(hello["result"]["serverInfo"]["name"], "fetchwell", "{hello}");
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = timeout(DEADLINE, self.output.next_line()).await.expect("an answer").unwrap();
        serde_json::from_str(&line.expect("an answer before the end")).unwrap()
    }

    async fn fetch(&mut self, url: &str) -> ToolAnswer {
        self.send(&call("fetch", &json!({"url": url}))).await;
        ToolAnswer::of(&self.receive().await)
    }

    fn close_input(&mut self) {
        drop(self.input.take());
    }

    async fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        let killed = Command::new("kill").args(["-s", "TERM", &id]).status().await.unwrap();
        assert!(killed.success());
    }

    /// Waits for its end. Returns its exit status and its log.
    async fn end(mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        let ending = async {
            errors.read_to_string(&mut log).await.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(DEADLINE, ending).await.expect("its end");
        (status, log)
    }
}

fn web() -> TestWeb {
    TestWeb::start([
        SiteScript::new("shop.test").text("/page", "text/plain", "Some words on it."),
        SiteScript::new("slow.test").slow(SLOW).text("/page", "text/plain", "At last."),
    ])
}

fn program(origin: &TestWeb) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(origin)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_is_in_the_data_folder_and_only_answers_are_on_standard_output() {
    let origin = web();
    let program = program(&origin);
    let mut client = Client::start(&program, &["-vv", "mcp"]).await;
    assert_eq!(client.fetch("http://shop.test/page").await.untrusted(), "Some words on it.");
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    let tools = client.receive().await["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["fetch", "map", "explain", "find_in_archive"]);
    client.close_input();
    assert_eq!(client.output.next_line().await.unwrap(), None);
    let (status, log) = client.end().await;
    assert!(status.success(), "{log}");
    assert!(log.contains("serving MCP on standard input and output"), "{log}");
    assert!(program.file(".local/share/fetchwell/mcp.db").exists());
    assert!(!program.file("fetchwell.db").exists());

    // The next process has the page, on the same store.
    let mut next = Client::start(&program, &["mcp"]).await;
    assert!(next.fetch("http://shop.test/page").await.text.contains("From the cache"));
    assert_eq!(origin.page_hits(), 1);
    let mut elsewhere = Client::start(&program, &["mcp", "--store", "sqlite:other.db"]).await;
    assert!(elsewhere.fetch("http://shop.test/page").await.text.contains("Fetched just now."));
    assert!(program.file("other.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_end_of_the_input_calls_in_progress_are_answered() {
    let origin = web();
    let program = program(&origin);
    let mut client = Client::start(&program, &["mcp"]).await;
    client.send(&call("fetch", &json!({"url": "http://slow.test/page"}))).await;
    client.close_input();
    let answer = ToolAnswer::of(&client.receive().await);
    assert_eq!(answer.untrusted(), "At last.");
    let (status, log) = client.end().await;
    assert!(status.success(), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_although_the_input_is_open() {
    let origin = web();
    let program = program(&origin).variable("FETCHWELL_SHUTDOWN_GRACE", "1h");
    let client = Client::start(&program, &["mcp"]).await;
    client.terminate().await;
    // Its input stays open meanwhile.
    let (status, log) = client.end().await;
    assert!(status.success(), "{log}");
}

/// The site is not the cause, so the advice for a slow site would be wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_stop_cuts_off_says_so() {
    let forever =
        SiteScript::new("hanging.test").slow(2 * DEADLINE).text("/page", "text/plain", "x");
    let origin = TestWeb::start([forever]);
    let program = program(&origin).variable("FETCHWELL_HTTP__REQUEST_TIMEOUT", "1h");
    let mut client = Client::start(&program, &["mcp"]).await;
    client.send(&call("fetch", &json!({"url": "http://hanging.test/page"}))).await;
    eventually("the request", async || !origin.hits().is_empty()).await;
    client.terminate().await;
    let answer = ToolAnswer::of(&client.receive().await);
    answer.expect_error("the server is stopping");
    let (status, log) = client.end().await;
    assert!(status.success(), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_or_nonsense_ends_it_cleanly() {
    let program = program(&web());
    program.run(&["mcp"]).await.expect_code(0);
    let ended = program.run_with_input(&["mcp"], &format!("{}\n", call("fetch", &json!({})))).await;
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    let nonsense = "hello\n{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n";
    let ended = program.run_with_input(&["mcp"], nonsense).await.expect_code(2);
    assert!(ended.stderr.contains("did not begin with `initialize`"), "{}", ended.stderr);
}

/// A call that outlasts the grace period, and the request for its page, end together.
#[tokio::test(flavor = "multi_thread")]
async fn the_grace_period_is_spent_once() {
    let forever =
        SiteScript::new("hanging.test").slow(2 * DEADLINE).text("/page", "text/plain", "x");
    let origin = TestWeb::start([forever]);
    let program = program(&origin)
        .variable("FETCHWELL_SHUTDOWN_GRACE", &format!("{}s", GRACE.as_secs()))
        .variable("FETCHWELL_HTTP__REQUEST_TIMEOUT", "1h");
    let mut client = Client::start(&program, &["mcp"]).await;
    client.send(&call("fetch", &json!({"url": "http://hanging.test/page"}))).await;
    eventually("the request", async || !origin.hits().is_empty()).await;
    client.close_input();
    let closed_at = Instant::now();
    let (status, log) = client.end().await;
    let took = closed_at.elapsed();
    assert!(status.success(), "{log}");
    assert!(took >= GRACE, "the call was not waited for: {took:?}");
    assert!(took < 2 * GRACE, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_cannot_be_read_is_an_error() {
    let program = program(&web());
    let mut command = program.command(&["mcp"]);
    // Reading a folder fails.
    command.stdin(std::fs::File::open(program.folder()).unwrap());
    let ended = timeout(DEADLINE, command.output()).await.expect("its end").unwrap();
    let log = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{log}");
    assert!(log.contains("could not read standard input: Is a directory"), "{log}");
}
