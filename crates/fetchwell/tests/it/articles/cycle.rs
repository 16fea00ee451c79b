//! From links to articles, and not again.

use fetchwell_doors::articles::uid;
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::OwnServer;

use super::door::Door;

const STORY: &str = r#"<!doctype html><html lang="en"><head><title>Rain at last</title>
<meta name="author" content="A. Writer"><meta property="article:published_time" content="2026-11-01T08:00:00Z">
<script>var secret = "SCRIPTED";</script><style>.styled { color: red }</style></head><body>
<nav><a href="/">Home</a></nav><noscript>NOSCRIPTED</noscript>
<article><h1>Rain at last</h1><img src="/rain.jpg">
<p>Short one.</p>
<p>After a dry summer the rain came back to the valley on Sunday, and with it the frogs.</p>
<p>Nobody had expected so many of them, least of all the mayor, who had to walk to work.</p>
</article></body></html>"#;

#[tokio::test(flavor = "multi_thread")]
async fn links_become_articles_once() {
    let news = SiteScript::new("news.test")
        .text("/story", "text/html; charset=utf-8", STORY)
        .redirect("/old", "/story");
    for door in Door::on_each_store(&[news]).await {
        door.add("weather", &["http://news.test/story", "http://news.test/1"]).await;
        door.add("animals", &["http://news.test/story", "http://news.test/old"]).await;
        let said = door.run().await.stderr;

        let article = door.find("http://news.test/story").await.unwrap();
        let field = |name: &str| article[name].as_str();
        assert_eq!(field("uid"), "2e3ff4b357fc5ef8", "the first 16 digits of the sha1");
        assert_eq!((field("status"), field("category")), ("success", "animals"));
        assert_eq!(field("title"), "Rain at last");
        assert!(field("abstract").starts_with("After a dry summer"), "{}", field("abstract"));
        assert_eq!(field("image"), "http://news.test/rain.jpg");
        assert_eq!((field("author"), field("lang")), ("A. Writer", "en"));
        assert_eq!((field("site"), field("final_url")), ("news.test", field("url")));
        assert_eq!(field("raw_len"), STORY.chars().count().to_string());
        assert_eq!(field("text_len"), field("clean_text").chars().count().to_string());
        for hidden in ["SCRIPTED", "styled", "Home"] {
            assert!(!field("clean_text").contains(hidden), "{hidden}");
        }
        let moved = door.find("http://news.test/old").await.unwrap();
        assert_eq!(moved["final_url"], "http://news.test/story");
        assert_eq!(door.find("http://news.test/1").await.unwrap()["image"], "", "absent is empty");

        let counts = door.counts().await;
        assert_eq!((counts.articles, counts.attempted), (3, 3));
        let by_category = [("animals".to_owned(), 2), ("weather".to_owned(), 2)];
        assert_eq!(counts.by_category, by_category.into(), "all categories, not only the first");

        for line in [
            "[canon] 🌐 Fetching → http://news.test/story\n",
            "[canon] ✅ Stored canonical → 2e3ff4b357fc5ef8\n",
            &format!("[canon] ✅ Stored canonical → {}\n", uid("http://news.test/1")),
        ] {
            assert!(said.contains(line), "no {line:?} in\n{said}");
        }
        nothing_is_asked_for_again(&door).await;

        // Only what is new.
        let before = door.asked();
        door.add("weather", &["http://news.test/2"]).await;
        door.run().await;
        let mut expected = before;
        expected.insert("http://news.test/2".to_owned(), 1);
        assert_eq!(door.asked(), expected);
    }
}

/// Neither a page nor a robots.txt; and nothing is said of it.
async fn nothing_is_asked_for_again(door: &Door) {
    let before = door.scene.origin.hits().len();
    let ended = door.run().await;
    assert_eq!(door.scene.origin.hits().len(), before);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_links_there_is_nothing_to_do() {
    for door in Door::on_each_store(&[]).await {
        nothing_is_asked_for_again(&door).await;
    }
}

/// What a server forgets matters to whoever has something for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_forgetful_server_is_warned_of_once_and_not_where_there_is_nothing_to_do() {
    let Some(server) = OwnServer::start("redis").await else { return };
    let door = Door::on_server(&[SiteScript::new("news.test")], server.url().to_owned());
    let mut forget = redis::cmd("CONFIG");
    forget.arg("SET").arg("appendonly").arg("no");
    forget.query_async::<()>(&mut door.scene.redis().await).await.unwrap();
    nothing_is_asked_for_again(&door).await;
    door.add("news", &["http://news.test/1"]).await;
    let said = door.run().await.stderr;
    assert_eq!(said.matches("appendonly no").count(), 1, "{said}");
    nothing_is_asked_for_again(&door).await;
}
