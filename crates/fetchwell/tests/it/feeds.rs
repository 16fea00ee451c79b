//! `fetchwell feeds`, on both stores.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_simweb::{OutageKind, SiteScript};
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::scene::{Scene, StoreKind};
use redis::AsyncCommands;
use serde_json::Value;

const RSS: &str = "application/rss+xml";

/// A program that reads feeds on a simulated web.
struct Place {
    scene: Scene,
}

fn rss(links: &[&str]) -> String {
    let items = links.iter().map(|link| format!("<item><link>{link}</link></item>"));
    format!("<rss version='2.0'><channel>{}</channel></rss>", items.collect::<String>())
}

/// A feed of each kind; two of their links mean the same page.
fn news() -> SiteScript {
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/atom'/></entry>\
                <entry><link href='/both#xtor=1'/></entry></feed>";
    let rdf =
        "<rdf:RDF xmlns:rdf='x'><channel/><item><link>http://news.test/rdf</link></item></rdf:RDF>";
    let json =
        r#"{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"/json?fbclid=1"}]}"#;
    let list = rss(&["/rss?utm_source=rss&amp;id=1", "/both?utm_medium=rss"]);
    SiteScript::new("news.test")
        .tagged("/feed.rss", RSS, &list, "\"v1\"")
        .tagged("/feed.atom", "application/atom+xml", atom, "\"v1\"")
        .text("/feed.rdf", "application/xml", rdf)
        .text("/feed.json", "application/feed+json", json)
        .text(
            "/page",
            "text/html",
            "<html><head><link rel=alternate type=application/rss+xml href=/feed.rss>",
        )
}

/// Feeds with something wrong.
fn trouble() -> SiteScript {
    SiteScript::new("bad.test")
        .robots("User-agent: *\nDisallow: /private")
        .status("/gone", 410)
        .status("/missing", 404)
        .moved("/old", "http://news.test/feed.rss")
        .text("/cut", RSS, &rss(&["http://bad.test/1"]).replace("</channel></rss>", "<item><lin"))
}

/// A site that rests: all of it is left alone for as long as it asks.
fn resting() -> SiteScript {
    SiteScript::new("resting.test").busy("/busy", 503, Duration::from_secs(5 * 3_600))
}

/// A service that sends its visitors on; its feed has links to others that do, too.
fn burner() -> SiteScript {
    let links = [
        "http://burner.test/~r/1",
        "http://burner.test/~r/none",
        "http://burner.test/own",
        "http://tracker.test/to/own",
        "http://tracker.test/story",
        "http://tracker.test/lost",
    ];
    SiteScript::new("burner.test")
        .text("/feed", RSS, &rss(&links))
        .redirect("/~r/1", "http://news.test/resolved?utm_source=feedburner")
        .status("/~r/none", 404)
}

/// A site of which nobody knows that it sends some of its visitors on.
fn tracker() -> SiteScript {
    SiteScript::new("tracker.test")
        .redirect("/to/own", "http://burner.test/own?utm_source=tracker")
        .status("/lost", 404)
}

/// A feed that can be read at the third attempt.
fn shaky() -> SiteScript {
    let list = rss(&["http://shaky.test/1"]);
    SiteScript::new("shaky.test").fails_first("/shaky", 2, 503).text("/shaky", RSS, &list)
}

/// A site that is down for longer than any test runs.
fn dead() -> SiteScript {
    let for_ever = Duration::ZERO..Duration::from_secs(36_000);
    SiteScript::new("dead.test").outage(for_ever, OutageKind::Refuse)
}

fn sites() -> [SiteScript; 7] {
    [news(), trouble(), resting(), burner(), tracker(), shaky(), dead()]
}

fn unpaced() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).flags(["--rate", "0"])
}

async fn place(store: StoreKind) -> Option<Place> {
    Some(Place { scene: Scene::on(store, unpaced(), sites()).await? })
}

