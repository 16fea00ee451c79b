//! `fetchwell crawl` as its users meet it: the built program, on a simulated web with a known graph.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_simweb::{HitKind, SiteScript};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Process, ProcessEnd, Program, TestWeb};
use serde_json::Value;

const HTML: &str = "text/html; charset=utf-8";

/// A page with these links.
fn page(title: &str, links: &[&str]) -> String {
    let links: String =
        links.iter().map(|link| format!("<li><a href='{link}'>{link}</a>")).collect();
    format!(
        "<!doctype html><title>{title}</title><h1>{title}</h1><p>This is the page about {title}, and \
         there is no other page about it.<ul>{links}</ul>"
    )
}

/// A site with these pages and their links.
fn site(name: &str, pages: &[(&str, &[&str])]) -> SiteScript {
    let script = SiteScript::new(name).status("/sitemap.xml", 404);
    pages.iter().fold(script, |script, (path, links)| script.text(path, HTML, &page(path, links)))
}

fn on(sites: impl IntoIterator<Item = SiteScript>) -> (TestWeb, Program) {
    let origin = TestWeb::start(sites);
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin);
    (origin, program.variable("FETCHWELL_RATE", "0"))
}

/// The rows on standard output, by their URLs.
fn rows(ended: &ProcessEnd) -> BTreeMap<String, Value> {
    rows_of(&ended.stdout)
}

fn rows_of(text: &str) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no row: {line}"));
        let url = row["url"].as_str().unwrap().to_owned();
        let before = rows.insert(url, row);
        assert!(before.is_none(), "two rows: {line}");
    }
    rows
}

/// The paths of the pages on `a.test` that have a row, in order.
fn paths(rows: &BTreeMap<String, Value>) -> Vec<&str> {
    rows.keys().map(|url| url.strip_prefix("http://a.test").unwrap_or(url)).collect()
}

/// The paths that were requested, other than robots.txt.
fn requested(origin: &TestWeb) -> Vec<String> {
    let hits = origin.hits();
    let pages = hits.iter().filter(|hit| hit.kind == HitKind::Page);
    let mut paths: Vec<String> = pages.map(|hit| hit.path.to_string()).collect();
    paths.sort();
    paths
}

async fn crawl(program: &Program, arguments: &[&str]) -> ProcessEnd {
    program.run(&[&["crawl"], arguments].concat()).await
}

