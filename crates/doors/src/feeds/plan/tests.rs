//! What is asked, and what is made of the answers.

use fetchwell_engine::web::Why;
use fetchwell_policy::outcome::{NetworkFault, Phase};
use fetchwell_testkit::samples::{MOMENT, NOW, end_with, lease, outcome};

use super::*;

const FEED: &str = "<rss><item><link>http://a.test/1</link></item></rss>";

/// What a URL has been through that has one attempt left, however it fails.
const LAST_ATTEMPT: History =
    History { url_failures: 0, site_failures: 2, paced: 2, first_site_failure: Some(NOW) };

fn feed_lease() -> Lease {
    let validators = Validators { etag: Some("\"v1\"".into()), last_modified: Some("then".into()) };
    let payload = serde_json::to_string(&FeedJob::Feed(validators)).unwrap();
    lease("http://a.test/rss", &payload)
}

fn feed_plan() -> Box<dyn Plan<FeedRecord>> {
    plan(&feed_lease(), 5)
}

/// A link of a feed that is at home at `home.test`.
fn link_lease(link: &str) -> Lease {
    let found_at = WebUrl::parse("http://home.test/rss").unwrap();
    let home = fetchwell_feed::read(FEED.as_bytes(), None, &found_at).unwrap().home;
    let payload = serde_json::to_string(&FeedJob::Link { feed: "f".into(), home }).unwrap();
    lease(link, &payload)
}