impl Place {
    async fn ok(&self, arguments: &[&str]) -> String {
        self.scene.program.run(&[&["feeds"], arguments].concat()).await.expect_code(0).stdout
    }

    async fn add(&self, category: &str, urls: &[&str]) {
        self.ok(&[&["add", "--category", category], urls].concat()).await;
    }

    /// Feeds that are read once an hour, not at each ingest.
    async fn add_hourly(&self, category: &str, urls: &[&str]) {
        self.ok(&[&["add", "--interval", "1h", "--category", category], urls].concat()).await;
    }

    /// Reads what is due, and gives the counts.
    async fn ingest(&self, arguments: &[&str]) -> Value {
        let said = self.ok(&[&["ingest", "--json"], arguments].concat()).await;
        serde_json::from_str(&said).unwrap()
    }

    /// All links, by category, without what all have in common.
    async fn gathered(&self) -> BTreeMap<String, Vec<String>> {
        let sets = self.scene.links().await.snapshot().await.unwrap();
        let name = |url: String| url.replace("http://", "");
        sets.into_iter()
            .map(|set| (set.category, set.urls.into_iter().map(name).collect()))
            .collect()
    }

    /// What `list` says of a feed.
    async fn listed(&self, url: &str) -> Value {
        let all = self.ok(&["list", "--json"]).await;
        let mut feeds = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        feeds.find(|feed| feed["url"] == url).unwrap_or_else(|| panic!("{url} is not in {all}"))
    }

    /// The statuses that were answered at a path, in order.
    fn statuses(&self, path: &str) -> Vec<u16> {
        let hits = self.scene.origin.hits();
        hits.iter().filter(|hit| &*hit.path == path).filter_map(|hit| hit.status).collect()
    }
}

async fn each_kind_of_feed_gives_clean_links_and_each_page_is_there_once(place: Place) {
    let config = "[categories.news]\nfeeds = [\"http://news.test/feed.rss\", \"http://news.test/feed.atom\"]\n";
    std::fs::write(place.scene.program.file("fetchwell.toml"), config).unwrap();
    place.add("other", &["http://news.test/feed.rdf", "http://news.test/feed.json"]).await;
    let counts = place.ingest(&[]).await;
    assert_eq!((&counts["read"], &counts["new_links"]), (&4.into(), &5.into()), "{counts}");
    let gathered = place.gathered().await;
    assert_eq!(gathered["news"], ["news.test/atom", "news.test/both", "news.test/rss?id=1"]);
    assert_eq!(gathered["other"], ["news.test/json", "news.test/rdf"]);
    if place.scene.redis_url().is_some() {
        let mut line = place.scene.redis().await;
        let key = "rss:category_links:news";
        let left_s: i64 = line.ttl(key).await.unwrap();
        assert!((47 * 3_600..=48 * 3_600).contains(&left_s), "{left_s}");
        let _: bool = line.expire(key, 100).await.unwrap();
        place.ok(&["add", "--category", "news", "http://news.test/feed.rdf"]).await;
        place.ingest(&[]).await;
        let left_s: i64 = line.ttl(key).await.unwrap();
        assert!(left_s > 47 * 3_600, "an add renews it: {left_s}");
    }
}

async fn what_was_read_is_not_due_and_then_asked_for_news_only(place: Place) {
    place.add_hourly("news", &["http://news.test/feed.rss"]).await;
    assert_eq!(place.ingest(&[]).await["new_links"], 2);
    let hits = place.scene.origin.hits().len();
    assert_eq!(place.ingest(&[]).await["not_due"], 1);
    assert_eq!(place.scene.origin.hits().len(), hits, "nobody is asked");
    let counts = place.ingest(&["--all"]).await;
    assert_eq!((&counts["unchanged"], &counts["new_links"]), (&1.into(), &0.into()), "{counts}");
    assert_eq!(place.statuses("/feed.rss"), [200, 304]);
    // A category that has not had it gets all of it, at once; and one request does for both.
    place.add("world", &["http://news.test/feed.rss"]).await;
    assert_eq!(place.ingest(&[]).await["new_links"], 2);
    assert_eq!(place.statuses("/feed.rss"), [200, 304, 200]);
    assert_eq!(place.gathered().await["news"], place.gathered().await["world"]);
    // Without an interval, as that category has it, each ingest asks for news.
    place.ingest(&[]).await;
    assert_eq!(place.statuses("/feed.rss"), [200, 304, 200, 304]);
}