/// Everything that may be crawled, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_fetched_once_and_what_a_site_forbids_is_not() {
    let a = site(
        "a.test",
        &[
            ("/one", &["/two?utm_source=one", "/one#part", "http://A.test:80/two", "/one"]),
            ("/two", &["/one?PHPSESSID=7", "/loop", "/gone"]),
            ("/behind-noindex", &[]),
            ("/in-sitemap", &["/from-sitemap"]),
            ("/from-sitemap", &[]),
            ("/new", &["/after-redirect"]),
            ("/after-redirect", &["/new"]),
            ("/deep/below", &[]),
            ("/canonical", &[]),
            ("/de", &[]),
            ("/area", &[]),
            ("/q?a=1&b=2", &[]),
        ],
    );
    let start = "<!doctype html><title>Start</title><h1>Start</h1><p>A page with all kinds of links, and \
        each of them is there for a reason.<a href=/one>1</a><a href=/old>old</a>\
        <a href=/private/diary>no</a><a href=/loop>loop</a><a rel='external nofollow' href=/unloved>no</a>\
        <a href=/noindex>noindex</a><a href=/nofollow>nofollow</a><a href=/based>based</a>\
        <a href=/paper.pdf>paper</a><a href=http://b.test/>other</a><a href=/leaves>leaves</a>\
        <a href='/q?a=1&amp;b=2'>1</a><a href='/q?b=2&amp;a=1'>2</a><a href='mailto:x@a.test'>mail</a>\
        <link rel=canonical href=/canonical><link rel=alternate hreflang=de href=/de>\
        <map><area href=/area></map>";
    let a = a
        .robots("User-agent: *\nDisallow: /private/\nSitemap: /map.xml\n")
        .text("/", HTML, start)
        .text(
            "/map.xml",
            "application/xml",
            "<urlset><url><loc>http://a.test/in-sitemap</loc></url>\
            <url><loc>http://b.test/not-ours</loc></url></urlset>",
        )
        .text(
            "/noindex",
            HTML,
            "<meta name=robots content=noindex><a href=/behind-noindex>x</a><p>Secret.",
        )
        .text(
            "/nofollow",
            HTML,
            "<meta name=robots content='index, nofollow'><a href=/unloved>x</a>",
        )
        .text("/based", HTML, "<base href=/deep/><a href=below>x</a>")
        .redirect("/old", "/new")
        .redirect("/leaves", "http://b.test/far")
        .redirect("/loop", "/loop")
        .status("/gone", 404);
    let (origin, program) = on([a, SiteScript::new("b.test")]);
    // Some pages fail.
    let ended = crawl(&program, &["http://a.test/"]).await.expect_code(4);
    let rows = rows(&ended);
    let expected = [
        "/",
        "/after-redirect",
        "/area",
        "/based",
        "/behind-noindex",
        "/canonical",
        "/de",
        "/deep/below",
        "/from-sitemap",
        "/gone",
        "/in-sitemap",
        "/leaves",
        "/loop",
        "/nofollow",
        "/noindex",
        "/old",
        "/one",
        "/private/diary",
        "/q?a=1&b=2",
        "/two",
    ];
    let of_a: Vec<&str> = paths(&rows).into_iter().filter(|path| path.starts_with('/')).collect();
    assert_eq!(of_a, expected, "{}", ended.stderr);
    let is = |path: &str, field: &str| rows[&format!("http://a.test{path}")][field].clone();
    for (path, outcome, depth, parent) in [
        ("/", "fetched", 0, ""),
        ("/one", "fetched", 1, "/"),
        ("/two", "fetched", 2, "/one"),
        ("/in-sitemap", "fetched", 1, "/map.xml"),
        ("/from-sitemap", "fetched", 2, "/in-sitemap"),
        ("/noindex", "noindex", 1, "/"),
        ("/behind-noindex", "fetched", 2, "/noindex"),
        ("/private/diary", "skipped_by_robots", 1, "/"),
        ("/gone", "url_failure", 3, "/two"),
        ("/leaves", "refused", 1, "/"),
        ("/deep/below", "fetched", 2, "/based"),
    ] {
        assert_eq!(is(path, "outcome"), outcome, "{path}");
        assert_eq!(is(path, "depth"), depth, "{path}");
        let parent =
            if parent.is_empty() { Value::Null } else { format!("http://a.test{parent}").into() };
        assert_eq!(is(path, "parent"), parent, "{path}");
    }
    assert_eq!(is("/old", "final_url"), "http://a.test/new");
    assert_eq!(is("/noindex", "text"), Value::Null);
    assert_eq!(is("/", "links_found"), 16);
    // Each page once: the loop is one URL, which is requested until there are too many redirects.
    let requested = requested(&origin);
    let mut expected: Vec<&str> = expected.to_vec();
    expected.retain(|path| !["/private/diary", "/loop"].contains(path));
    expected.extend(["/map.xml", "/new"]);
    expected.sort_unstable();
    let others: Vec<&str> =
        requested.iter().map(String::as_str).filter(|path| *path != "/loop").collect();
    assert_eq!(others, expected);
    assert!(ended.stderr.contains("1 link to a.test not followed: not pages"), "{}", ended.stderr);
}

