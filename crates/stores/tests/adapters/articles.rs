//! Articles on Redis, as other programs and operators see them. What every store promises is in the
//! conformance suite.

use std::collections::{BTreeMap, BTreeSet};

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::{ArticleFailure, ArticleResult, Articles, Wanted};
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_policy::time::Time;
use fetchwell_stores::StoreClock;
use fetchwell_stores::redis::{RedisArticles, RedisLinks};
use fetchwell_testkit::conformance::servers::{redis_connection, unique, unused_redis};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;

const ATTEMPTED: &str = "rss:canonical_attempted";
const ATTEMPTED_AT: &str = "rss:canonical_attempted_at";

struct Rig {
    address: String,
    articles: RedisArticles,
    /// What another program has.
    line: MultiplexedConnection,
}

impl Rig {
    /// `None`, said aloud, where no server is named.
    async fn if_there() -> Option<Rig> {
        let address = unused_redis().await?;
        let line = redis_connection(&address).await;
        let articles = open(&address).await;
        Some(Rig { address, articles, line })
    }

    async fn ask(&self, command: &str) {
        let mut words = command.split(' ');
        let mut cmd = redis::cmd(words.next().unwrap());
        cmd.arg(words.collect::<Vec<_>>());
        cmd.query_async::<()>(&mut self.line.clone()).await.unwrap();
    }
}

async fn open(address: &str) -> RedisArticles {
    RedisArticles::open(address, StoreClock::Server(Clock::system())).await.unwrap()
}

fn article_result(uid: &str, failure: Option<ArticleFailure>) -> ArticleResult {
    let status = if failure.is_some() { "failure" } else { "success" };
    let fields = BTreeMap::from([("uid", uid), ("status", status), ("category", "a")]);
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let categories = vec!["a".to_owned(), "b".to_owned()];
    let uid = uid.to_owned();
    let fields = fields.collect();
    ArticleResult { uid, categories, fetched_ts: 1_700_000_000, fields, failure }
}

#[tokio::test]
async fn a_user_who_may_touch_these_keys_only_can_do_everything() {
    let Some(rig) = Rig::if_there().await else { return };
    let user = format!("narrow{:x}", unique());
    let keys = "~rss:category_links:* ~rss:article_canonical:* ~rss:articles_by_category:* \
                ~rss:article_canonical_index ~rss:canonical_attempted ~rss:canonical_attempted_at \
                ~rss:canonical_failures ~rss:canonical_site_failures:*";
    rig.ask(&format!("ACL SETUSER {user} on >secret {keys} +@all")).await;
    let address = rig.address.replacen("redis://", &format!("redis://{user}:secret@"), 1);
    let links = RedisLinks::open(&address).await.unwrap();
    links.add("a", &["http://a.test/".to_owned()]).await.unwrap();
    assert_eq!(links.snapshot().await.unwrap().len(), 1);
    let articles = open(&address).await;
    let run = articles.now().await.unwrap();
    let failure = |is_of_site| Some(ArticleFailure { code: "FAIL_HTTP", is_of_site });
    let kept = [
        article_result("1", None),
        article_result("2", failure(true)),
        article_result("3", failure(false)),
    ];
    articles.keep(&kept.iter().collect::<Vec<_>>(), run).await.unwrap();
    let uids = ["1", "2", "3", "4"].map(str::to_owned);
    assert_eq!(articles.pending(&uids, run).await.unwrap(), [false, false, false, true]);
    rig.ask(&format!("SADD {ATTEMPTED} untimed")).await;
    articles.trim().await.unwrap();
    assert!(articles.find("1").await.unwrap().is_some());
    let wanted = Wanted { category: Some("b".to_owned()), status: None, most: 9, text: None };
    assert_eq!(articles.list(&wanted).await.unwrap().len(), 1);
    assert_eq!(articles.count().await.unwrap().by_category.len(), 2);
    rig.ask(&format!("ACL DELUSER {user}")).await;
}

#[tokio::test]
async fn attempts_that_others_noted_count_from_first_sight() {
    let Some(mut rig) = Rig::if_there().await else { return };
    let many: Vec<String> = (0..1_200).map(|n| format!("{n:016x}")).collect();
    let _: () = rig.line.sadd(ATTEMPTED, &many).await.unwrap();
    let _: () = rig.line.zadd(ATTEMPTED_AT, &many[0], 1).await.unwrap();
    let before: (i64, i64) = redis::cmd("TIME").query_async(&mut rig.line).await.unwrap();
    rig.articles.trim().await.unwrap();
    let times: BTreeMap<String, i64> =
        rig.line.zrange_withscores(ATTEMPTED_AT, 0, -1).await.unwrap();
    let members: BTreeSet<String> = rig.line.smembers(ATTEMPTED).await.unwrap();
    assert_eq!(members, many[1..].iter().cloned().collect(), "the first one is long over");
    assert_eq!(times.keys().cloned().collect::<BTreeSet<_>>(), members);
    assert!(times.values().all(|at| *at >= before.0), "the others count from now on");
    // Once seen, they stay as they are.
    let _: () = rig.line.zadd(ATTEMPTED_AT, &many[1], before.0 - 86_400).await.unwrap();
    rig.articles.trim().await.unwrap();
    let kept: i64 = rig.line.zscore(ATTEMPTED_AT, &many[1]).await.unwrap();
    assert_eq!(kept, before.0 - 86_400);
}

#[tokio::test]
async fn what_others_take_out_of_the_set_is_new_again() {
    let Some(rig) = Rig::if_there().await else { return };
    let run = rig.articles.now().await.unwrap();
    let failure = Some(ArticleFailure { code: "FAIL_HTTP", is_of_site: false });
    rig.articles.keep(&[&article_result("1", failure)], run).await.unwrap();
    let uid = ["1".to_owned()];
    assert_eq!(rig.articles.pending(&uid, run).await.unwrap(), [false]);
    rig.ask(&format!("SREM {ATTEMPTED} 1")).await;
    assert_eq!(rig.articles.pending(&uid, run).await.unwrap(), [true]);
}

/// Python's `time.time()` has fractions.
#[tokio::test]
async fn what_others_stored_with_fractions_of_seconds_is_listed() {
    let Some(mut rig) = Rig::if_there().await else { return };
    let now: (i64, i64) = redis::cmd("TIME").query_async(&mut rig.line).await.unwrap();
    for (n, status) in ["success", "failure"].into_iter().enumerate() {
        let key = format!("rss:article_canonical:{n}");
        let at = format!("{}.25", now.0 - 10);
        let fields = [("status", status), ("fetched_ts", at.as_str()), ("category", "a")];
        let _: () = rig.line.hset_multiple(key, &fields).await.unwrap();
    }
    rig.ask(&format!("ZADD rss:article_canonical_index {}.25 0", now.0 - 10)).await;
    rig.ask(&format!("ZADD rss:canonical_failures {}.75 1:FAIL_HTTP", now.0 - 10)).await;
    let wanted = Wanted { category: None, status: None, most: 9, text: None };
    let listed = rig.articles.list(&wanted).await.unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    let whole = (now.0 - 10).to_string();
    assert!(listed.iter().all(|fields| fields["fetched_ts"] == whole), "{listed:?}");
    rig.ask(&format!("ZADD {ATTEMPTED_AT} {}.5 0", now.0)).await;
    rig.ask(&format!("SADD {ATTEMPTED} 0")).await;
    assert_eq!(
        rig.articles.pending(&["0".to_owned()], Time::from_secs(now.0)).await.unwrap(),
        [false]
    );
    rig.articles.trim().await.unwrap();
}
