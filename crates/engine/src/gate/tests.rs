//! How a gate applies its rules to the records in its store.

use std::collections::HashMap;

use fetchwell_policy::breaker::{BreakerRule, State};
use fetchwell_policy::orders::Order;

use super::*;
use crate::memory::MemoryPoliteness;
use crate::ports::politeness::Unreachable;

const DAY: Duration = Duration::from_secs(86_400);
const NOW: Time = Time::from_secs(100_000_000);

fn gate(when_unreachable: WhenUnreachable) -> Gate {
    let clock = Clock::new(|| NOW);
    let politeness = MemoryPoliteness::new(clock.clone(), BreakerRule::default(), 1);
    let site = |name: &str| Site::parse(name).unwrap();
    let rules = GateRules {
        pace: PaceRules {
            default_interval: Duration::from_secs(1),
            sites: HashMap::from([(site("slow.test"), Duration::from_secs(3))]),
            concurrency: HashMap::from([(site("archive.test"), 8)]),
            groups: GroupPace {
                at_sites: HashMap::from([("quick".to_owned(), Rate::per_second(10.0, 20))]),
                ..GroupPace::default()
            },
        },
        robots: RobotsRules {
            product_token: "TestBot".to_owned(),
            when_unreachable,
            fresh_for: DAY,
            stale_for: 30 * DAY,
            max_crawl_delay: Some(Duration::from_secs(60)),
            pages_fail_with_it: false,
        },
        give_up_after: None,
        site_attempts: None,
        missing_hosts_fail: false,
    };
    Gate::new(Arc::new(politeness), rules, clock)
}

fn record(age: Duration, body: Option<&str>, retry_in_s: Option<i64>) -> RobotsRecord {
    RobotsRecord {
        body: body.map(|text| text.as_bytes().to_vec()),
        status: None,
        fetched_at: NOW - age,
        unreachable: retry_in_s.map(|secs| Unreachable {
            since: NOW - age,
            tries: 1,
            retry_at: Time::from_micros(NOW.as_micros() + secs * 1_000_000),
            is_asked_for: false,
            reason: "503".to_owned(),
            recoveries: 0,
        }),
        robots_forgotten: None,
    }
}

/// What a record means: `?` must be fetched, `-` blocked, else whether `/` is allowed.
fn means(when: WhenUnreachable, record: Option<&RobotsRecord>) -> &'static str {
    word_for(&gate(when).view(record, Some(&SiteState::default())))
}

fn word_for(view: &RobotsView) -> &'static str {
    match view {
        RobotsView::Fetch => "?",
        RobotsView::Blocked { .. } => "-",
        RobotsView::Refused(_) => "refused",
        RobotsView::Known { robots, .. } if robots.verdict("/").allowed => "allowed",
        RobotsView::Known { .. } => "disallowed",
    }
}

#[test]
fn a_file_that_could_not_be_read_is_read_when_the_site_has_answered_again() {
    use WhenUnreachable::*;
    let mut back = SiteState::default();
    back.health.recovered();
    let mut down = SiteState::default();
    down.breaker.state = State::Open { probe_at: NOW, failed_probes: 0 };
    let unread = record(DAY, None, Some(300));
    let with_copy = record(DAY, Some(""), Some(300));
    let read = record(DAY / 2, Some(""), None);
    for when in [Defer, Allow, Disallow] {
        for state in [&back, &down] {
            let word = |record| word_for(&gate(when).view(Some(record), Some(state)));
            assert_eq!((word(&unread), word(&with_copy)), ("?", "?"), "{when:?} {state:?}");
            assert_eq!(word(&read), "allowed", "a file that was read stays good");
        }
    }
}

#[test]
fn what_a_page_waits_for_is_told_in_one_way() {
    let rules = gate(WhenUnreachable::Defer).rules;
    let rate = Rate::every(Duration::from_secs(1));
    let unread = record(DAY, None, Some(40));
    let outlook = |state: &SiteState, robots: Option<&RobotsRecord>| {
        let Outlook { held_up_by, next_slot_in } = rules.outlook(state, rate, robots, (NOW, NOW));
        (held_up_by, next_slot_in.map(|wait| wait.as_secs()))
    };
    let mut state = SiteState::default();
    assert_eq!(outlook(&state, None), (None, Some(0)));
    assert_eq!(outlook(&state, Some(&unread)), (Some("robots"), Some(40)));
    state.penalty_until = NOW + Duration::from_secs(9);
    assert_eq!(outlook(&state, None), (Some("penalty"), Some(9)));
    assert_eq!(outlook(&state, Some(&unread)), (Some("penalty"), Some(40)));
    let probe_at = NOW + Duration::from_secs(20);
    state.breaker.state = State::Open { probe_at, failed_probes: 0 };
    assert_eq!(outlook(&state, Some(&unread)), (Some("breaker"), Some(20)));
    state.breaker.state = State::Closed;
    state.penalty_until = NOW;
    state.health.recovered();
    assert_eq!(outlook(&state, Some(&unread)), (None, Some(0)), "it is read at once");
    state.obey(Order::Pause, "ann", NOW);
    assert_eq!(outlook(&state, Some(&unread)), (Some("paused"), None));
}