/// Whichever comes first, the redirect or the link: one row has the content of a page.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_others_redirect_to_has_its_content_in_one_row() {
    let fillers: Vec<String> = (0..60).map(|n| format!("/filler-{n}")).collect();
    let redirects = ["/home", "/old", "/older", "/to-late", "/to-nowhere"];
    let mut links = redirects.to_vec();
    links.push("/new");
    links.extend(fillers.iter().map(String::as_str));
    links.push("/late");
    let pages = ["/new", "/late"].into_iter().chain(fillers.iter().map(String::as_str));
    let pages: Vec<(&str, &[&str])> = pages.map(|path| (path, &[][..])).collect();
    let script = site("a.test", &pages)
        .text("/", HTML, &page("/", &links))
        .redirect("/home", "/")
        .redirect("/old", "/new")
        .redirect("/older", "/new")
        .redirect("/to-late", "/late")
        .redirect("/to-nowhere", "/nowhere")
        .status("/nowhere", 404);
    let (origin, program) = on([script]);
    let check = |rows: &BTreeMap<String, Value>| {
        for path in ["/", "/new", "/late"] {
            let url = format!("http://a.test{path}");
            let has_it = |row: &&Value| row["final_url"] == *url && row["outcome"] == "fetched";
            let with_content: Vec<&Value> = rows.values().filter(has_it).collect();
            assert_eq!(with_content.len(), 1, "{path}: {rows:?}");
            assert!(with_content[0]["text"].as_str().unwrap().contains(path));
        }
        let redirected = rows.values().filter(|row| row["outcome"] == "redirected");
        for row in redirected.clone() {
            assert!(row["text"].is_null() && row["content_hash"].is_null(), "{row}");
            assert_eq!(row["status"], 302, "{row}");
        }
        // Whether the page at the end is reached by its link or by the redirect to it depends on the timing.
        assert!((3..=4).contains(&redirected.count()));
        assert_eq!(rows["http://a.test/home"]["final_url"], "http://a.test/");
        assert_eq!(rows["http://a.test/to-nowhere"]["outcome"], "url_failure");
    };
    let ended = crawl(&program, &["http://a.test/"]).await.expect_code(4);
    check(&rows(&ended));
    // The start page has its row before any other page is requested.
    assert_eq!(requested(&origin).iter().filter(|path| *path == "/").count(), 1);
    let ended = crawl(&program, &["http://a.test/", "--output", "rows.jsonl"]).await;
    check(&rows_of(&std::fs::read_to_string(program.file("rows.jsonl")).unwrap()));
    assert!(ended.expect_code(4).stderr.contains("redirected to other rows"));
}

