//! What other programs find in Redis.

use std::collections::BTreeSet;

use fetchwell_doors::articles::uid;
use fetchwell_simweb::SiteScript;
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;

use super::door::Door;

const GOOD: &str = "http://a.test/good";
const BAD: &str = "http://a.test/bad";
const DAY_S: i64 = 86_400;

async fn door() -> Option<Door> {
    let site = SiteScript::new("a.test").status("/bad", 404).status("/down", 503);
    Door::on_redis(&[site]).await
}

async fn ttl_days(line: &mut MultiplexedConnection, key: &str) -> f64 {
    let secs: i64 = line.ttl(key).await.unwrap();
    assert!(secs > 0, "{key} has none: {secs}");
    secs as f64 / DAY_S as f64
}

/// It was set a moment ago.
async fn assert_lives_for(line: &mut MultiplexedConnection, key: &str, days: f64) {
    let left = ttl_days(line, key).await;
    assert!(left <= days && left > days - 0.01, "{key} lives for {left} days");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_types_members_and_lives_are_those_of_the_contract() {
    let Some(door) = door().await else { return };
    let mut line = door.scene.redis().await;
    let urls = [GOOD, BAD, "http://a.test/down"];
    let _: () = line.sadd("rss:category_links:news", &urls[..]).await.unwrap();
    let _: () = line.sadd("rss:category_links:world", GOOD).await.unwrap();
    door.run().await;

    let good = uid(urls[0]);
    let bad = uid(urls[1]);
    let down = uid(urls[2]);
    for (uid, status) in [(&good, "success"), (&bad, "failure"), (&down, "failure")] {
        let key = format!("rss:article_canonical:{uid}");
        assert_eq!(line.hget::<_, _, String>(&key, "status").await.unwrap(), status);
        assert_lives_for(&mut line, &key, 7.0).await;
    }
    for category in ["news", "world"] {
        let key = format!("rss:articles_by_category:{category}");
        let members: BTreeSet<String> = line.smembers(&key).await.unwrap();
        assert_eq!(members, [good.clone()].into());
        assert_lives_for(&mut line, &key, 7.0).await;
    }
    let fetched_ts: i64 =
        line.hget(format!("rss:article_canonical:{good}"), "fetched_ts").await.unwrap();
    let index: Vec<(String, i64)> =
        line.zrange_withscores("rss:article_canonical_index", 0, -1).await.unwrap();
    assert_eq!(index, [(good.clone(), fetched_ts)]);
    assert_eq!(line.ttl::<_, i64>("rss:article_canonical_index").await.unwrap(), -1);

    let attempted: BTreeSet<String> = line.smembers("rss:canonical_attempted").await.unwrap();
    assert_eq!(attempted, [good.clone(), bad.clone()].into(), "not the one whose site failed");
    assert_lives_for(&mut line, "rss:canonical_attempted", 30.0).await;
    let times: Vec<(String, i64)> =
        line.zrange_withscores("rss:canonical_attempted_at", 0, -1).await.unwrap();
    assert!(times.len() == 2 && times.iter().all(|(_, at)| (at - fetched_ts).abs() < 60));

    let failures: BTreeSet<String> = line.zrange("rss:canonical_failures", 0, -1).await.unwrap();
    assert_eq!(failures, [format!("{bad}:FAIL_HTTP"), format!("{down}:FAIL_HTTP")].into());
    assert_eq!(line.ttl::<_, i64>("rss:canonical_failures").await.unwrap(), -1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lives_are_renewed_by_each_article() {
    let Some(door) = door().await else { return };
    let mut line = door.scene.redis().await;
    let renewed = ["rss:articles_by_category:news", "rss:canonical_attempted"];
    door.add("news", &[GOOD]).await;
    door.run().await;
    for key in renewed {
        let _: () = line.expire(key, DAY_S).await.unwrap();
    }
    door.add("news", &["http://a.test/another"]).await;
    door.run().await;
    assert_lives_for(&mut line, renewed[0], 7.0).await;
    assert_lives_for(&mut line, renewed[1], 30.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_of_29_days_ago_counts_and_one_of_31_does_not() {
    let Some(door) = door().await else { return };
    let mut line = door.scene.redis().await;
    let now: (i64, i64) = redis::cmd("TIME").query_async(&mut line).await.unwrap();
    let urls = ["http://a.test/29", "http://a.test/31", "http://a.test/unknown"];
    for url in urls {
        let _: () = line.sadd("rss:canonical_attempted", uid(url)).await.unwrap();
    }
    for (url, days) in [(urls[0], 29), (urls[1], 31)] {
        let at = now.0 - days * DAY_S;
        let _: () = line.zadd("rss:canonical_attempted_at", uid(url), at).await.unwrap();
    }
    door.add("news", &urls).await;
    door.run().await;
    assert_eq!(door.asked().into_keys().collect::<Vec<_>>(), [urls[1]]);
    let first_seen: i64 = line.zscore("rss:canonical_attempted_at", uid(urls[2])).await.unwrap();
    assert!(first_seen >= now.0, "without a time it counts from first sight");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_not_attempted_is_new_though_a_failure_is_kept_of_it() {
    let Some(door) = door().await else { return };
    let mut line = door.scene.redis().await;
    let key = format!("rss:article_canonical:{}", uid(GOOD));
    let _: () = line.hset(&key, "status", "failure").await.unwrap();
    door.add("news", &[GOOD]).await;
    door.run().await;
    assert_eq!(door.asked().into_keys().collect::<Vec<_>>(), [GOOD]);
    assert!(line.sismember::<_, _, bool>("rss:canonical_attempted", uid(GOOD)).await.unwrap());
}