async fn trouble_with_single_feeds_is_remembered_and_no_error(place: Place) {
    let at = |path: &str| format!("http://bad.test/{path}");
    let feeds = ["gone", "missing", "private", "old", "cut"].map(at);
    place.add_hourly("news", &feeds.each_ref().map(String::as_str)).await;
    place.add_hourly("news", &["http://resting.test/busy"]).await;
    let ended = place.scene.program.run(&["feeds", "ingest", "--json"]).await.expect_code(0);
    let counts: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&counts["read"], &counts["failed"], &counts["disallowed"]),
        (&2.into(), &3.into(), &1.into())
    );
    for said in ["truncated", "moved permanently", "robots.txt disallows it", "410", "404"] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
    assert!(place.statuses("/private").is_empty());
    assert_eq!(
        place.gathered().await["news"],
        ["bad.test/1", "news.test/both", "news.test/rss?id=1"]
    );
    let moved = place.listed(&at("old")).await;
    assert_eq!(moved["moved_to"], "http://news.test/feed.rss");
    let busy = place.listed("http://resting.test/busy").await;
    let due: jiff::Timestamp = busy["next_due"].as_str().unwrap().parse().unwrap();
    let hours = due.duration_since(jiff::Timestamp::now()).as_hours();
    assert!((4..=5).contains(&hours), "what the server asked for: {busy}");
    assert_eq!((&busy["failures"], &busy["last_read"]), (&1.into(), &Value::Null));
    let gone = place.listed(&at("gone")).await;
    assert!(gone["paused"].as_str().unwrap().contains("410") && gone["next_due"].is_null());
    // Nobody is asked again before its time; whoever adds a feed anew has it read.
    assert_eq!(place.ingest(&[]).await["not_due"], 6);
    place.add_hourly("news", &[&at("gone")]).await;
    assert_eq!(place.ingest(&[]).await["failed"], 1);
    assert_eq!(place.statuses("/gone"), [410, 410]);
    assert_eq!(place.statuses("/busy"), [503]);
}

async fn links_are_asked_once_where_they_lead_and_pages_at_home_never(place: Place) {
    place.add("news", &["http://burner.test/feed"]).await;
    assert_eq!(place.ingest(&[]).await["new_links"], 5);
    let pages = [
        "burner.test/own",
        "burner.test/~r/none",
        "news.test/resolved",
        "tracker.test/lost",
        "tracker.test/story",
    ];
    assert_eq!(place.gathered().await["news"], pages);
    let counts = place.ingest(&["--all"]).await;
    assert_eq!((&counts["read"], &counts["new_links"]), (&1.into(), &0.into()), "{counts}");
    for (path, statuses) in [
        ("/feed", vec![200_u16, 200]),
        ("/~r/1", vec![302]),
        ("/resolved", vec![200]),
        ("/to/own", vec![302]),
        ("/own", vec![]),
        ("/story", vec![200]),
        ("/lost", vec![404]),
        // A service's link may lead somewhere by now.
        ("/~r/none", vec![404, 404]),
        ("/resolved?utm_source=feedburner", vec![]),
    ] {
        assert_eq!(place.statuses(path), statuses, "{path}");
    }
}