/// Each trap alone would have more pages than the limit.
#[tokio::test(flavor = "multi_thread")]
async fn traps_are_bounded_and_named() {
    let days: Vec<String> = (0..700).map(|day| format!("/calendar/2031-{day}")).collect();
    let filters: Vec<String> = (0..400).map(|n| format!("/shop?sort=x&color={n}")).collect();
    let missing: Vec<String> = (0..60).map(|n| format!("/soft/{n}/")).collect();
    let refs = |links: &[String]| -> Vec<&'static str> {
        links.iter().map(|link| &*link.clone().leak()).collect()
    };
    let start = page("start", &["/days", "/filters", "/missing", "/growing/", "/good"]);
    let script = site("a.test", &[("/good", &["/better"]), ("/better", &[])])
        .text("/", HTML, &start)
        .text("/days", HTML, &page("days", &refs(&days)))
        .text("/filters", HTML, &page("filters", &refs(&filters)))
        .text("/missing", HTML, &page("missing", &refs(&missing)))
        // A link that is relative by mistake.
        .text("/growing/*", HTML, &page("growing", &["more/and/"]))
        // The same page for everything that is missing, with status 200.
        .text("/soft/*", HTML, &page("sorry", &["x/", "y/"]));
    let (_origin, program) = on([script]);
    let ended = crawl(&program, &["http://a.test/"]).await.expect_code(0);
    let rows = rows(&ended);
    let paths = paths(&rows);
    let count = |prefix: &str| paths.iter().filter(|path| path.starts_with(prefix)).count();
    assert_eq!(count("/calendar/"), 500);
    assert_eq!(count("/shop?"), 300);
    // All that are linked directly, and the links of the first twenty of them.
    let soft = count("/soft/");
    assert!((60..=100).contains(&soft), "{soft}");
    let growing = count("/growing/");
    assert!((2..=6).contains(&growing), "{growing}");
    assert_eq!(count("/good") + count("/better"), 2);
    for said in [
        "200 links to a.test not followed: a calendar with more than 500 pages, such as http://a.test/calendar/",
        "100 links to a.test not followed: a list with more than 300 combinations of filters",
        "paths that repeat folders or are too deep",
        "links on pages with the same content as 20 others",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_stays_in_its_scope_depth_and_patterns() {
    let a = site(
        "a.test",
        &[
            ("/", &["/docs/", "/blog/1", "http://b.a.test/", "http://other.test/"]),
            ("/docs/", &["/docs/one", "/", "/docs/print/one"]),
            ("/docs/one", &["/docs/one/two"]),
            ("/docs/one/two", &["/docs/one/two/three"]),
            ("/docs/one/two/three", &[]),
            ("/docs/print/one", &[]),
            ("/blog/1", &[]),
        ],
    );
    let (_origin, program) = on([
        a,
        site("b.a.test", &[("/", &[])]),
        site("other.test", &[("/", &["/x"]), ("/x", &[])]),
    ]);
    let home = "http://a.test/";
    let docs = "http://a.test/docs/";
    for (arguments, expected) in [
        (vec![docs, "--scope", "page"], vec!["/docs/"]),
        (
            vec![docs, "--scope", "path", "--depth", "2"],
            vec!["/docs/", "/docs/one", "/docs/one/two", "/docs/print/one"],
        ),
        (
            vec![docs, "--scope", "path", "--depth", "1", "--exclude", "*/print/*"],
            vec!["/docs/", "/docs/one"],
        ),
        (vec![home, "--depth", "0"], vec!["/"]),
        (
            vec![home, "--depth", "1", "--include", "/blog/*", "--include", "http://b.*"],
            vec!["/", "/blog/1"],
        ),
        (
            vec![home, "--depth", "1", "--scope", "domain", "--exclude", "/docs/*"],
            vec!["/", "/blog/1", "http://b.a.test/"],
        ),
        (
            vec![home, "--scope", "any", "--exclude", "/docs/*", "--exclude", "/blog/*"],
            vec!["/", "http://b.a.test/", "http://other.test/", "http://other.test/x"],
        ),
    ] {
        let ended = crawl(&program, &[&arguments[..], &["--sitemaps", "off"]].concat()).await;
        let rows = rows(&ended.expect_code(0));
        assert_eq!(paths(&rows), expected, "{arguments:?}");
    }
}

/// A start page that redirects to another host takes the crawl there.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_the_start_page_adds_to_the_scope() {
    let bare = SiteScript::new("a.test").redirect("/*", "http://www.a.test/");
    let www = site(
        "www.a.test",
        &[("/", &["/one", "http://c.test/"]), ("/one", &["/two"]), ("/two", &[]), ("/three", &[])],
    )
    .robots("Sitemap: /map.xml\n")
    .text(
        "/map.xml",
        "application/xml",
        "<urlset><url><loc>http://www.a.test/three</loc></url><url><loc>http://c.test/</loc></url>\
         </urlset>",
    );
    let (origin, program) = on([bare, www, SiteScript::new("c.test")]);
    let ended = crawl(&program, &["http://a.test/start"]).await.expect_code(0);
    let rows = rows(&ended);
    let urls: Vec<&str> = rows.keys().map(String::as_str).collect();
    let expected = [
        "http://a.test/start",
        "http://www.a.test/one",
        "http://www.a.test/three",
        "http://www.a.test/two",
    ];
    assert_eq!(urls, expected, "{}", ended.stderr);
    assert!(origin.hits().iter().all(|hit| &*hit.site != "c.test"));
}

/// The usual setup: everything redirects to `www`, robots.txt and its sitemaps, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_sitemaps_of_a_host_that_is_redirected_to_are_read_for_it() {
    let bare = SiteScript::new("a.test")
        .robots_redirect("http://www.a.test/robots.txt")
        .redirect("/*", "http://www.a.test/");
    let map = "<urlset><url><loc>http://www.a.test/mapped</loc></url></urlset>";
    let www = site("www.a.test", &[("/", &[]), ("/mapped", &[])])
        .robots("Sitemap: http://www.a.test/map.xml\n")
        .text("/map.xml", "application/xml", map);
    let (_origin, program) = on([bare, www]);
    let ended = crawl(&program, &["http://a.test/"]).await.expect_code(0);
    let rows = rows(&ended);
    let urls: Vec<&str> = rows.keys().map(String::as_str).collect();
    assert_eq!(urls, ["http://a.test/", "http://www.a.test/mapped"], "{}", ended.stderr);
}

