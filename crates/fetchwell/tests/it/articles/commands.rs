//! What people are told.

use fetchwell_doors::articles::uid;
use fetchwell_simweb::SiteScript;
use serde_json::{Value, json};

use super::door::Door;

const GOOD: &str = "http://a.test/good";

async fn doors_after_a_run() -> Vec<Door> {
    let site = SiteScript::new("a.test").status("/gone", 404);
    let doors = Door::on_each_store(&[site]).await;
    for door in &doors {
        door.add("news", &[GOOD, "http://a.test/gone"]).await;
        door.add("world", &[GOOD]).await;
        door.run().await;
    }
    doors
}

fn lines(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_and_failures_are_listed() {
    for door in doors_after_a_run().await {
        let listed = async |arguments: &[&str]| {
            let said = door.say(&[&["list", "--json"], arguments].concat()).await;
            let urls =
                lines(&said).into_iter().map(|line| line["url"].as_str().unwrap().to_owned());
            urls.collect::<std::collections::BTreeSet<_>>()
        };
        let gone = "http://a.test/gone".to_owned();
        assert_eq!(listed(&[]).await, [GOOD.to_owned(), gone.clone()].into());
        assert_eq!(listed(&["--category", "world"]).await, [GOOD.to_owned()].into());
        assert_eq!(listed(&["--status", "failure"]).await, [gone].into());
        assert_eq!(listed(&["--limit", "1"]).await.len(), 1);
        let table = door.say(&["list"]).await;
        assert!(table.contains("FAIL_HTTP") && table.contains(&uid(GOOD)), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_article_is_shown_by_its_name_or_its_url() {
    for door in doors_after_a_run().await {
        let text = door.say(&["show", GOOD]).await;
        assert!(text.contains("Paragraph 1") && text.contains(&uid(GOOD)), "{text}");
        assert_eq!(door.say(&["show", &uid(GOOD)]).await, text);
        let fields = &lines(&door.say(&["show", GOOD, "--json"]).await)[0];
        assert_eq!((&fields["status"], &fields["category"]), (&json!("success"), &json!("news")));
        assert!(fields["text_len"].is_u64() && fields["fetched_ts"].is_u64(), "{fields}");
        let markdown = door.say(&["show", GOOD, "--markdown"]).await;
        assert_eq!(markdown.trim_end(), fields["markdown"].as_str().unwrap().trim_end());
        door.scene.program.run(&["articles", "show", "http://a.test/none"]).await.expect_code(4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_count_what_there_is() {
    for door in doors_after_a_run().await {
        let expected = json!({
            "articles": 1, "attempted": 2, "failures": {"FAIL_HTTP": 1},
            "categories": {
                "news": {"links": 2, "articles": 1}, "world": {"links": 1, "articles": 1},
            },
        });
        assert_eq!(lines(&door.say(&["stats", "--json"]).await), [expected]);
        assert!(door.say(&["stats"]).await.contains("FAIL_HTTP  1"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_store_is_refused_with_the_mend() {
    let doors = Door::on_each_store(&[]).await;
    let arguments = ["--store", "postgres://127.0.0.1/x", "articles", "run"];
    let ended = doors[0].scene.program.run(&arguments).await.expect_code(2);
    assert!(ended.stderr.contains("--store redis://"), "{}", ended.stderr);
}
