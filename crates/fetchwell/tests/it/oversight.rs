//! What operators do, by the API and by the command line: a real process, a real store.

use std::collections::BTreeSet;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use serde_json::{Value, json};

use crate::client::{self, Response};

/// A service, and the web that it fetches from.
struct Ground {
    service: Service,
    _origin: TestWeb,
}

impl Ground {
    async fn new(flags: &[&str]) -> Ground {
        let site = |name: &str| {
            let script = SiteScript::new(name);
            let missing = ["/missing", "/missing1", "/missing2", "/missing3"];
            let script = script.text("/page", "text/html", "<p>Words.</p>");
            missing.into_iter().fold(script, |script, path| script.status(path, 404))
        };
        let origin = TestWeb::start([site("a.test"), site("b.test")]);
        let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin);
        let service = Service::start(program.flags(flags.iter().copied())).await;
        Ground { service, _origin: origin }
    }

    /// Nothing is paced: results come at once.
    async fn unpaced() -> Ground {
        Ground::new(&["--rate", "0", "--i-own-these-sites"]).await
    }

    async fn send(&self, method: &str, path: &str, token: &str, body: Option<&Value>) -> Response {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = client::request(method, path, &headers, &body);
        client::raw(self.service.address, &request).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, &self.service.token, None).await.expect(200).json()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", path, &self.service.token, Some(body)).await.expect(200).json()
    }

    /// Sends messages for these URLs, and returns their names.
    async fn submit(&self, urls: impl IntoIterator<Item = String>) -> Vec<String> {
        let message = |url: String| json!({"url": url, "retailer": "shop", "correlation_id": url});
        let messages: Vec<Value> = urls.into_iter().map(message).collect();
        let answer = self.post("/fetch/batch", &json!({ "messages": messages })).await;
        let id = |one: &Value| one["message_id"].as_str().unwrap().to_owned();
        answer["messages"].as_array().unwrap().iter().map(id).collect()
    }

    /// Waits until so many results are there, and returns them.
    async fn results(&self, count: usize) -> Vec<Value> {
        eventually_ok(&format!("{count} results"), async || {
            let page = self.get("/outbox?limit=1000").await;
            let results = page["messages"].as_array().unwrap().clone();
            if results.len() >= count { Ok(results) } else { Err(results.len()) }
        })
        .await
    }

    /// What a command prints, line by line.
    async fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let all = [&["--json"], arguments].concat();
        let ended = self.service.program().run(&all).await.expect_code(0);
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn ids(messages: &[Value]) -> BTreeSet<String> {
    messages.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_is_done_to_what_was_seen_and_written_down() {
    let ground = Ground::unpaced().await;
    let failed =
        ground.submit(["http://a.test/missing1", "http://a.test/missing2"].map(String::from)).await;
    let page = ground.submit([String::from("http://a.test/page")]).await.remove(0);
    let other = ground.submit([String::from("http://b.test/missing")]).await.remove(0);
    ground.results(4).await;

    let listed = ground.lines(&["messages", "list", "--state", "failed", "--site", "a.test"]).await;
    assert_eq!(ids(&listed), failed.iter().cloned().collect());
    assert_eq!(listed[0]["reason"], "http_error 404");
    let groups = ground.lines(&["messages", "list", "--groups"]).await;
    assert_eq!((groups.len(), &groups[0]["messages"]), (2, &json!(2)));
    let shown = ground.lines(&["messages", "show", &page]).await.remove(0);
    let stages: Vec<&str> = shown["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["stage"].as_str().unwrap())
        .collect();
    let way = ["queued", "robots", "slot", "connect", "first_byte", "extracted", "delivered"];
    assert_eq!(stages, way, "{shown}");
    assert_eq!(shown["last_attempts"][0]["http_status"], 200, "{shown}");
    let text = ground.service.program().run(&["messages", "show", &failed[0]]).await.expect_code(0);
    assert!(text.stdout.contains("404") && text.stdout.contains("timeline"), "{}", text.stdout);

    let seen = ground.get("/operator/messages?state=failed&site=a.test").await;
    let as_of = seen["as_of"].as_str().unwrap();
    let later = ground.submit([String::from("http://a.test/missing3")]).await.remove(0);
    ground.results(5).await;
    let retry = ["messages", "retry", "--state", "failed", "--site", "a.test", "--as-of", as_of];
    let acted = ground.lines(&retry).await.remove(0);
    assert_eq!((&acted["done"], &acted["left_alone"]), (&json!(2), &json!(0)), "{acted}");
    let results = ground.results(7).await;
    let tried: BTreeSet<&str> =
        results[5..].iter().map(|result| result["correlation_id"].as_str().unwrap()).collect();
    assert_eq!(tried, ["http://a.test/missing1", "http://a.test/missing2"].into());
    for untouched in [&later, &other, &page] {
        let shown = ground.lines(&["messages", "show", untouched]).await.remove(0);
        assert_eq!(shown["retried_as"], Value::Null, "{shown}");
    }
    // What was done once is not done again, and whoever asks learns it.
    let again =
        ground.service.program().run(&["messages", "retry", &failed[0]]).await.expect_code(4);
    assert!(again.stdout.contains("already retried as"), "{}", again.stdout);

    let tail = ground.lines(&["outbox", "tail", "--caller", "local", "-n", "3"]).await;
    let cursors: Vec<&str> = tail.iter().map(|one| one["cursor"].as_str().unwrap()).collect();
    assert_eq!(cursors, ["5", "6", "7"]);
    assert_eq!(tail[0]["caller_id"], "local");
    let audit = ground.get("/operator/audit").await;
    let acts: Vec<&Value> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["action"] == "retry_messages")
        .collect();
    assert_eq!((acts.len(), &acts[1]["caller"]), (2, &json!("cli")), "{audit}");
    assert!(acts[1]["detail"].as_str().unwrap().starts_with("2 done"), "{audit}");
    ground.service.program().run(&["ledger", "--check"]).await.expect_code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_an_act_hits_what_was_seen_and_nothing_else() {
    // At one request a second nearly all of them wait.
    let ground = Ground::new(&[]).await;
    let urls = |site: &str, name: &str, count: usize| -> Vec<String> {
        (0..count).map(|n| format!("http://{site}/page?{name}{n}")).collect()
    };
    let first = ground.submit(urls("a.test", "first", 800)).await;
    ground.submit(urls("b.test", "other", 300)).await;
    let seen = ground.get("/operator/messages/count?state=queued&site=a.test").await;
    let cancel = json!({"filter": {"state": "queued", "site": "a.test"}, "as_of": seen["as_of"]});
    let more = async {
        let mut later = Vec::new();
        for round in 0..5 {
            later.extend(ground.submit(urls("a.test", &format!("later{round}-"), 20)).await);
        }
        later
    };
    let (acted, later) =
        tokio::join!(ground.post("/operator/messages/cancel-matching", &cancel), more);
    let done = acted["done"].as_u64().unwrap();
    assert!(done >= 700, "a window of 64 may be in flight: {acted}");
    let reason = "/operator/messages/count?state=failed&reason=cancelled";
    assert_eq!(ground.get(reason).await["count"], done);
    assert_eq!(ground.get(&format!("{reason}&site=a.test&url=first")).await["count"], done);
    let left = ground.get("/operator/messages/count?site=b.test").await;
    assert_eq!((&left["count"], &left["exact"]), (&json!(300), &json!(true)));

    let cancelled: Vec<Value> = ground.results(usize::try_from(done).unwrap()).await;
    let cancelled: Vec<&str> = cancelled
        .iter()
        .filter(|result| result["status"] == "cancelled")
        .map(|result| result["inbox_message_id"].as_str().unwrap())
        .collect();
    let once: BTreeSet<&str> = cancelled.iter().copied().collect();
    assert_eq!((once.len(), cancelled.len() as u64), (cancelled.len(), done));
    let first: BTreeSet<&str> = first.iter().map(String::as_str).collect();
    assert!(once.is_subset(&first));
    assert!(later.iter().all(|id| !once.contains(id.as_str())));
    ground.service.program().run(&["ledger", "--check"]).await.expect_code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_everything_and_changes_nothing_and_a_caller_sees_nothing() {
    let ground = Ground::new(&[]).await;
    let waiting = ground.submit((0..100).map(|n| format!("http://a.test/page?{n}"))).await;
    let viewer = ground.service.caller("viewer", "viewer").await;
    let caller = ground.service.caller("caller", "caller").await;
    let seen = ground.get("/operator/messages/count?state=queued").await;
    let by_name = json!({ "ids": [waiting.last().unwrap()] });
    let matching = json!({"filter": {"state": "queued"}, "as_of": seen["as_of"]});
    for (path, body) in [
        ("/operator/messages/retry", &by_name),
        ("/operator/messages/cancel", &by_name),
        ("/operator/messages/retry-matching", &matching),
        ("/operator/messages/cancel-matching", &matching),
    ] {
        for token in [&viewer, &caller] {
            ground.send("POST", path, token, Some(body)).await.expect(403);
        }
    }
    for path in ["messages", "messages/count", "failures", "instances", "audit", "ledger"] {
        let path = format!("/operator/{path}");
        ground.send("GET", &path, &viewer, None).await.expect(200);
        ground.send("GET", &path, &caller, None).await.expect(403);
    }
    assert_eq!(ground.get("/operator/messages/count?reason=cancelled").await["count"], 0);
    let acted = ground.post("/operator/messages/cancel", &by_name).await;
    assert_eq!((&acted["done"], &acted["deeds"][0]["deed"]), (&json!(1), &json!("cancelled")));
    let nothing = json!({"filter": {}, "as_of": seen["as_of"]});
    ground
        .send("POST", "/operator/messages/cancel-matching", &ground.service.token, Some(&nothing))
        .await
        .expect(422);
    let instances = ground.get("/operator/instances").await;
    let of_queue = |one: &Value| one["queue"].as_str().unwrap().to_owned();
    let mut queues: Vec<String> =
        instances["instances"].as_array().unwrap().iter().map(of_queue).collect();
    queues.sort();
    assert_eq!(queues, ["crawls", "messages", "webhooks"], "{instances}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_does_not_add_up_is_told() {
    let mut ground = Ground::unpaced().await;
    ground.submit([String::from("http://a.test/page")]).await;
    ground.results(1).await;
    ground.service.stop().await;
    let program = ground.service.program();
    let told = program.run(&["ledger", "--check"]).await.expect_code(0);
    assert!(
        told.stdout.contains("messages") && told.stdout.contains("webhooks"),
        "{}",
        told.stdout
    );
    let file = rusqlite::Connection::open(program.file("fetchwell.db")).unwrap();
    // Somebody takes a job away by hand: the counters still tell of it.
    file.execute("UPDATE queue SET queued = 1, done = 0 WHERE name = 'messages'", []).unwrap();
    program.run(&["ledger"]).await.expect_code(0);
    let told = program.run(&["ledger", "--check"]).await.expect_code(1);
    assert!(told.stderr.contains("the counter says 1 queued, the rows say 0"), "{}", told.stderr);
    file.execute("UPDATE queue SET accepted = 9 WHERE name = 'messages'", []).unwrap();
    let told = program.run(&["ledger"]).await.expect_code(1);
    assert!(told.stderr.contains("9 were accepted, but the states add up to 1"), "{}", told.stderr);
}