/// Each start page has a scope of its own, even if all redirect to one host.
#[tokio::test(flavor = "multi_thread")]
async fn the_sitemaps_of_a_host_are_read_for_every_start_page_that_redirects_there() {
    let bare = SiteScript::new("a.test")
        .status("/sitemap.xml", 404)
        .redirect("/one", "http://www.a.test/one/")
        .redirect("/two", "http://www.a.test/two/");
    let paths = ["/one/mapped", "/two/mapped", "/three/mapped"];
    let entries = paths.map(|path| format!("<url><loc>http://www.a.test{path}</loc></url>"));
    let map = format!("<urlset>{}</urlset>", entries.concat());
    let www = site("www.a.test", &[("/one/", &[]), ("/two/", &[])])
        .robots("Sitemap: /map.xml\n")
        .text("/map.xml", "application/xml", &map)
        .text("/one/mapped", HTML, &page("one", &[]))
        .text("/two/mapped", HTML, &page("two", &[]));
    let (_origin, program) = on([bare, www]);
    let starts = ["http://a.test/one", "http://a.test/two", "--scope", "path"];
    let ended = crawl(&program, &starts).await.expect_code(0);
    let rows = rows(&ended);
    let urls: Vec<&str> = rows.keys().map(String::as_str).collect();
    let expected = [
        "http://a.test/one",
        "http://a.test/two",
        "http://www.a.test/one/mapped",
        "http://www.a.test/two/mapped",
    ];
    assert_eq!(urls, expected, "{}", ended.stderr);
}

/// The limits are met exactly, and no site uses up what the others should have.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_exact_and_sites_share_them() {
    let links: Vec<&str> =
        (0..300).map(|n| &*Box::leak(format!("/p{}", "x".repeat(n)).into_boxed_str())).collect();
    let sites = ["a.test", "b.test", "c.test"].map(|name| {
        SiteScript::new(name)
            .status("/sitemap.xml", 404)
            .text("/", HTML, &page("start", &links))
            .text("/p*", HTML, &page("leaf", &[]))
    });
    let (_origin, program) = on(sites);
    let starts = ["http://a.test/", "http://b.test/", "http://c.test/"];
    let of = |rows: &BTreeMap<String, Value>, site: &str| {
        rows.keys().filter(|url| url.contains(site)).count()
    };
    let limited = |arguments: &'static [&'static str]| [&starts[..], arguments].concat();
    // At this rate, a site cannot use up the limit before the pages of the others are known.
    let ended = crawl(&program, &limited(&["--limit", "60", "--rate", "5"])).await.expect_code(0);
    let limited_rows = rows(&ended);
    assert_eq!(limited_rows.len(), 60);
    for site in ["a.test", "b.test", "c.test"] {
        assert!((10..=30).contains(&of(&limited_rows, site)), "{site}: {:?}", limited_rows.keys());
    }
    assert!(
        ended.stderr.contains("843 known pages were not fetched: --limit is 60"),
        "{}",
        ended.stderr
    );
    let ended = crawl(&program, &limited(&["--limit-per-site", "7"])).await.expect_code(0);
    let limited_rows = rows(&ended);
    for site in ["a.test", "b.test", "c.test"] {
        assert_eq!(of(&limited_rows, site), 7, "{site}");
    }
    assert!(ended.stderr.contains("not fetched: --limit-per-site is 7"), "{}", ended.stderr);
}

/// A page that must not be fetched is no page of the budget.
#[tokio::test(flavor = "multi_thread")]
async fn what_robots_txt_forbids_uses_up_no_limit() {
    let forbidden: Vec<String> = (0..50).map(|n| format!("/private/{n}")).collect();
    let mut links: Vec<&str> = forbidden.iter().map(String::as_str).collect();
    links.extend(["/x", "/y", "/z", "/v"]);
    let script =
        site("a.test", &[("/", &links), ("/x", &[]), ("/y", &[]), ("/z", &[]), ("/v", &[])]);
    let (origin, program) = on([script.robots("User-agent: *\nDisallow: /private/\n")]);
    let ended = crawl(&program, &["http://a.test/", "--limit", "4"]).await.expect_code(3);
    let rows = rows(&ended);
    let fetched = rows.values().filter(|row| row["outcome"] == "fetched").count();
    assert_eq!(fetched, 4, "{}", ended.stderr);
    assert!(requested(&origin).iter().all(|path| !path.starts_with("/private")));
}

