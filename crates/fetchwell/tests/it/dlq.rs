//! `fetchwell dlq`, on both stores.

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::url::WebUrl;
use fetchwell_testkit::conformance::queue::audited;
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::scene::{Scene, StoreKind};
use serde_json::{Value, json};

const GONE: &str = "the server answered 404";

/// A program, and the queue that it finds.
struct Place {
    scene: Scene,
    queue: Box<dyn UrlQueue>,
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).store_variable("PAGE_FETCHER_REDIS_URL")
}

/// With dead letters: twelve of one group, one of another, one that is no URL.
async fn place(store: StoreKind) -> Option<Place> {
    let scene = Scene::on(store, program(), []).await?;
    let queue = scene.queue("crawler_queue").await;
    let mut urls: Vec<String> = (10..22).map(|n| format!("http://a.test/{n}")).collect();
    urls.extend(["http://b.test/x".to_owned(), "nonsense".to_owned()]);
    let job = |url: &String| {
        let site = WebUrl::parse(url).ok().map(|url| url.site());
        let lane = Lane::default();
        let payload = Vec::new();
        NewJob::now(Job { url: url.clone(), site, lane, payload, deadline: None })
    };
    queue.enqueue(urls.iter().map(job).collect()).await.unwrap();
    let worker = queue.dead_letter_worker();
    worker.renew().await.unwrap();
    let demand = Demand { most: 100, most_per_site: 100, ..Demand::default() };
    let Taken::Jobs(leases) = worker.take(&demand).await.unwrap() else { panic!("none") };
    let settlement = Settlement::Dead { reason: GONE.to_owned() };
    let details = Some(r#"{"failure":"url_specific","attempts":3}"#.to_owned());
    let ends: Vec<_> = leases.iter().map(|lease| (lease, &settlement, details.clone())).collect();
    worker.settle_with(&ends).await.unwrap();
    Some(Place { scene, queue })
}

impl Place {
    async fn run(&self, arguments: &[&str], code: i32) -> (String, String) {
        let ended = self.scene.program.run(arguments).await.expect_code(code);
        (ended.stdout, ended.stderr)
    }

    async fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let (stdout, _) = self.run(&[arguments, &["--json"]].concat(), 0).await;
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn dead(&self) -> i64 {
        let ledger = audited(&*self.queue).await;
        assert!(ledger.balances(), "{ledger:?}");
        ledger.dead
    }
}

async fn letters_are_listed_and_shown(place: Place) {
    let groups = place.json(&["dlq", "list"]).await;
    let largest = json!({
        "reason": GONE, "site": "a.test", "letters": 12, "sample_url": "http://a.test/10",
    });
    assert_eq!((groups.len(), &groups[0]), (3, &largest));
    let (text, _) = place.run(&["dlq", "list", "--limit", "1"], 0).await;
    assert!(text.contains("a.test") && text.contains("and 2 more"), "{text}");
    let of_site = place.json(&["dlq", "list", "--site", "A.test", "--limit", "11"]).await;
    assert_eq!(of_site.len(), 11);
    assert_eq!(place.json(&["dlq", "list", "--reason", "answered"]).await.len(), 14);
    assert_eq!(place.json(&["dlq", "list", "--site", "-", "--groups"]).await.len(), 1);
    let expected = json!({
        "url": "nonsense", "site": "", "reason": GONE,
        "details": {"failure": "url_specific", "attempts": 3},
    });
    assert_eq!(place.json(&["dlq", "show", "nonsense"]).await, [expected]);
    let (text, _) = place.run(&["dlq", "show", "http://b.test/x"], 0).await;
    assert!(text.contains("attempts") && text.contains(GONE), "{text}");
    let (_, said) = place.run(&["dlq", "show", "http://a.test/"], 4).await;
    assert!(said.contains("http://a.test/"), "{said}");
}

async fn letters_are_retried_and_dropped(place: Place) {
    let group = ["--reason", GONE, "--site", "a.test"];
    let (text, _) = place.run(&[&["dlq", "retry", "--canary"], &group[..]].concat(), 0).await;
    assert_eq!((text.as_str(), place.dead().await), ("retried 10\n", 4));
    let (text, _) = place.run(&["dlq", "drop", "http://b.test/x"], 0).await;
    assert_eq!((text.as_str(), place.dead().await), ("dropped 1\n", 3));
    // Once more it is not there, and no other group is taken for it.
    let (_, said) = place.run(&["dlq", "retry", "http://b.test/x"], 4).await;
    assert!(said.contains("http://b.test/x"), "{said}");
    let other = ["dlq", "drop", "--reason", "the server answered", "--site", "a.test"];
    place.run(&other, 4).await;
    assert_eq!(place.json(&["dlq", "retry", "--all"]).await, [json!({"retried": 3})]);
    assert_eq!(place.json(&["dlq", "drop", "--all"]).await, [json!({"dropped": 0})]);
    let ledger = audited(&*place.queue).await;
    assert_eq!((ledger.queued, ledger.skipped, ledger.dead), (13, 1, 0));
}

async fn an_export_has_every_letter(place: Place) {
    let (lines, _) = place.run(&["dlq", "export"], 0).await;
    assert_eq!(lines.lines().count(), 14);
    place.run(&["dlq", "export", "letters.jsonl"], 0).await;
    assert_eq!(std::fs::read_to_string(place.scene.program.file("letters.jsonl")).unwrap(), lines);
    let (_, said) = place.run(&["dlq", "export", "no/such/folder/x"], 2).await;
    assert!(said.contains("no/such/folder/x"), "{said}");
}

on_both_stores!(
    place:
    letters_are_listed_and_shown,
    letters_are_retried_and_dropped,
    an_export_has_every_letter,
);

#[tokio::test]
async fn what_is_typed_wrongly_is_said() {
    let program = program();
    for arguments in [
        &["dlq", "retry"][..],
        &["dlq", "retry", "--reason", "x"],
        &["dlq", "retry", "--all", "--canary"],
        &["dlq", "drop", "http://a.test/", "--all"],
        &["dlq", "list", "--site", "no site"],
        &["dlq", "list", "--store", "postgres://a/b"],
    ] {
        program.run(arguments).await.expect_code(2);
    }
    let ended = program.run(&["dlq", "list", "--store", "redis://127.0.0.1:1"]).await;
    ended.expect_code(5);
    let ended = program.run(&["dlq", "list"]).await.expect_code(0);
    assert_eq!(ended.stdout, "there are no dead letters\n");
}
