//! Orders hit what they name, only that, and are kept in the audit.

use fetchwell_testkit::eventually::eventually;
use serde_json::Value;

use super::place::{send, serve, web};
use super::visit::{Visitor, hidden, text};

async fn site(service: &fetchwell_testkit::crash::Service, name: &str) -> Value {
    let shown = service.program().run(&["--json", "sites", "show", name]).await.expect_code(0);
    serde_json::from_str(&shown.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_to_a_site_stand_in_the_store() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let page = "/dashboard/sites/shop.test";
    let order = async |word: &str, fields: &[(&str, &str)]| {
        let answer = operator.submit(page, &format!("{page}/{word}"), fields).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(page)), "{word}");
        operator.page(page).await
    };
    let said = order("pause", &[]).await;
    assert!(
        said.contains("shop.test is paused") && said.contains("fetchwell sites resume shop.test")
    );
    assert_eq!(site(&service, "shop.test").await["held_up_by"], "paused");
    assert_eq!(site(&service, "slow.test").await["held_up_by"], Value::Null, "only what was named");
    assert!(order("pause", &[]).await.contains("is already in this state"));
    order("resume", &[]).await;
    assert_ne!(site(&service, "shop.test").await["held_up_by"], "paused");
    let said = order("set-rate", &[("rate", "0.25")]).await;
    assert!(said.contains("every 4.0 s (operator"), "{said}");
    assert!(order("set-rate", &[("rate", "0")]).await.contains("0 disables pacing"));
    assert!(order("set-rate", &[("rate", "fast")]).await.contains("must be 0, or from"));
    assert_eq!(site(&service, "shop.test").await["pace"]["interval_seconds"], 4.0);
    order("clear-rate", &[]).await;
    order("reset-breaker", &[]).await;
    order("refetch-robots", &[]).await;
    let audit = operator.page("/dashboard/system").await;
    for action in ["pause_site", "resume_site", "set_site_rate", "clear_site_rate"] {
        assert!(audit.contains(action), "{action}");
    }
    assert_eq!(operator.submit(page, &format!("{page}/explode"), &[]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_tried_anew_as_they_were_seen() {
    let origin = web();
    let service = serve(&origin).await;
    for number in 0..3 {
        send(&service, &format!("http://shop.test/missing?{number}"), "seen", true).await;
    }
    let operator = Visitor::log_in(service.address, &service.token).await;
    let list = "/dashboard/messages?state=failed&site=shop.test";
    let page = operator.page(list).await;
    assert!(page.contains("3 matching as of") && page.contains("Retry all 3"), "{page}");
    let as_of = hidden(&page, "as_of");
    let exported = operator.get("/dashboard/dead-letters/export").await;
    assert!(exported.header("content-disposition").unwrap().contains("dead-letters.jsonl"));
    // What says how long each piece is stands between them.
    assert_eq!(text(&exported).lines().filter(|line| line.starts_with('{')).count(), 3);
    let late = send(&service, "http://shop.test/missing?late", "late", true).await;

    let fields =
        [("what", "retry"), ("state", "failed"), ("site", "shop.test"), ("as_of", as_of.as_str())];
    let canary = [&fields[..], &[("canary", "1")]].concat();
    let answer = operator.submit(list, "/dashboard/messages/act", &canary).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some(list)));
    assert!(operator.page(list).await.contains("Retried: 1."));
    operator.submit(list, "/dashboard/messages/act", &fields).await;
    assert!(operator.page(list).await.contains("Retried: 2. Unchanged: 1."));
    assert!(
        !operator.page(&format!("/dashboard/messages/{late}")).await.contains("Retried as"),
        "it came later"
    );

    let one = format!("/dashboard/messages/{late}");
    operator.submit(&one, "/dashboard/messages/act", &[("what", "retry"), ("id", &late)]).await;
    assert!(operator.page(&one).await.contains("is retried as"));
    let without =
        operator.submit(list, "/dashboard/messages/act", &[("what", "retry"), ("state", "failed")]);
    assert_eq!(without.await.status, 400, "as of when?");
    assert!(operator.page("/dashboard/system").await.contains("retry_messages"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_message_is_cancelled_and_its_way_is_told() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let id = send(&service, "http://busy.test/now", "held", false).await;
    let page = format!("/dashboard/messages/{id}");
    eventually("a message that waits", async || operator.page(&page).await.contains(">delayed<"))
        .await;
    operator.submit(&page, "/dashboard/messages/act", &[("what", "cancel"), ("id", &id)]).await;
    let said = operator.page(&page).await;
    assert!(said.contains("was cancelled") && said.contains(">failed<"), "{said}");
    let done = send(&service, "http://news.test/foxes", "told", true).await;
    let told = operator.page(&format!("/dashboard/messages/{done}")).await;
    for stage in
        ["Queued", "robots.txt known", "First byte", "Result stored", "the server answered 200"]
    {
        assert!(told.contains(stage), "{stage} in {told}");
    }
}
