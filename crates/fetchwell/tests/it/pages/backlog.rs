//! How many URLs wait, wherever they do: by the key, by the metric and by `pages status`. And that all of them can be
//! had back.

use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use fetchwell_testkit::scene::StoreKind;
use redis::AsyncCommands;
use serde_json::Value;

use super::door::Door;

const URLS: usize = 20;

/// A slow site with this rate, and URLs that wait for it. A new Redis knows nothing of the site's past, so even its
/// robots.txt waits there for an interval.
async fn door(store: StoreKind, rate: &str) -> Option<Door> {
    let slow = SiteScript::new("slow.test").slow(Duration::from_secs(3));
    let door = Door::on(store, [slow]).await?;
    let urls: Vec<String> = (0..URLS).map(|page| format!("http://slow.test/{page}")).collect();
    door.add(&urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let door = door
        .variable("FETCHWELL_RATE", rate)
        .variable("FETCHWELL_LEASE__HEARTBEAT", "300ms")
        .variable("FETCHWELL_LEASE__TTL", "5s");
    Some(door)
}

async fn status(door: &Door) -> Value {
    let said = door.scene.program.run(&["pages", "status", "--json"]).await.expect_code(0).stdout;
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

async fn length_of_the_list(door: &Door) -> usize {
    door.scene.redis().await.llen("crawler_queue").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn key_metric_and_command_say_how_many_wait_though_the_list_is_empty() {
    for store in [StoreKind::Sqlite, StoreKind::Redis] {
        let Some(door) = door(store, "0.01").await else { continue };
        assert_eq!(status(&door).await["waiting"], URLS, "before anybody has come");
        let running = door.start().await;
        // With SQLite the first is under way, or done. The turn of the others is far off.
        let left = match store {
            StoreKind::Redis => URLS,
            _ => URLS - 1,
        };
        eventually("pages to be taken in", async || match store {
            StoreKind::Redis => length_of_the_list(&door).await == 0,
            _ => door.scene.origin.page_hits() > 0,
        })
        .await;
        running.until("input_queue_size", |waiting| waiting == left as f64).await;
        let told = status(&door).await;
        assert_eq!(told["waiting"], left, "{told}");
        assert!(told["oldest_waiting_seconds"].is_f64(), "{told}");
        if store == StoreKind::Redis {
            let size: String = door.scene.redis().await.get("crawler_queue:size").await.unwrap();
            assert_eq!(size, left.to_string());
        }
        let text = door.scene.program.run(&["pages", "status"]).await.expect_code(0).stdout;
        let line = text.lines().find(|line| line.contains("waiting for crawler_queue"));
        assert!(line.is_some_and(|line| line.starts_with(&left.to_string())), "{text}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unpark_waits_for_what_a_killed_process_holds() {
    let Some(door) = door(StoreKind::Redis, "0.2").await else { return };
    let running = door.start().await;
    door.scene.origin.until_page_hits(1).await;
    running.kill().await;
    let unparked = door.scene.program.run(&["pages", "unpark"]).await.expect_code(0);
    assert!(unparked.stderr.contains("waiting up to"), "{}", unparked.stderr);
    let ledger = door.ledger().await;
    let left = URLS - usize::try_from(ledger.done).unwrap();
    assert_eq!(length_of_the_list(&door).await, left, "{ledger:?}");
    assert_eq!(unparked.stdout, format!("put {left} back on crawler_queue\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_clean_exit_returns_what_a_killed_process_holds() {
    let Some(door) = door(StoreKind::Redis, "0.2").await else { return };
    let killed = door.start().await;
    door.scene.origin.until_page_hits(1).await;
    killed.kill().await;
    let last = door.start().await;
    last.stop().await;
    let ledger = door.ledger().await;
    assert_eq!(ledger.unfinished(), 0, "{ledger:?}");
    let left = URLS - usize::try_from(ledger.done).unwrap();
    assert_eq!(length_of_the_list(&door).await, left, "{ledger:?}\n{}", door.log());
}

/// The list of dead letters is everybody's.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_another_client_pops_is_gone_for_us() {
    let Some(door) = Door::on(StoreKind::Redis, []).await else { return };
    let mut connection = door.scene.redis().await;
    let _: u64 = connection.rpush("crawler_queue", &["nonsense", "rubbish"]).await.unwrap();
    let running = door.start().await;
    running.until("dlq_size", |dead| dead == 2.0).await;
    let popped: String = connection.lpop("page_fetcher_dlq", None).await.unwrap();
    // The process at work takes the details away by itself.
    let details = eventually_ok("the details to go", async || {
        let known: Vec<String> =
            connection.clone().hkeys("page_fetcher_dlq:details").await.unwrap();
        if known.contains(&popped) { Err(format!("{known:?}")) } else { Ok(known) }
    })
    .await;
    assert_eq!(details.len(), 1, "{details:?}");
    running.stop().await;
    let retried = door.scene.program.run(&["dlq", "retry", "--all"]).await.expect_code(0).stdout;
    assert_eq!(retried, "retried 1\n");
    let ledger = door.ledger().await;
    assert_eq!((ledger.queued, ledger.skipped, ledger.dead), (1, 1, 0), "{ledger:?}");
}
