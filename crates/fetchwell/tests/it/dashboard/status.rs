//! What each page says first: the status of the process, sites in trouble, and the reason for a message's state.

use fetchwell_testkit::eventually::eventually;

use super::place::{PAGES, Pages, program, send, serve, web};
use super::visit::Visitor;

/// The text between two marks of a page.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = page.split_once(from).unwrap_or_else(|| panic!("{from} is not in\n{page}"));
    rest.split(to).next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_says_whether_the_process_is_healthy_and_links_to_the_cause() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    for path in PAGES {
        let page = operator.page(path).await;
        let status = between(&page, "id=\"status\"", "</section>");
        assert!(status.contains("Healthy") && status.contains("No problem"), "{path}: {status}");
    }
    send(&service, "http://shop.test/page", "fine", true).await;
    for number in 0..6 {
        send(&service, &format!("http://down.test/shelf/{number}"), "down", false).await;
    }
    eventually("a degraded process", async || {
        let page = operator.page("/dashboard/system").await;
        let status = between(&page, "id=\"status\"", "</section>");
        status.contains("Degraded") && status.contains("href=\"/dashboard/sites?is=breaker-open\"")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_in_trouble_come_first_and_columns_are_sorted_in_the_store() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let empty = operator.page("/dashboard/sites").await;
    assert!(empty.contains("No site has been fetched yet") && empty.contains("fetchwell fetch"));
    send(&service, "http://news.test/foxes", "news", true).await;
    send(&service, "http://shop.test/page", "shop", true).await;
    let shop = "/dashboard/sites/shop.test";
    operator.submit(shop, &format!("{shop}/pause"), &[]).await;
    let order = async |path: &str| -> Vec<String> {
        let page = operator.page(path).await;
        let rows = page.split("<th scope=\"row\"><a href=\"/dashboard/sites/").skip(1);
        rows.map(|row| row.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(order("/dashboard/sites").await, ["shop.test", "news.test"]);
    assert_eq!(order("/dashboard/sites?sort=name").await, ["news.test", "shop.test"]);
    assert_eq!(order("/dashboard/sites?sort=limited").await, ["news.test", "shop.test"]);
    send(&service, "http://busy.test/now", "busy", false).await;
    eventually("a 429", async || {
        order("/dashboard/sites?sort=limited").await == ["busy.test", "news.test", "shop.test"]
    })
    .await;
    for (path, head, direction) in [
        ("/dashboard/sites", "Status", "descending"),
        ("/dashboard/sites?sort=name", "Site", "ascending"),
        ("/dashboard/sites?sort=failed", "Failed, 1 h", "descending"),
    ] {
        let page = operator.page(path).await;
        assert_eq!(page.matches("aria-sort=").count(), 1, "{path}");
        let sorted = between(&page, "aria-sort=\"", "</th>");
        assert!(sorted.starts_with(direction) && sorted.contains(&format!(">{head}<")), "{sorted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_says_first_what_happened_and_what_to_do() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let reason = async |id: &str| {
        let page = operator.page(&format!("/dashboard/messages/{id}")).await;
        let reason = between(&page, "id=\"reason\"", "</section>").to_owned();
        assert!(page.find("id=\"reason\"") < page.find("id=\"way\""), "before the timeline");
        reason
    };
    let missing = send(&service, "http://shop.test/missing?1", "missing", true).await;
    let said = reason(&missing).await;
    assert!(said.contains("the server answered 404") && said.contains("check the URL"), "{said}");
    let private = send(&service, "http://private.test/", "private", true).await;
    let said = reason(&private).await;
    assert!(said.contains("robots.txt of the site disallows this URL"), "{said}");
    let done = send(&service, "http://news.test/foxes", "done", true).await;
    assert!(reason(&done).await.contains("The page was fetched: the server answered 200."));
    let news = "/dashboard/sites/news.test";
    operator.submit(news, &format!("{news}/pause"), &[]).await;
    let waits = send(&service, "http://news.test/gone?2", "waits", false).await;
    // An instance holds the message for a moment before the gate says that its site is paused.
    eventually("the message to wait for its site", async || {
        let said = reason(&waits).await;
        said.contains("news.test is paused by") && said.contains("Resume news.test")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_are_searched_by_title_and_url() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let run = async |arguments: &[&str]| service.program().run(arguments).await.expect_code(0);
    run(&["feeds", "add", "http://news.test/feed.xml", "--category", "news"]).await;
    run(&["feeds", "ingest"]).await;
    run(&["articles", "run"]).await;
    for (query, is_found) in
        [("text=FOXES+in", true), ("text=news.test%2Ffox", true), ("text=wolves", false)]
    {
        let page = operator.page(&format!("/dashboard/articles?{query}")).await;
        assert_eq!(page.contains(">Foxes in the city</a>"), is_found, "{query}");
        assert_eq!(page.contains("No title or URL contains this text"), !is_found, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_content_says_what_would_be_there_and_how_to_get_it() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    for (path, what, how) in [
        ("/", "Nothing has been fetched yet", "/fetch"),
        ("/dashboard/messages", "There are no messages yet", "/fetch"),
        ("/dashboard/dead-letters", "No message has failed", "fetchwell messages list"),
        ("/dashboard/articles", "There are no articles", "fetchwell feeds add"),
    ] {
        let page = operator.page(path).await;
        assert!(page.contains(what) && page.contains(how), "{path}: {page}");
    }
    let filtered = operator.page("/dashboard/messages?text=x").await;
    assert!(filtered.contains("No message matches") && !filtered.contains("no messages yet"));
    let pages = Pages::start(program(&origin), &[]).await;
    let operator = Visitor::log_in(pages.address, &pages.token).await;
    assert!(operator.page("/").await.contains("fetchwell pages add"));
    eventually("a count", async || {
        operator.page("/dashboard/dead-letters").await.contains("There are no dead letters")
    })
    .await;
}
