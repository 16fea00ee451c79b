//! Cycles of feeds and runs.

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;

use super::door::Door;

const FEED: &str = r#"<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>
<item><title>One</title><link>http://news.test/1?utm_source=rss</link></item>
<item><title>Two</title><link>http://news.test/2</link></item></channel></rss>"#;

#[tokio::test(flavor = "multi_thread")]
async fn feeds_become_articles_until_it_is_stopped() {
    let news = SiteScript::new("news.test").text("/rss", "application/rss+xml", FEED);
    for door in Door::on_each_store(&[news]).await {
        let door = door.variable("FETCHWELL_ARTICLES__WATCH_INTERVAL", "200ms");
        let add =
            ["feeds", "add", "http://news.test/rss", "--category", "news", "--interval", "1h"];
        door.scene.program.run(&add).await.expect_code(0);
        let watch = door.scene.program.start(&["articles", "watch"]);
        door.scene.origin.until_page_hits(3).await;
        // What comes by another way is found in a later cycle.
        door.add("other", &["http://news.test/3"]).await;
        door.scene.origin.until_page_hits(4).await;
        watch.terminate().await;
        watch.wait(DEADLINE).await.expect_code(0);
        let asked = door.asked();
        assert!(asked.values().all(|times| *times == 1), "{asked:?}");
        assert_eq!(asked.len(), 4);
        let counts = door.counts().await;
        let by_category = [("news".to_owned(), 2), ("other".to_owned(), 1)];
        assert_eq!((counts.articles, counts.by_category), (3, by_category.into()));
        assert!(door.find("http://news.test/1").await.is_some(), "clean of what tracks readers");
    }
}
