//! The judge and the tallies, on made-up hits.

use std::time::Duration;

use fetchwell_simweb::{
    Hit, HitKind, PaceVerdict, Rule, SimRequest, SiteScript, World, busiest_window, count_status,
    judge, read_hits, write_hits,
};
use http::Method;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

fn hit(site: &str, at_ms: u64, kind: HitKind) -> Hit {
    Hit {
        at: Duration::from_millis(at_ms),
        site: site.into(),
        method: Method::GET,
        path: format!("/{at_ms}").into(),
        status: Some(200),
        user_agent: "test".into(),
        kind,
    }
}

fn pages(site: &str, at_ms: &[u64]) -> Vec<Hit> {
    at_ms.iter().map(|&at_ms| hit(site, at_ms, HitKind::Page)).collect()
}

fn later_ms(verdict: &PaceVerdict) -> Vec<u128> {
    verdict.violations.iter().map(|violation| violation.later.at.as_millis()).collect()
}

#[test]
fn hits_of_one_site_keep_its_interval_and_those_of_two_owe_each_other_nothing() {
    let hits = [pages("a.test", &[0, 1_000, 2_000]), pages("b.test", &[1, 1_001])].concat();
    let verdict = judge(&hits, &Rule::new(SECOND));
    assert!(verdict.is_polite(), "{verdict}");
    assert_eq!(verdict.gaps_judged, 3);
}

#[test]
fn a_gap_too_short_is_named_with_both_hits() {
    let verdict = judge(&pages("a.test", &[0, 999, 2_000]), &Rule::new(SECOND));
    assert_eq!(verdict.violations.len(), 1);
    let violation = &verdict.violations[0];
    assert_eq!((&*violation.site, violation.required), ("a.test", SECOND));
    assert_eq!(violation.gap, Duration::from_millis(999));
    assert_eq!((&*violation.earlier.path, &*violation.later.path), ("/0", "/999"));
    assert_eq!(
        verdict.to_string(),
        "1 of 2 gaps too short\n  a.test: /999 at 999ms came 999ms after /0, owed 1s"
    );
}

#[test]
fn tolerance_forgives_exactly_so_much() {
    let rule = Rule::new(SECOND).tolerance(Duration::from_millis(5));
    assert!(judge(&pages("a.test", &[0, 995]), &rule).is_polite());
    assert!(!judge(&pages("a.test", &[0, 994]), &rule).is_polite());
}

#[test]
fn one_gap_per_thousand_is_forgiven_up_to_the_longest_hold_up() {
    let rule = Rule::new(SECOND).control(Duration::from_millis(5));
    // Evenly spaced pages, except that the first gaps are too short by these amounts.
    let verdict = |gaps: u64, short_by: &[u64]| {
        let mut at_ms = vec![0];
        for gap in 0..gaps {
            let short_by = short_by.get(gap as usize).unwrap_or(&0);
            at_ms.push(at_ms[gap as usize] + 1_000 - short_by);
        }
        let verdict = judge(&pages("a.test", &at_ms), &rule);
        (verdict.stragglers, verdict.violations.len())
    };
    assert_eq!(verdict(1_000, &[5, 5]), (0, 0));
    assert_eq!(verdict(1_000, &[6]), (1, 0));
    assert_eq!(verdict(1_000, &[205]), (1, 0));
    assert_eq!(verdict(1_000, &[206]), (0, 1));
    assert_eq!(verdict(1_000, &[6, 6]), (1, 1));
    assert_eq!(verdict(1_001, &[6, 6, 6]), (2, 1));
    assert_eq!(verdict(1_001, &[206, 6, 6]), (2, 1));
}

#[test]
fn a_straggler_leaves_half_of_what_its_site_is_owed() {
    let rule = Rule::new(Duration::from_millis(100)).control(Duration::from_millis(5));
    assert!(judge(&pages("a.test", &[0, 50]), &rule).is_polite());
    assert!(!judge(&pages("a.test", &[0, 49]), &rule).is_polite());
}

