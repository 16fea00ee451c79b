//! The dead letters of `pages`.

use fetchwell_testkit::eventually::eventually;
use serde_json::Value;

use super::place::{Pages, program, web};
use super::visit::{Visitor, hidden, text};

const GROUP: &str = "/dashboard/dead-letters/group?reason=the+server+answered+404&site=shop.test";

async fn listed(pages: &Pages) -> Vec<String> {
    let exported = pages.program.run(&["dlq", "export"]).await.expect_code(0).stdout;
    let url = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["url"].as_str().unwrap().to_owned()
    };
    exported.lines().map(url).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_grouped_tried_anew_dropped_and_exported() {
    let origin = web();
    let urls: Vec<String> = (0..14).map(|n| format!("http://shop.test/missing?{n}")).collect();
    let mut all: Vec<&str> = urls.iter().map(String::as_str).collect();
    all.extend(["http://10.0.0.1/<at>", "http://news.test/gone"]);
    let pages = Pages::start(program(&origin), &all).await;
    let operator = Visitor::log_in(pages.address, &pages.token).await;
    eventually("16 dead letters", async || listed(&pages).await.len() == 16).await;
    eventually("their count", async || {
        operator.page("/dashboard/dead-letters").await.contains("16 as of")
    })
    .await;
    let page = operator.page("/dashboard/dead-letters").await;
    assert!(
        page.contains("the server answered 404") && page.contains("http://10.0.0.1/&#60;at&#62;"),
        "{page}"
    );

    let group = operator.page(GROUP).await;
    assert!(
        group.contains("<strong>14</strong> matching as of") && group.contains("Drop all 14"),
        "{group}"
    );
    assert!(group.contains(
        "fetchwell dlq drop --reason &#39;the server answered 404&#39; --site shop.test"
    ));
    let revise = async |fields: &[(&str, &str)]| {
        operator.submit(GROUP, "/dashboard/dead-letters/revise", fields).await;
        let said = operator.page(GROUP).await;
        said.split("class=\"notice ")
            .nth(1)
            .unwrap_or_default()
            .split('<')
            .next()
            .unwrap()
            .to_owned()
    };
    let said = revise(&[("what", "drop"), ("url", &urls[0])]).await;
    assert!(said.contains("Dropped: 1."), "{said}");
    let earlier = hidden(&group, "as_of");
    let meant =
        [("reason", "the server answered 404"), ("site", "shop.test"), ("as_of", earlier.as_str())];
    let said = revise(&[&meant[..], &[("what", "retry"), ("canary", "1")]].concat()).await;
    assert!(said.contains("Retried: 10."), "{said}");
    // Those ten die again, and so were not there to see by then.
    eventually("13 dead letters of the group", async || listed(&pages).await.len() == 15).await;
    let said = revise(&[&meant[..], &[("what", "drop")]].concat()).await;
    assert!(said.contains("Dropped: 3."), "{said}");
    assert_eq!(listed(&pages).await.len(), 12);

    let exported = operator.get("/dashboard/dead-letters/export").await;
    assert!(exported.header("content-disposition").unwrap().contains("dead-letters.jsonl"));
    // What says how long each piece is stands between them.
    assert_eq!(text(&exported).lines().filter(|line| line.starts_with('{')).count(), 12);
    let audit = operator.page("/dashboard/system").await;
    assert!(audit.contains("retry_dead_letters") && audit.contains("drop_dead_letters"));
}