/// An answer with these headers.
fn answered(status: u16, body: &str, headers: &[(&'static str, &str)]) -> Outcome {
    let mut outcome = outcome(FetchOutcome::Answered(status), body);
    for (name, value) in headers {
        let answer = outcome.answer.as_mut().unwrap();
        answer.headers.insert(*name, value.parse().unwrap());
    }
    outcome
}

/// Where a plan goes, one request after another, and what it finds.
fn follow(
    mut plan: Box<dyn Plan<FeedRecord>>,
    outcomes: Vec<Outcome>,
) -> (Vec<String>, Option<FeedRecord>) {
    let mut asked = Vec::new();
    let mut outcomes = outcomes.into_iter();
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

fn reading_of(outcomes: Vec<Outcome>) -> FeedReading {
    reading_by(feed_plan(), outcomes)
}

fn reading_by(plan: Box<dyn Plan<FeedRecord>>, outcomes: Vec<Outcome>) -> FeedReading {
    match follow(plan, outcomes).1 {
        Some(FeedRecord::Feed { reading, .. }) => reading,
        other => panic!("{other:?}"),
    }
}

/// How many attempts a lease gets that always ends like this.
fn attempts(mut lease: Lease, happened: &FetchOutcome) -> u32 {
    for attempt in 1..10 {
        match end_with(plan(&lease, 5), outcome(happened.clone(), "")) {
            (found, Settlement::Retry { history, .. }) => {
                assert!(found.is_empty(), "{happened:?}: {found:?}");
                lease.history = history;
            }
            (_, Settlement::Done) => return attempt,
            other => panic!("{happened:?}: {other:?}"),
        }
    }
    panic!("{happened:?} has no end")
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
    let FeedReading::Read { feed, validators, moved_to } = read else { panic!("it is read") };
    assert_eq!((feed.entries.len(), moved_to), (1, None));
    assert_eq!(validators, Validators { etag: Some("\"v2\"".into()), last_modified: None });
    assert!(matches!(reading_of(vec![answered(304, "", &[])]), FeedReading::Unchanged));
    assert!(matches!(reading_of(vec![answered(410, "", &[])]), FeedReading::Gone));
    let unsent = |happened| reading_of(vec![Outcome::unsent(happened, Why::default())]);
    assert!(matches!(unsent(FetchOutcome::RobotsDisallow), FeedReading::Disallowed));
    assert!(matches!(unsent(FetchOutcome::DeadlinePassed), FeedReading::NotReached { .. }));
}

#[test]
fn a_failure_is_told_with_its_reason_and_with_the_wait_that_was_asked_for() {
    for (outcome, said, asked_s) in [
        (answered(404, "", &[]), "404", None),
        (answered(503, "", &[("retry-after", "120")]), "503", Some(120)),
        (answered(429, "", &[("retry-after", "7")]), "429", Some(7)),
        (answered(429, "", &[("retry-after", "soon")]), "429", None),
        (answered(200, "<html><p>Welcome</p></html>", &[]), "it is a web page, not a feed", None),
        (answered(200, "%PDF", &[]), "neither RSS nor Atom", None),
    ] {
        let last = Lease { history: LAST_ATTEMPT, ..feed_lease() };
        let FeedReading::Failed { problem, retry_after } =
            reading_by(plan(&last, 5), vec![outcome])
        else {
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
        let FeedReading::Read { moved_to, .. } = reading_of(answers) else { panic!("it is read") };
        assert_eq!(moved_to.as_ref().map(WebUrl::as_str), moved);
    }
}

#[test]
fn what_may_pass_is_tried_three_times_and_what_stays_is_not() {
    for (happened, expected) in [
        (FetchOutcome::Network(NetworkFault::ConnectRefused), 3),
        (FetchOutcome::TimedOut(Phase::Read), 3),
        (FetchOutcome::Answered(503), 3),
        (FetchOutcome::Answered(429), 3),
        (FetchOutcome::Answered(500), 3),
        (FetchOutcome::Answered(404), 1),
        (FetchOutcome::Answered(403), 1),
        (FetchOutcome::RobotsDisallow, 1),
        (FetchOutcome::SiteStayedDown { since: NOW, last_failure: None }, 1),
    ] {
        assert_eq!(attempts(feed_lease(), &happened), expected, "a feed: {happened:?}");
        let link = link_lease("https://t.co/x");
        assert_eq!(attempts(link, &happened), expected, "a link: {happened:?}");
    }
}

#[test]
fn what_would_come_again_after_its_deadline_has_failed_now() {
    let deadline = Some(NOW + Duration::from_secs(60));
    let due = |lease: Lease| Lease { job: Job { deadline, ..lease.job }, ..lease };
    for (asked_s, is_over) in [(59, false), (60, true), (7_200, true)] {
        let resting = || {
            let mut outcome = answered(503, "", &[("retry-after", &asked_s.to_string())]);
            outcome.retry_after = Some(Duration::from_secs(asked_s));
            outcome
        };
        let found = follow(plan(&due(feed_lease()), 5), vec![resting()]).1;
        let Some(FeedRecord::Feed { reading, .. }) = found else {
            assert!(!is_over, "{asked_s} s: it is not over");
            continue;
        };
        assert!(is_over, "{asked_s} s: {reading:?}");
        let FeedReading::Failed { retry_after, .. } = reading else { panic!("{reading:?}") };
        assert_eq!(retry_after, Some(Duration::from_secs(asked_s)));
        let found = follow(plan(&due(link_lease("http://b.test/1")), 5), vec![resting()]).1;
        assert!(matches!(found, Some(FeedRecord::Link { page: Some(_), .. })), "{found:?}");
    }
}

#[test]
fn a_feed_that_failed_and_had_no_other_turn_has_failed() {
    let again = Lease { history: LAST_ATTEMPT, ..feed_lease() };
    let late = Outcome::unsent(FetchOutcome::DeadlinePassed, Why::default());
    let reading = reading_by(plan(&again, 5), vec![late]);
    assert!(matches!(reading, FeedReading::Failed { .. }), "{reading:?}");
}

#[test]
fn a_link_is_followed_until_it_comes_home_or_to_a_page() {
    let to = |place: &str| answered(301, "", &[("location", place)]);
    let ok = || answered(200, "", &[]);
    let unsent = |happened| Outcome::unsent(happened, Why::default());
    let service = "https://t.co/x";
    let other = "http://b.test/1";
    for (link, answers, asked, page) in [
        // Pages of the feed's own site are left alone.
        (service, vec![to("http://home.test/1?utm_source=x")], 1, Some("http://home.test/1")),
        (other, vec![to("http://www.home.test/1")], 1, Some("http://www.home.test/1")),
        (
            service,
            vec![to("https://l.facebook.com/l.php?u=http%3A%2F%2Fhome.test%2F3")],
            1,
            Some("http://home.test/3"),
        ),
        (
            service,
            vec![to("https://bit.ly/2"), to("http://home.test/2")],
            2,
            Some("http://home.test/2"),
        ),
        // All others are asked, until one sends nobody on.
        (other, vec![ok()], 1, Some(other)),
        (service, vec![ok()], 1, Some(service)),
        (service, vec![to("http://c.test/1?utm_source=x"), ok()], 2, Some("http://c.test/1")),
        (
            other,
            vec![to("http://c.test/"), to("https://c.test/"), ok()],
            3,
            Some("https://c.test/"),
        ),
        // A page that can't be asked is one all the same; where services lead nobody knows then.
        (other, vec![answered(404, "", &[])], 1, Some(other)),
        (other, vec![unsent(FetchOutcome::RobotsDisallow)], 1, Some(other)),
        (other, vec![to("ftp://c.test/")], 1, Some(other)),
        (service, vec![to("http://c.test/1"), answered(403, "", &[])], 2, Some("http://c.test/1")),
        (other, vec![to(service), answered(404, "", &[])], 2, None),
        (service, vec![to("ftp://c.test/")], 1, None),
        (service, vec![answered(404, "", &[])], 1, None),
        (service, vec![unsent(FetchOutcome::RobotsDisallow)], 1, None),
        (other, vec![unsent(FetchOutcome::DeadlinePassed)], 1, None),
        // Circles have an end.
        (service, (0..5).map(|n| to(&format!("https://t.co/{n}"))).collect(), 5, None),
        (other, (0..5).map(|_| to(other)).collect(), 5, Some(other)),
    ] {
        let (requests, found) = follow(plan(&link_lease(link), 5), answers);
        assert_eq!(requests.len(), asked, "{link}: {requests:?}");
        let Some(FeedRecord::Link { link: of, page: found, .. }) = found else { panic!("it ends") };
        assert_eq!((of.as_str(), found.as_ref().map(WebUrl::as_str)), (link, page), "{requests:?}");
    }
    let stopped = unsent(FetchOutcome::OurFault("stopping".into()));
    let found = follow(plan(&link_lease(service), 5), vec![stopped]).1;
    assert!(found.is_none(), "it comes again");
}

#[test]
fn an_address_that_makes_no_sense_is_a_failure_and_nothing_is_asked() {
    let payload = serde_json::to_string(&FeedJob::Feed(Validators::default())).unwrap();
    let (asked, found) = follow(plan(&lease("ftp://a.test/", &payload), 5), Vec::new());
    assert!(asked.is_empty());
    assert!(matches!(found, Some(FeedRecord::Feed { reading: FeedReading::Failed { .. }, .. })));
}
