//! What is asked, and what is made of the answers.

use super::*;
use crate::doors::samples::{MOMENT, lease, outcome};

const FEED: &str = "<rss><item><link>http://a.test/1</link></item></rss>";

fn feed_plan() -> Box<dyn Plan<Found>> {
    let validators = Validators { etag: Some("\"v1\"".into()), last_modified: Some("then".into()) };
    let payload = serde_json::to_string(&Errand::Feed(validators)).unwrap();
    plan(&lease("http://a.test/rss", &payload), 5)
}

fn link_plan(link: &str) -> Box<dyn Plan<Found>> {
    let payload = serde_json::to_string(&Errand::Link { feed: "f".into() }).unwrap();
    plan(&lease(link, &payload), 5)
}

/// An answer with these headers.
fn answered(status: u16, body: &str, headers: &[(&'static str, &str)]) -> Outcome {
    let mut outcome = outcome(Happened::Answered(status), body);
    for (name, value) in headers {
        let answer = outcome.answer.as_mut().unwrap();
        answer.headers.insert(*name, value.parse().unwrap());
    }
    outcome
}

/// Where a plan goes, one request after another, and what it finds.
fn follow(mut plan: Box<dyn Plan<Found>>, outcomes: Vec<Outcome>) -> (Vec<String>, Option<Found>) {
    let (mut asked, mut outcomes) = (Vec::new(), outcomes.into_iter());
    let mut step = plan.step(None, MOMENT);
    loop {
        match step {
            Step::Fetch(requests) => {
                asked.extend(requests.iter().map(|request| request.url.to_string()));
                step = plan.step(Some(outcomes.next().expect("an answer")), MOMENT);
            }
            Step::Finish(found, _) => return (asked, found.into_iter().next()),
            Step::Halt(why) => panic!("it halts: {why}"),
        }
    }
}

fn reading_of(outcomes: Vec<Outcome>) -> Reading {
    match follow(feed_plan(), outcomes).1 {
        Some(Found::Feed { reading, .. }) => reading,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_asks_for_news_only() {
    let Step::Fetch(requests) = feed_plan().step(None, MOMENT) else { panic!("it fetches") };
    let headers =
        [("if-none-match", "\"v1\"".to_owned()), ("if-modified-since", "then".to_owned())];
    assert_eq!(requests[0].headers, headers);
}

#[test]
fn each_answer_is_a_reading() {
    let read = reading_of(vec![answered(200, FEED, &[("etag", "\"v2\"")])]);
    let Reading::Read { feed, validators, moved_to } = read else { panic!("it is read") };
    assert_eq!((feed.entries.len(), moved_to), (1, None));
    assert_eq!(validators, Validators { etag: Some("\"v2\"".into()), last_modified: None });
    assert!(matches!(reading_of(vec![answered(304, "", &[])]), Reading::Unchanged));
    assert!(matches!(reading_of(vec![answered(410, "", &[])]), Reading::Gone));
    let unsent = |happened| reading_of(vec![outcome(happened, "")]);
    assert!(matches!(unsent(Happened::RobotsDisallow), Reading::Disallowed));
    assert!(matches!(unsent(Happened::DeadlinePassed), Reading::NotReached { .. }));
}

#[test]
fn a_failure_is_told_with_its_reason_and_with_the_wait_that_was_asked_for() {
    for (outcome, said, asked_s) in [
        (answered(404, "", &[]), "404", None),
        (answered(503, "", &[("retry-after", "120")]), "503", Some(120)),
        (answered(429, "", &[("retry-after", "7")]), "429", Some(7)),
        (answered(429, "", &[("retry-after", "soon")]), "429", None),
        (answered(200, "<html><p>Welcome</p></html>", &[]), "it is a page and no feed", None),
        (answered(200, "%PDF", &[]), "neither RSS nor Atom", None),
    ] {
        let Reading::Failed { problem, retry_after } = reading_of(vec![outcome]) else {
            panic!("{said}")
        };
        assert!(problem.contains(said), "{problem}");
        assert_eq!(retry_after, asked_s.map(Duration::from_secs), "{said}");
    }
}

#[test]
fn a_feed_has_moved_when_every_redirect_says_so() {
    let to = |status, place| answered(status, "", &[("location", place)]);
    for (redirects, moved) in [
        (vec![to(301, "/b"), to(308, "/c")], Some("http://a.test/c")),
        (vec![to(301, "/b"), to(302, "/c")], None),
        (vec![to(307, "/b"), to(301, "/c")], None),
        (vec![], None),
    ] {
        let mut answers = redirects;
        answers.push(answered(200, FEED, &[]));
        let Reading::Read { moved_to, .. } = reading_of(answers) else { panic!("it is read") };
        assert_eq!(moved_to.as_ref().map(WebUrl::as_str), moved);
    }
}

#[test]
fn a_link_is_followed_from_service_to_service_and_its_page_is_left_alone() {
    let to = |place: &str| answered(301, "", &[("location", place)]);
    for (answers, asked, page) in [
        (vec![to("http://a.test/1?utm_source=x")], 1, Some("http://a.test/1")),
        (vec![to("https://bit.ly/2"), to("http://a.test/2")], 2, Some("http://a.test/2")),
        (
            vec![to("https://l.facebook.com/l.php?u=http%3A%2F%2Fa.test%2F3")],
            1,
            Some("http://a.test/3"),
        ),
        (vec![to("ftp://a.test/")], 1, None),
        (vec![answered(200, "", &[])], 1, None),
        (vec![answered(404, "", &[])], 1, None),
        (vec![outcome(Happened::RobotsDisallow, "")], 1, None),
        ((0..5).map(|n| to(&format!("https://t.co/{n}"))).collect(), 5, None),
    ] {
        let (requests, found) = follow(link_plan("https://t.co/x"), answers);
        assert_eq!(requests.len(), asked);
        let Some(Found::Link { link, page: found, .. }) = found else { panic!("it ends") };
        assert_eq!((link.as_str(), found.as_ref().map(WebUrl::as_str)), ("https://t.co/x", page));
    }
    let stopped = outcome(Happened::OurFault("stopping".into()), "");
    assert!(follow(link_plan("https://t.co/x"), vec![stopped]).1.is_none(), "it is handed back");
}

#[test]
fn an_address_that_makes_no_sense_is_a_failure_and_nothing_is_asked() {
    let payload = serde_json::to_string(&Errand::Feed(Validators::default())).unwrap();
    let (asked, found) = follow(plan(&lease("ftp://a.test/", &payload), 5), Vec::new());
    assert!(asked.is_empty());
    assert!(matches!(found, Some(Found::Feed { reading: Reading::Failed { .. }, .. })));
}
