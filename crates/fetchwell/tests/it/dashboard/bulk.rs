//! Several rows at once: what is selected is acted on, and nothing else.

use fetchwell_testkit::eventually::eventually;

use super::place::{Pages, program, send, serve, web};
use super::visit::{Visitor, hidden};

/// The values of the check boxes of a page.
fn boxes(page: &str, name: &str) -> Vec<String> {
    let mark = format!("form=\"bulk\" name=\"{name}\" value=\"");
    page.split(&mark).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

fn notice(page: &str) -> String {
    let said = page.split("class=\"notice ").nth(1).unwrap_or_default();
    said.split('<').next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_messages_are_retried_and_the_others_stay() {
    let origin = web();
    let service = serve(&origin).await;
    for number in 0..3 {
        send(&service, &format!("http://shop.test/missing?{number}"), "bulk", true).await;
    }
    let operator = Visitor::log_in(service.address, &service.token).await;
    let list = "/dashboard/messages?state=failed&site=shop.test";
    let page = operator.page(list).await;
    let ids = boxes(&page, "id");
    assert_eq!((ids.len(), page.matches(" checked").count()), (3, 0), "{page}");
    let all = operator.page(&format!("{list}&select=all")).await;
    assert_eq!(all.matches(" checked>").count(), 3, "all of this page, without a script");
    let back = format!("name=\"back\" value=\"{}\"", list.replace('&', "&#38;"));
    assert!(all.contains(&back), "and none after the action: {all}");

    let act = async |fields: &[(&str, &str)]| {
        operator.submit(list, "/dashboard/messages/act", fields).await;
        notice(&operator.page(list).await)
    };
    let as_of = hidden(&page, "as_of");
    let two = [
        ("what", "retry"),
        ("as_of", as_of.as_str()),
        ("id", ids[0].as_str()),
        ("id", ids[2].as_str()),
    ];
    let said = act(&two).await;
    assert!(said.contains("Retried: 2."), "{said}");
    let said = act(&[&two[..], &[("id", ids[1].as_str())]].concat()).await;
    assert!(said.contains("Retried: 1. Unchanged: 2; for example,"), "{said}");
    assert!(said.contains("already retried as"), "{said}");
    let answer =
        operator.submit(list, "/dashboard/messages/act", &[("what", "retry"), ("id", "x")]);
    assert_eq!(answer.await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_groups_of_failed_messages_are_retried() {
    let origin = web();
    let service = serve(&origin).await;
    for number in 0..2 {
        send(&service, &format!("http://shop.test/missing?{number}"), "bulk", true).await;
    }
    send(&service, "http://news.test/gone", "bulk", true).await;
    send(&service, "http://private.test/", "bulk", true).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let list = "/dashboard/dead-letters";
    let page = operator.page(list).await;
    let groups = boxes(&page, "group");
    assert_eq!(groups.len(), 3, "{page}");
    let as_of = hidden(&page, "as_of");
    let act = async |fields: &[(&str, &str)]| {
        let answer = operator.submit(list, "/dashboard/dead-letters/bulk", fields).await;
        (answer.status, notice(&operator.page(list).await))
    };
    let none = [("what", "retry"), ("as_of", as_of.as_str())];
    assert!(act(&none).await.1.contains("select at least one row"));
    // The largest group is first.
    let (status, said) = act(&[&none[..], &[("group", groups[0].as_str())]].concat()).await;
    assert_eq!(status, 303);
    assert!(said.contains("Retried: 2 in 1 group (2 of shop.test: http_error 404)"), "{said}");
    let (_, said) = act(&[&none[..], &[("group", "0123456789abcdef")]].concat()).await;
    assert!(said.contains("no longer exists"), "{said}");
    let dropped = [("what", "drop"), ("as_of", as_of.as_str()), ("group", groups[0].as_str())];
    assert_eq!(act(&dropped).await.0, 400, "a failed message is not dropped");
    let audit = operator.page("/dashboard/system").await;
    assert!(audit.contains("retry_messages") && audit.contains("2 of shop.test: http_error 404"));

    let viewer = service.caller("looker", "viewer").await;
    let viewer = Visitor::log_in(service.address, &viewer).await;
    assert!(boxes(&viewer.page(list).await, "group").is_empty());
    let answer = viewer.submit(list, "/dashboard/dead-letters/bulk", &none).await;
    assert_eq!(answer.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_letters_and_groups_of_letters_are_dropped() {
    let origin = web();
    let urls = (0..4).map(|n| format!("http://shop.test/missing?{n}"));
    let all: Vec<String> = urls.chain(["http://news.test/gone".to_owned()]).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let pages = Pages::start(program(&origin), &all).await;
    let operator = Visitor::log_in(pages.address, &pages.token).await;
    let list = "/dashboard/dead-letters";
    eventually("5 letters", async || operator.page(list).await.contains("5 as of")).await;
    let page = operator.page(list).await;
    assert!(page.contains("Drop all 4") && page.contains("Retry 10"), "the same actions: {page}");
    let as_of = hidden(&page, "as_of");
    let of_group = "/dashboard/dead-letters/group?reason=the+server+answered+404&site=shop.test";
    let act = async |back: &str, fields: &[(&str, &str)]| {
        let common = [("what", "drop"), ("as_of", as_of.as_str())];
        let fields = [&common[..], fields].concat();
        operator.submit(back, "/dashboard/dead-letters/bulk", &fields).await;
        notice(&operator.page(back).await)
    };
    let letters = boxes(&operator.page(of_group).await, "letter");
    assert_eq!(letters.len(), 4);
    let said =
        act(of_group, &[("letter", letters[0].as_str()), ("letter", letters[3].as_str())]).await;
    assert!(said.contains("Dropped: 2."), "{said}");
    let said =
        act(of_group, &[("letter", letters[0].as_str()), ("letter", letters[1].as_str())]).await;
    assert!(said.contains("Dropped: 1. No longer there: 1."), "{said}");
    eventually("2 letters", async || operator.page(list).await.contains("2 as of")).await;
    let groups = boxes(&operator.page(list).await, "group");
    let groups: Vec<(&str, &str)> = groups.iter().map(|group| ("group", group.as_str())).collect();
    assert_eq!(groups.len(), 2);
    let said = act(list, &groups).await;
    assert!(said.contains("Dropped: 2 in 2 groups ("), "{said}");
}