#[test]
fn a_copy_is_fresh_for_a_day_and_stands_in_for_thirty() {
    use WhenUnreachable::*;
    let closed = Some("User-agent: *\nDisallow: /");
    for (when, record, expected) in [
        (Defer, None, "?"),
        (Defer, Some(record(DAY / 2, closed, None)), "disallowed"),
        (Defer, Some(record(DAY / 2, Some(""), None)), "allowed"),
        (Defer, Some(record(2 * DAY, closed, None)), "?"),
        (Defer, Some(record(2 * DAY, closed, Some(9))), "disallowed"),
        (Allow, Some(record(29 * DAY, closed, Some(9))), "disallowed"),
        (Allow, Some(record(31 * DAY, closed, Some(9))), "allowed"),
        (Disallow, Some(record(31 * DAY, Some(""), Some(9))), "disallowed"),
        (Defer, Some(record(31 * DAY, closed, Some(9))), "-"),
        (Defer, Some(record(DAY, None, Some(9))), "-"),
        (Allow, Some(record(DAY, None, Some(9))), "allowed"),
        (Disallow, Some(record(DAY, None, Some(9))), "disallowed"),
        (Defer, Some(record(DAY, None, Some(-1))), "?"),
        (Allow, Some(record(DAY, None, Some(-1))), "?"),
    ] {
        assert_eq!(means(when, record.as_ref()), expected, "{when:?} {record:?}");
    }
}

#[test]
fn the_longest_of_rate_setting_and_crawl_delay_is_the_pace() {
    let gate = gate(WhenUnreachable::Defer);
    let pace = |site: &str, delay_s: Option<u64>| {
        let (rate, source) =
            gate.rules.rate(&Site::parse(site).unwrap(), delay_s.map(Duration::from_secs));
        (rate.interval.as_secs(), source)
    };
    assert_eq!(pace("a.test", None), (1, "default rate"));
    assert_eq!(pace("a.test", Some(5)), (5, "Crawl-delay"));
    assert_eq!(pace("a.test", Some(0)), (1, "default rate"));
    assert_eq!(pace("slow.test", Some(2)), (3, "site setting"));
    assert_eq!(pace("archive.test", Some(5)), (0, "concurrency"));
}

#[test]
fn the_limit_of_a_group_is_its_sites_pace_unless_the_site_has_its_own() {
    let gate = gate(WhenUnreachable::Defer);
    let pace = |site: &str, delay_ms: Option<u64>, group: Option<&str>| {
        let site = Site::parse(site).unwrap();
        let (rate, source) = gate.rules.rate_for(&site, delay_ms.map(Duration::from_millis), group);
        (rate.interval.as_millis(), rate.burst, source)
    };
    let quick = Some("quick");
    assert_eq!(pace("a.test", None, quick), (100, 20, "retailer limit"));
    assert_eq!(pace("a.test", None, Some("other")), (1_000, 1, "default rate"));
    assert_eq!(pace("a.test", None, None), (1_000, 1, "default rate"));
    assert_eq!(pace("a.test", Some(5_000), quick), (5_000, 1, "Crawl-delay"));
    assert_eq!(pace("a.test", Some(50), quick), (100, 1, "retailer limit"));
    assert_eq!(pace("slow.test", None, quick), (3_000, 1, "site setting"));
    assert_eq!(pace("archive.test", None, quick), (0, 1, "concurrency"));
}

#[test]
fn a_wait_is_too_long_where_somebody_gives_up_sooner() {
    let mut gate = gate(WhenUnreachable::Defer);
    let hour = Duration::from_secs(3_600);
    assert_eq!(gate.wait_too_long(WaitAskedBy::RetryAfter, hour), None);
    gate.rules.give_up_after = Some(Duration::from_secs(600));
    assert!(gate.wait_too_long(WaitAskedBy::RetryAfter, hour).is_some());
    assert_eq!(gate.wait_too_long(WaitAskedBy::RetryAfter, hour / 6), None);
}

#[test]
fn a_probe_asks_for_the_root_only_where_it_may() {
    let origin = Origin::parse("https://a.test").unwrap();
    let open = Robots::allow_all();
    let closed = Robots::disallow_all();
    let probe = |when, robots| gate(when).probe_url(&origin, robots, None).as_str().to_owned();
    assert_eq!(probe(WhenUnreachable::Defer, Some(&open)), "https://a.test/");
    assert_eq!(probe(WhenUnreachable::Allow, Some(&closed)), "https://a.test/robots.txt");
    assert_eq!(probe(WhenUnreachable::Defer, None), "https://a.test/robots.txt");
    assert_eq!(probe(WhenUnreachable::Allow, None), "https://a.test/");
    let copy = Some(&b"User-agent: *\nDisallow: /"[..]);
    let by_copy = gate(WhenUnreachable::Allow).probe_url(&origin, None, copy);
    assert_eq!(by_copy.as_str(), "https://a.test/robots.txt");
}

#[test]
fn a_crawl_delay_beyond_the_limit_is_a_refusal() {
    let gate = gate(WhenUnreachable::Defer);
    let asks =
        |secs: u32| Robots::parse(format!("User-agent: *\nCrawl-delay: {secs}").as_bytes(), "x");
    assert_eq!(gate.crawl_delay_refusal(&asks(60)), None);
    assert!(gate.crawl_delay_refusal(&asks(61)).is_some());
}
