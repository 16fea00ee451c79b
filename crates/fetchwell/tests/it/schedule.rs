//! `fetchwell schedule`, on both stores.

use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::conformance::rounds::take_urls;
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::scene::{Scene, StoreKind};

const PAGES: usize = 30;

/// A program on a simulated web, and the queue that it fills.
struct Place {
    scene: Scene,
    queue: Box<dyn UrlQueue>,
}

/// A shop with an index of sitemaps: one is compressed, one lists a page of another site, one is not there.
fn shop() -> SiteScript {
    let loc = |url: String| format!("<loc>{url}</loc>");
    let pages: String = (0..PAGES).map(|n| loc(format!("http://shop.test/{n}"))).collect();
    let index = ["1.xml.gz", "2.xml", "none.xml"]
        .map(|name| loc(format!("http://shop.test/{name}")))
        .concat();
    let text = |path: &str, text: String| (path.to_owned(), text);
    let files = [
        text("/sitemap.xml", format!("<sitemapindex>{index}</sitemapindex>")),
        text(
            "/2.xml",
            format!(
                "<urlset>{}</urlset>",
                loc("http://shop.test/last".into()) + &loc("http://other.test/".into())
            ),
        ),
    ];
    let shop = SiteScript::new("shop.test").status("/none.xml", 404);
    let shop = shop.gzip("/1.xml.gz", "application/gzip", &format!("<urlset>{pages}</urlset>"));
    files.iter().fold(shop, |shop, (path, text)| shop.text(path, "application/xml", text))
}

async fn place(store: StoreKind, shop: SiteScript) -> Option<Place> {
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .store_variable("PAGE_FETCHER_REDIS_URL")
        .flags(["--rate", "0"]);
    let plan = "entries:\n  - {url: 'http://shop.test/', every: 365d}\n  \
                - {sitemap: 'http://shop.test/sitemap.xml', every: 365d}\n";
    std::fs::write(program.file("plan.yaml"), plan).unwrap();
    let scene = Scene::on(store, program, [shop]).await?;
    let queue = scene.queue("crawler_queue").await;
    Some(Place { scene, queue })
}

impl Place {
    /// All that is on the list, sorted; and takes it.
    async fn taken(&self) -> Vec<String> {
        let mut urls = take_urls(&*self.queue).await;
        urls.sort_unstable();
        urls
    }
}

fn everything() -> Vec<String> {
    let names = (0..PAGES).map(|n| n.to_string()).chain(["".into(), "last".into()]);
    let mut urls: Vec<String> = names.map(|name| format!("http://shop.test/{name}")).collect();
    urls.sort_unstable();
    urls
}

const ONCE: &[&str] = &["schedule", "--plan", "plan.yaml", "--once"];

async fn what_is_due_is_put_once_whoever_comes(place: Place) {
    let shown = place.scene.program.run(&["schedule", "--plan", "plan.yaml", "--dry-run"]).await;
    assert_eq!(shown.expect_code(0).stdout.lines().count(), 2);
    assert!(place.taken().await.is_empty() && place.scene.origin.page_hits() == 0);
    // One of the sitemaps is not there.
    let [a, b, c, d] = [(); 4].map(|()| place.scene.program.run(ONCE));
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    let failed = [a, b, c, d].iter().filter(|ended| ended.code == Some(4)).count();
    assert!(failed > 0, "whoever came first has found it missing");
    assert_eq!(place.taken().await, everything());
    // After a restart nothing is due, and nothing is asked for.
    let hits = place.scene.origin.page_hits();
    place.scene.program.run(ONCE).await.expect_code(0);
    assert!(place.taken().await.is_empty());
    assert_eq!(place.scene.origin.page_hits(), hits);
}

async fn killed_at_a_sitemap_nothing_is_lost_and_nothing_is_double(place: Place) {
    let killed = place.scene.program.start(&["schedule", "--plan", "plan.yaml"]);
    // It is killed when a sitemap has been asked for, somewhere on the way to the list.
    place.scene.origin.until_page_hits(2).await;
    killed.kill().await;
    place.scene.program.run(ONCE).await.expect_code(4);
    assert_eq!(place.taken().await, everything());
}

async fn a_list_that_is_too_long_gets_nothing(mut place: Place) {
    place.scene = place.scene.variable("FETCHWELL_SCHEDULE__MAX_QUEUE", "1");
    let round =
        fetchwell_engine::ports::rounds::Round { entry: "x".into(), due: Clock::system().wall() };
    place.queue.put(&round, &["http://x.test/".to_owned()], 0).await.unwrap();
    let ended = place.scene.program.run(ONCE).await.expect_code(0);
    assert!(ended.stderr.contains("schedule.max_queue"), "{}", ended.stderr);
    assert_eq!(place.taken().await, ["http://x.test/"]);
    place.scene.program.run(ONCE).await;
    assert_eq!(place.taken().await, ["http://shop.test/"], "and then the list is full again");
}

on_both_stores!(
    place:
    what_is_due_is_put_once_whoever_comes(shop()),
    killed_at_a_sitemap_nothing_is_lost_and_nothing_is_double(shop().slow(Duration::from_millis(50))),
    a_list_that_is_too_long_gets_nothing(shop()),
);

#[tokio::test]
async fn a_bad_plan_is_named_with_its_fault() {
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"));
    std::fs::write(program.file("bad.yaml"), "entries:\n  - {url: 'http://a.test/'}\n").unwrap();
    for (file, said) in [("bad.yaml", "every"), ("none.yaml", "--plan")] {
        let ended = program.run(&["schedule", "--plan", file]).await.expect_code(2);
        assert!(ended.stderr.contains(file) && ended.stderr.contains(said), "{}", ended.stderr);
    }
    program.run(&["schedule"]).await.expect_code(2);
}