#[tokio::test(flavor = "multi_thread")]
async fn sitemaps_are_read_alone_or_not_at_all() {
    let index =
        "<sitemapindex><sitemap><loc>http://a.test/pages.xml.gz</loc></sitemap></sitemapindex>";
    let list = "<urlset><url><loc>http://a.test/listed</loc></url></urlset>";
    let script = SiteScript::new("a.test")
        .text("/sitemap.xml", "application/xml", index)
        .gzip("/pages.xml.gz", "application/gzip", list)
        .text("/", HTML, &page("start", &["/linked"]))
        .text("/linked", HTML, &page("linked", &[]))
        .text("/listed", HTML, &page("listed", &["/linked"]));
    let (_origin, program) = on([script]);
    for (sitemaps, expected) in [
        ("auto", vec!["/", "/linked", "/listed"]),
        ("only", vec!["/", "/listed"]),
        ("off", vec!["/", "/linked"]),
    ] {
        let arguments = ["http://a.test/", "--sitemaps", sitemaps];
        let ended = crawl(&program, &arguments).await.expect_code(0);
        assert_eq!(paths(&rows(&ended)), expected, "{sitemaps}: {}", ended.stderr);
    }
}

/// A sitemap says which pages have not changed, even if others link to them.
#[tokio::test(flavor = "multi_thread")]
async fn pages_that_have_not_changed_since_are_skipped() {
    let entry = |kind: &str, path: &str, lastmod: &str| {
        format!("<{kind}><loc>http://a.test{path}</loc><lastmod>{lastmod}</lastmod></{kind}>")
    };
    let index =
        entry("sitemap", "/new.xml", "2026-05-31") + &entry("sitemap", "/old.xml", "2026-04-01");
    let list = entry("url", "/new", "2026-05-31") + &entry("url", "/old", "2026-05-01");
    let xml = "application/xml";
    let script = SiteScript::new("a.test")
        .text("/sitemap.xml", xml, &format!("<sitemapindex>{index}</sitemapindex>"))
        .text(
            "/new.xml",
            xml,
            &format!("<urlset>{list}<url><loc>http://a.test/some-day</loc></url></urlset>"),
        )
        .text("/old.xml", xml, "<urlset><url><loc>http://a.test/never</loc></url></urlset>")
        .text("/new", HTML, &page("new", &["/old"]))
        .text("/some-day", HTML, &page("some day", &["/old"]))
        .text("/", HTML, &page("start", &[]));
    let (_origin, program) = on([script]);
    let since = ["http://a.test/", "--since", "2026-05-15"];
    let ended = crawl(&program, &since).await.expect_code(0);
    assert_eq!(paths(&rows(&ended)), ["/", "/new", "/some-day"], "{}", ended.stderr);
    let said = "1 link to a.test not followed: unchanged since the time given by --since, such as http://a.test/old";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

/// A site with this many sitemaps, each with one page.
fn site_with_sitemaps(count: u32) -> SiteScript {
    let list = |urls: Vec<String>| {
        let urls: Vec<String> =
            urls.iter().map(|url| format!("<loc>http://a.test{url}</loc>")).collect();
        urls.join("</url><url>")
    };
    let index = list((0..count).map(|n| format!("/map{n}.xml")).collect());
    let index = index.replace("url>", "sitemap>");
    let index = format!("<sitemapindex><sitemap>{index}</sitemap></sitemapindex>");
    let xml = "application/xml";
    let script = SiteScript::new("a.test").text("/sitemap.xml", xml, &index);
    let script = script.text("/", HTML, &page("start", &[])).text("/p*", HTML, &page("leaf", &[]));
    (0..count).fold(script, |script, n| {
        let map = format!("<urlset><url>{}</url></urlset>", list(vec![format!("/p{n}")]));
        script.text(&format!("/map{n}.xml"), xml, &map)
    })
}

/// Sitemaps that are left would only name pages that are not fetched.
#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_ends_at_its_limit_and_reads_the_other_sitemaps_when_it_goes_on() {
    let (origin, program) = on([site_with_sitemaps(40)]);
    let program = program.variable("FETCHWELL_RATE", "4");
    let run = ["http://a.test/", "--output", "rows.jsonl", "--limit"];
    let ended = crawl(&program, &[&run[..], &["1"]].concat()).await.expect_code(0);
    assert!(
        ended.stderr.contains("sitemaps were not read, because the crawl reached --limit (1)"),
        "{}",
        ended.stderr
    );
    let read =
        |origin: &TestWeb| requested(origin).iter().filter(|path| path.contains("map")).count();
    assert!(read(&origin) < 30, "{:?}", requested(&origin));
    let program = program.variable("FETCHWELL_RATE", "0");
    let ended = crawl(&program, &[&run[..], &["100", "--resume"]].concat()).await.expect_code(0);
    let rows = rows_of(&std::fs::read_to_string(program.file("rows.jsonl")).unwrap());
    assert_eq!(rows.len(), 41, "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_reads_sitemaps_and_no_page() {
    let a = site_with_sitemaps(2).robots("User-agent: *\nCrawl-delay: 1\n");
    let b = site("b.test", &[("/", &[])]).robots("User-agent: *\nDisallow: /\n");
    let (origin, program) = on([a, b]);
    let plan = ["http://a.test/", "http://b.test/", "--plan"];
    let ended = crawl(&program, &plan).await.expect_code(0);
    for line in [
        "a.test  3      1s        2s",
        "b.test  1      0s        0s            robots.txt disallows /",
        "Known: 4 pages on 2 sites. Minimum time: 2s.",
        "Links on these pages may lead to more.",
    ] {
        assert!(ended.stdout.lines().any(|printed| printed == line), "{line}\n{}", ended.stdout);
    }
    let ended = crawl(&program, &[&plan[..], &["--json", "--sitemaps", "off"]].concat()).await;
    let forecast: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    assert_eq!((&forecast["pages"], &forecast["min_seconds"]), (&2.into(), &0.0.into()));
    assert_eq!(forecast["sites"][0]["interval_seconds"], 1.0);
    let maps = ["/map0.xml", "/map1.xml", "/sitemap.xml"];
    assert_eq!(requested(&origin), maps, "no page");
    // A plan leaves nothing behind that a crawl would stumble over.
    let ended = crawl(&program, &["http://a.test/", "--limit", "1"]).await.expect_code(0);
    assert_eq!(rows(&ended).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_to_a_file_is_resumed_with_another_limit() {
    let script = site(
        "a.test",
        &[
            ("/", &["/1", "/2"]),
            ("/1", &["/3"]),
            ("/2", &["/4"]),
            ("/3", &["/5"]),
            ("/4", &[]),
            ("/5", &[]),
        ],
    );
    let (origin, program) = on([script]);
    let run = async |more: &[&str]| {
        crawl(&program, &[&["http://a.test/", "--output", "rows.jsonl"], more].concat()).await
    };
    run(&["--limit", "2"]).await.expect_code(0);
    let read = || rows_of(&std::fs::read_to_string(program.file("rows.jsonl")).unwrap());
    assert_eq!(read().len(), 2);
    run(&["--limit", "4", "--resume"]).await.expect_code(0);
    assert_eq!(read().len(), 4);
    let ended = run(&["--resume"]).await.expect_code(0);
    assert_eq!(paths(&read()), ["/", "/1", "/2", "/3", "/4", "/5"]);
    assert!(ended.stderr.contains("6 URLs in"), "{}", ended.stderr);
    assert_eq!(origin.repeated_pages(), 0);
    // All is done, and nothing is asked again.
    run(&["--resume"]).await.expect_code(0);
    assert_eq!((read().len(), origin.repeated_pages()), (6, 0));
    // Without --resume it starts over.
    run(&["--limit", "1"]).await.expect_code(0);
    assert_eq!(paths(&read()), ["/"]);
}

/// Without the store, or without the rows, a crawl cannot know what it has done.
#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_is_not_resumed_from_half_of_its_memory() {
    let (origin, program) = on([site("a.test", &[("/", &["/1"]), ("/1", &[])])]);
    let run = ["http://a.test/", "--output", "rows.jsonl"];
    let resume = [&run[..], &["--resume"]].concat();
    crawl(&program, &[&run[..], &["--limit", "1"]].concat()).await.expect_code(0);
    let rows = std::fs::read(program.file("rows.jsonl")).unwrap();
    std::fs::remove_file(program.file("rows.jsonl")).unwrap();
    let refused = crawl(&program, &resume).await.expect_code(2);
    assert!(refused.stderr.contains("rows.jsonl lacks rows"), "{}", refused.stderr);
    std::fs::write(program.file("rows.jsonl"), rows).unwrap();
    let elsewhere = [&["--store", "sqlite:other.db"], &resume[..]].concat();
    let refused = crawl(&program, &elsewhere).await.expect_code(2);
    assert!(refused.stderr.contains("--store"), "{}", refused.stderr);
    crawl(&program, &resume).await.expect_code(0);
    assert_eq!(origin.repeated_pages(), 0);
}

/// The peak memory of a process, and how it ended.
async fn peak_of(mut process: Process) -> (u64, ProcessEnd) {
    let mut peak_bytes = 0;
    while process.is_running() {
        peak_bytes = process.peak_bytes().unwrap_or(peak_bytes);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (peak_bytes, process.wait(DEADLINE).await)
}

/// What a resumed crawl reads of its output does not stay in memory.
#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_the_output_of_a_resumed_crawl() {
    const ROWS: usize = 60_000;
    const MAX_GROWTH_BYTES: u64 = 24 << 20;
    let (_origin, program) = on([]);
    let resume = async |rows: usize| {
        let path = "x".repeat(1_000);
        let row = |n| format!("{{\"url\":\"http://a.test/{n}/{path}\",\"outcome\":\"fetched\"}}\n");
        let text: String = (0..rows).map(row).collect();
        let name = format!("{rows}.jsonl");
        std::fs::write(program.file(&name), text).unwrap();
        let arguments = ["crawl", "http://a.test/", "--output", &name, "--resume"];
        // It reads all rows before it finds that its store does not know them.
        let (peak_bytes, ended) = peak_of(program.start(&arguments)).await;
        assert!(ended.expect_code(2).stderr.contains("this store does not know the crawl"));
        peak_bytes
    };
    let few_bytes = resume(1).await;
    let many_bytes = resume(ROWS).await;
    let grown_bytes = many_bytes.saturating_sub(few_bytes);
    assert!(grown_bytes <= MAX_GROWTH_BYTES, "{} MiB", grown_bytes >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_has_every_page_with_its_row() {
    let script = site("a.test", &[("/", &["/1"]), ("/1", &["/2"])]).text(
        "/2",
        HTML,
        "<meta name=robots content=noindex>",
    );
    let (_origin, program) = on([script]);
    crawl(&program, &["http://a.test/", "--output", "crawl.warc.gz"]).await.expect_code(0);
    let extracted = program.run(&["extract", "--json", "crawl.warc.gz"]).await.expect_code(0);
    let mut urls: Vec<String> = extracted
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["url"].to_string())
        .collect();
    urls.sort();
    assert_eq!(urls, ["\"http://a.test/\"", "\"http://a.test/1\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_explained() {
    let (_origin, program) = on([]);
    for (arguments, said) in [
        (vec!["http://a.test/", "--include", "blog/*"], "begin it with / or *"),
        (vec!["http://a.test/", "--scope", "planet"], "domain"),
        (vec!["http://a.test/", "--limit", "0"], "0 is not in"),
        (vec!["http://a.test/", "--max-time", "soon"], "--max-time"),
        (vec!["http://a.test/", "--since", "yesterday"], "or write a date"),
        (vec!["http://a.test/", "--since", "7d", "--sitemaps", "off"], "--since needs sitemaps"),
        (vec!["http://a.test/", "--resume"], "--output"),
        (vec!["http://a.test/", "--plan", "--output", "x.jsonl"], "--plan"),
        (
            vec!["http://a.test/", "--output", "x.md", "--resume"],
            "--resume needs --format json or warc",
        ),
        (vec!["http://a.test/", "--format", "warc"], "--output FILE.warc.gz"),
    ] {
        let ended = crawl(&program, &arguments).await.expect_code(2);
        assert!(ended.stderr.contains(said), "{arguments:?}: {}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_codes_are_those_of_fetch() {
    let kept_out = "User-agent: *\nDisallow: /private\n";
    let noindex = "<meta name=robots content=noindex>";
    let script = site("a.test", &[("/failed", &["/gone"]), ("/refused", &["/private"])])
        .robots(kept_out)
        .status("/gone", 404)
        .text("/noindex", HTML, noindex)
        .text("/both", HTML, &page("both", &["/gone", "/private"]));
    let (_origin, program) = on([script]);
    for (path, code) in [("noindex", 0), ("refused", 3), ("failed", 4), ("both", 4)] {
        crawl(&program, &[&format!("http://a.test/{path}")]).await.expect_code(code);
    }
}