async fn a_feed_whose_site_fails_for_a_moment_is_read_all_the_same(place: Place) {
    place.add("news", &["http://shaky.test/shaky"]).await;
    let counts = place.ingest(&[]).await;
    assert_eq!((&counts["read"], &counts["failed"]), (&1.into(), &0.into()), "{counts}");
    assert_eq!(place.statuses("/shaky"), [503, 503, 200]);
}

/// An ingest that waits for the dead site takes `feeds.max_wait`, which is longer than `DEADLINE`.
async fn a_dead_site_without_a_known_robots_txt_holds_up_nobody_for_long(place: Place) {
    place.add("news", &["http://dead.test/feed", "http://news.test/feed.rss"]).await;
    let ended = place.scene.program.run(&["feeds", "ingest", "--json"]).await.expect_code(0);
    let counts: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&counts["read"], &counts["failed"]), (&1.into(), &1.into()), "{counts}");
    assert_eq!(place.listed("http://dead.test/feed").await["failures"], 1);
}

async fn two_at_once_read_each_feed_once(place: Place) {
    let feeds: Vec<String> = (0..20).map(|n| format!("http://news.test/feed.rss?{n}")).collect();
    place.add("news", &feeds.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (a, b, c) = tokio::join!(place.ingest(&[]), place.ingest(&[]), place.ingest(&[]));
    let read: u64 = [a, b, c].iter().map(|counts| counts["failed"].as_u64().unwrap()).sum();
    assert_eq!(read, 20, "each is a page of that address, and no feed");
    for feed in &feeds {
        assert_eq!(place.statuses(&feed.replace("http://news.test", "")).len(), 1, "{feed}");
    }
}

async fn lists_come_in_and_go_out(place: Place) {
    let list = "<opml><body><outline text='World &amp; more'><outline text='A' xmlUrl='http://news.test/feed.rss'/>\
                <outline text='B'><outline xmlUrl='http://news.test/feed.atom'/></outline></outline>\
                <outline xmlUrl='http://news.test/feed.rss' category='news'/></body></opml>";
    std::fs::write(place.scene.program.file("in.opml"), list).unwrap();
    place.ok(&["import", "in.opml"]).await;
    place.ok(&["add", "--interval", "30m", "http://news.test/feed.rdf"]).await;
    let exported = place.ok(&["export"]).await;
    let again = Program::new(env!("CARGO_BIN_EXE_fetchwell"));
    std::fs::write(again.file("out.opml"), &exported).unwrap();
    let listed = async |program: &Program, arguments: &[&str]| {
        let all = program
            .run(&[&["feeds", "list", "--json"], arguments].concat())
            .await
            .expect_code(0)
            .stdout;
        all.replace("\"subscribed_by\":[\"opml\"]", "\"subscribed_by\":[\"store\"]")
    };
    let here = listed(&place.scene.program, &[]).await;
    let there = listed(&again, &["--opml", "out.opml"]).await;
    assert_eq!((here.lines().count(), here.contains("\"interval_seconds\":1800")), (3, true));
    assert_eq!(strip_titles(&here), strip_titles(&there));
    let both = place.listed("http://news.test/feed.rss").await;
    assert_eq!(both["categories"], serde_json::json!(["World & more", "news"]));
    place.ok(&["remove", "http://news.test/feed.rss", "--category", "news"]).await;
    let one = place.listed("http://news.test/feed.rss").await;
    assert_eq!(one["categories"], serde_json::json!(["World & more"]));
    assert_eq!(place.scene.origin.page_hits(), 0, "nobody was asked for anything");
}

/// A feed without a title is written with its address in that place.
fn strip_titles(list: &str) -> Vec<Value> {
    let feed = |line: &str| {
        let mut feed: Value = serde_json::from_str(line).unwrap();
        feed["title"].take();
        feed
    };
    list.lines().map(feed).collect()
}

async fn a_trial_tells_what_would_be_added_and_adds_nothing(place: Place) {
    let told = place.ok(&["test", "http://news.test/feed.rss"]).await;
    assert!(told.contains("RSS") && told.contains("http://news.test/rss?id=1\n"), "{told}");
    let told = place.ok(&["test", "http://burner.test/feed"]).await;
    assert!(told.contains("http://news.test/resolved"), "{told}");
    for (url, code, said) in [
        ("http://news.test/page", 4, "http://news.test/feed.rss"),
        ("http://bad.test/missing", 4, "404"),
        ("http://bad.test/private", 3, "robots.txt"),
        ("ftp://bad.test/", 2, "ftp"),
    ] {
        let ended = place.scene.program.run(&["feeds", "test", url]).await.expect_code(code);
        assert!(ended.stderr.contains(said), "{url}: {}", ended.stderr);
    }
    assert_eq!(place.gathered().await, BTreeMap::new());
    assert_eq!(place.ok(&["list", "--json"]).await, "");
}

on_both_stores!(
    place:
    each_kind_of_feed_gives_clean_links_and_each_page_is_there_once,
    what_was_read_is_not_due_and_then_asked_for_news_only,
    trouble_with_single_feeds_is_remembered_and_no_error,
    links_are_asked_once_where_they_lead_and_pages_at_home_never,
    a_feed_whose_site_fails_for_a_moment_is_read_all_the_same,
    a_dead_site_without_a_known_robots_txt_holds_up_nobody_for_long,
    two_at_once_read_each_feed_once,
    lists_come_in_and_go_out,
    a_trial_tells_what_would_be_added_and_adds_nothing,
);

/// A trial that waits for the dead site takes `feeds.max_wait`, which is longer than `DEADLINE`.
#[tokio::test]
async fn a_trial_of_a_feed_whose_site_is_closed_ends_soon() {
    let program = unpaced().variable("FETCHWELL_BREAKER__FAILURE_THRESHOLD", "1");
    let scene = Scene::embedded(program, sites());
    let ended = scene.program.run(&["feeds", "test", "http://dead.test/feed"]).await.expect_code(4);
    assert!(ended.stderr.contains("cannot read http://dead.test/feed"), "{}", ended.stderr);
}

#[tokio::test]
async fn adding_feeds_says_how_many_were_new_and_help_says_how_often_they_are_read() {
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"));
    for said in
        ["feeds added: 1, already subscribed: 0\n", "feeds added: 0, already subscribed: 1\n"]
    {
        let ended = program.run(&["feeds", "add", "http://a.test/feed"]).await.expect_code(0);
        assert_eq!(ended.stdout, said);
    }
    let help = program.run(&["feeds", "add", "--help"]).await.expect_code(0).stdout;
    assert!(help.contains("feeds.interval") && !help.contains("default: 1h"), "{help}");
}

#[tokio::test]
async fn what_is_typed_wrong_is_named_with_its_mend() {
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"));
    std::fs::write(program.file("no.opml"), "hello").unwrap();
    for (arguments, said) in [
        (vec!["add", "nonsense"], "nonsense"),
        (vec!["add", "http://a.test/", "--category", ""], "--category"),
        (vec!["add", "http://a.test/", "--interval", "often"], "--interval"),
        (vec!["import", "no.opml"], "not OPML"),
        (vec!["import", "none.opml"], "none.opml"),
        (vec!["ingest", "--opml", "none.opml"], "none.opml"),
        (vec!["remove", "http://a.test/"], "feeds list"),
        (vec!["list", "--store", "postgres://127.0.0.1:1/x"], "redis://HOST"),
    ] {
        let ended = program.run(&[vec!["feeds"], arguments].concat()).await.expect_code(2);
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
    std::fs::write(program.file("fetchwell.toml"), "[categories.news]\nfeeds = [\"a feed\"]\n")
        .unwrap();
    let ended = program.run(&["feeds", "list"]).await.expect_code(2);
    assert!(ended.stderr.contains("categories.news.feeds"), "{}", ended.stderr);
}