#[test]
fn a_site_may_be_owed_more_than_the_others() {
    let rule = Rule::new(SECOND).site("slow.test", 3 * SECOND);
    assert_eq!(later_ms(&judge(&pages("slow.test", &[0, 2_000, 5_000]), &rule)), [2_000]);
    assert!(judge(&pages("a.test", &[0, 2_000]), &rule).is_polite());
}

#[test]
fn one_page_may_follow_its_robots_txt_at_once_but_no_second_one() {
    let hits = [vec![hit("a.test", 0, HitKind::Robots)], pages("a.test", &[1, 2])].concat();
    assert_eq!(later_ms(&judge(&hits, &Rule::new(SECOND))), [2]);
}

#[test]
fn robots_txt_keeps_its_distance_from_the_hit_before_it() {
    let robots_at = |at_ms| {
        let hits = [pages("a.test", &[0]), vec![hit("a.test", at_ms, HitKind::Robots)]].concat();
        judge(&hits, &Rule::new(SECOND)).is_polite()
    };
    assert!(!robots_at(500));
    assert!(robots_at(1_000));
    let twice = [hit("a.test", 0, HitKind::Robots), hit("a.test", 1, HitKind::Robots)];
    assert!(!judge(&twice, &Rule::new(SECOND)).is_polite());
}

#[test]
fn a_head_request_is_a_hit_like_any_other() {
    let hits = [hit("a.test", 0, HitKind::Robots), hit("a.test", 1, HitKind::Head)];
    assert!(!judge(&hits, &Rule::new(SECOND)).is_polite());
}

#[test]
fn a_world_knows_what_its_crawl_delays_ask_for() {
    let slow = SiteScript::new("Slow.test").crawl_delay(2 * SECOND);
    let quick = SiteScript::new("quick.test").crawl_delay(SECOND / 2);
    let rule = World::new([slow, quick]).rule(SECOND);
    assert_eq!(rule.interval_of("slow.test"), 2 * SECOND);
    assert_eq!(rule.interval_of("quick.test"), SECOND);
    assert_eq!(rule.interval_of("other.test"), SECOND);
}

#[test]
fn tallies_find_the_highest_rate_and_count_statuses() {
    let hits = [pages("a.test", &[0, 999, 1_000, 1_500]), pages("b.test", &[7])].concat();
    let busiest = busiest_window(&hits, SECOND);
    assert_eq!((busiest["a.test"], busiest["b.test"]), (3, 1));

    let world = World::new([SiteScript::new("a.test").strict_limiter(SECOND, None)]);
    for _ in 0..3 {
        world.answer(Duration::ZERO, SimRequest::get("a.test", "/"));
    }
    assert_eq!(count_status(&world.hits(), 429), 2);
}

#[test]
fn a_record_reads_back_and_a_torn_last_line_is_left_out() {
    let mut hits = pages("a.test", &[0, 1_000]);
    hits[1].status = None;
    let mut written = Vec::new();
    write_hits(&mut written, &hits).unwrap();
    assert_eq!(read_hits(written.as_slice()).unwrap(), hits);
    assert_eq!(read_hits(&written[..written.len() - 1]).unwrap(), hits[..1]);
    assert!(read_hits(b"no json\n".as_slice()).is_err());
    assert_eq!(
        String::from_utf8(written).unwrap().lines().next().unwrap(),
        r#"{"at_us":0,"site":"a.test","method":"GET","path":"/0","status":200,"user_agent":"test","kind":"page"}"#
    );
}

proptest! {
    /// The judge sorts for itself: shuffled hits get the same verdict.
    #[test]
    fn the_order_of_the_record_does_not_matter(
        at_ms in proptest::collection::btree_set(0_u64..5_000, 0..40),
    ) {
        let at_ms: Vec<u64> = at_ms.into_iter().collect();
        let backwards: Vec<u64> = at_ms.iter().rev().copied().collect();
        let rule = Rule::new(Duration::from_millis(100));
        let verdict = judge(&pages("a.test", &at_ms), &rule);
        prop_assert_eq!(&verdict, &judge(&pages("a.test", &backwards), &rule));
        let too_short = at_ms.windows(2).filter(|pair| pair[1] - pair[0] < 100).count();
        prop_assert_eq!(verdict.violations.len(), too_short);
    }
}
