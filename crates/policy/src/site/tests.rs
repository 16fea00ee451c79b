//! How the state of a site answers requests for permits, and how reports change it.

use proptest::prelude::*;

use super::*;
use crate::breaker::Transition;
use crate::health::FailedProbes;
use crate::outcome::{Mark, SiteFault};

const RATE: Rate = Rate::every(Duration::from_secs(1));

fn rule() -> BreakerRule {
    BreakerRule { jitter_share: 0.0, ..BreakerRule::default() }
}

fn at(secs: i64) -> Time {
    Time::from_secs(1_000 + secs)
}

fn report(mark: Mark, retry_after_s: Option<u64>, generation: u64) -> Report {
    Report { mark, retry_after: retry_after_s.map(Duration::from_secs), generation }
}

fn go(state: &mut SiteState, now: Time) -> Permit {
    match state.ask(now, RATE, false, &rule()) {
        Verdict::Go(permit) => permit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_page_may_follow_its_robots_txt_at_once_and_the_next_may_not() {
    let mut state = SiteState::default();
    go(&mut state, at(0));
    let Verdict::Go(page) = state.ask(at(0), RATE, true, &rule()) else { panic!() };
    assert_eq!(page.slot.at, at(0));
    assert!(go(&mut state, at(0)).slot.at >= at(1));
}

#[test]
fn a_shorter_rest_does_not_end_a_longer_one() {
    let mut state = SiteState::default();
    for (secs, rest) in [(0, 60), (1, 5), (2, 70)] {
        let generation = state.generation;
        state.record(&report(Mark::Neutral, Some(rest), generation), at(secs), &rule(), 0.0);
    }
    assert_eq!(state.penalty_until, at(72));
    state.record(&report(Mark::Limited, Some(1), state.generation), at(3), &rule(), 0.0);
    assert_eq!(state.penalty_until, at(72));
}

#[test]
fn a_late_head_counts_from_when_it_left_however_late_that_is_told() {
    let late = |by: Time, told: Time| {
        let mut state = SiteState::default();
        let permit = go(&mut state, at(0));
        assert_eq!(state.spend(&permit, at(1), RATE), Spend::Go);
        state.record(&report(Mark::LeftLate { by }, None, 0), told, &rule(), 0.0);
        go(&mut state, told).slot.at
    };
    let ms = |ms: u64| at(1) + Duration::from_millis(ms);
    assert_eq!(late(ms(30), ms(400)), ms(1_030));
    // A departure time that is later than its report is clamped to the time of the report.
    assert_eq!(late(ms(30), ms(20)), ms(1_020));
}

/// The answer of the store to the first process is slow, and a third one asks for a slot meanwhile.
#[test]
fn a_head_that_may_still_leave_keeps_its_distance_whoever_asks_meanwhile() {
    let mut state = SiteState::default();
    go(&mut state, at(-60));
    let first = go(&mut state, at(0));
    let held = go(&mut state, at(0));
    let lead = Duration::from_millis(700);
    assert_eq!(state.spend(&Permit { lead, ..first }, at(0), RATE), Spend::Go);
    go(&mut state, at(0) + Duration::from_millis(100));
    let Spend::Wait(held) = state.spend(&held, at(1) + Duration::from_millis(300), RATE) else {
        panic!("the first head may have left 600 ms ago");
    };
    assert_eq!(held.slot.at, at(1) + lead);
    assert_eq!(state.spend(&held, held.slot.at, RATE), Spend::Go);
}

#[test]
fn a_429_rests_the_site_voids_what_was_reserved_and_leaves_the_breaker_alone() {
    let mut state = SiteState::default();
    let sent = go(&mut state, at(0));
    let reserved = go(&mut state, at(0));
    state.record(&report(Mark::Limited, Some(60), sent.generation), at(0), &rule(), 0.0);
    assert_eq!(state.spend(&reserved, at(1), RATE), Spend::Void);
    let Verdict::NotBefore { at: again, because } = state.ask(at(1), RATE, false, &rule()) else {
        panic!()
    };
    assert_eq!((again, because), (at(60), Because::Penalty));
    assert_eq!(state.breaker, Breaker::default());
}

#[test]
fn silent_429s_rest_longer_each_time_until_a_page_is_served() {
    let mut state = SiteState::default();
    let mut rests = Vec::new();
    for _ in 0..3 {
        let generation = state.generation;
        state.record(&report(Mark::Limited, None, generation), at(0), &rule(), 0.0);
        rests.push(state.penalty_until.since(at(0)).as_secs());
    }
    assert_eq!(rests, [2, 4, 8]);
    let generation = state.generation;
    state.record(&report(Mark::Served, None, generation), at(9), &rule(), 0.0);
    assert_eq!(state.limited_in_a_row, 0);
}

#[test]
fn results_from_before_a_penalty_say_nothing_about_the_site_after_it() {
    let mut state = SiteState::default();
    let old = state.generation;
    for _ in 0..5 {
        let now = state.generation;
        state.record(&report(Mark::Failed, None, now), at(0), &rule(), 0.0);
    }
    let opened = state.breaker;
    assert!(matches!(opened.state, State::Open { .. }));
    state.record(&report(Mark::Failed, None, old), at(1), &rule(), 0.0);
    state.record(&report(Mark::Served, None, old), at(1), &rule(), 0.0);
    assert_eq!(state.breaker, opened);
}

/// Requests to an archive run in parallel, and each failure starts a rest. The pages that are served in the meantime
/// were all requested before that rest.
#[test]
fn a_page_that_was_asked_for_before_a_rest_and_served_after_it_ends_the_row_of_failures() {
    let mut state = SiteState::default();
    for round in 0..20 {
        let asked_before = state.generation;
        let failed = report(Mark::Failed, Some(1), asked_before);
        assert_eq!(state.record(&failed, at(round), &rule(), 0.0), Transition::None);
        state.record(&report(Mark::Served, None, asked_before), at(round), &rule(), 0.0);
        assert_eq!(state.breaker, Breaker::default(), "round {round}");
    }
}

#[test]
fn a_site_that_answers_again_has_recovered_once() {
    let served = |state: &mut SiteState| {
        let generation = state.generation;
        state.record(&report(Mark::Served, None, generation), at(9), &rule(), 0.0);
        state.health.recoveries
    };
    let mut state = SiteState::default();
    assert_eq!(served(&mut state), 0, "it never failed");
    state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
    assert_eq!((served(&mut state), served(&mut state)), (1, 1));
    // Pages are served the whole time. A robots.txt that keeps failing is no reason to request it again each time.
    state.record(&report(Mark::RobotsFailed, None, 0), at(1), &rule(), 0.0);
    assert_eq!(state.breaker.consecutive_failures, 1);
    assert_eq!(served(&mut state), 1);
    assert_eq!(go(&mut state, at(20)).recoveries, 1);
}

#[test]
fn a_probe_that_is_answered_and_a_reset_are_recoveries() {
    let open = || {
        let mut state = SiteState::default();
        for _ in 0..5 {
            state.record(&report(Mark::RobotsFailed, None, 0), at(0), &rule(), 0.0);
        }
        state
    };
    let mut probed = open();
    let Verdict::Probe(probe) = probed.ask(at(30), RATE, false, &rule()) else { panic!() };
    let late = report(Mark::Served, None, probe.generation);
    probed.record(&late, at(31), &rule(), 0.0);
    assert_eq!(probed.health.recoveries, 0, "only a probe tells");
    let answered = report(Mark::ProbeAnswered, None, probe.generation);
    probed.record(&answered, at(31), &rule(), 0.0);
    assert_eq!(probed.health.recoveries, 1);
    let mut reset = open();
    assert!(reset.obey(Order::ResetBreaker, "ann", at(1)));
    assert!(!reset.obey(Order::ResetBreaker, "ann", at(2)), "there is nothing to reset");
    assert_eq!(reset.health.recoveries, 1);
}

#[test]
fn whoever_waits_is_told_which_probes_failed() {
    let mut state = SiteState::default();
    for _ in 0..5 {
        state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
    }
    for secs in [30, 90] {
        let Verdict::Probe(probe) = state.ask(at(secs), RATE, false, &rule()) else { panic!() };
        let mark = Mark::ProbeFailed(SiteFault::Answered(503));
        state.record(&report(mark, None, probe.generation), at(secs), &rule(), 0.0);
    }
    let Verdict::NotBefore { because, .. } = state.ask(at(91), RATE, false, &rule()) else {
        panic!()
    };
    let Because::BreakerOpen { failed_probes, .. } = because else { panic!("{because:?}") };
    assert_eq!((failed_probes.count, failed_probes.since(at(31))), (2, 1));
    assert_eq!(failed_probes.last, Some(SiteFault::Answered(503)));
    state.obey(Order::ResetBreaker, "ann", at(92));
    assert_eq!(state.health.failed_probes, FailedProbes::default());
}

#[test]
fn a_503_with_retry_after_counts_and_rests() {
    let mut state = SiteState::default();
    state.record(&report(Mark::Failed, Some(120), 0), at(0), &rule(), 0.0);
    assert_eq!(state.breaker.consecutive_failures, 1);
    assert_eq!(state.penalty_until, at(120));
}

#[test]
fn an_open_breaker_lets_one_probe_through_when_it_is_due() {
    let mut state = SiteState::default();
    for _ in 0..5 {
        state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
    }
    assert!(matches!(
        state.ask(at(1), RATE, false, &rule()),
        Verdict::NotBefore { at: again, because: Because::BreakerOpen { .. } } if again == at(30)
    ));
    let Verdict::Probe(probe) = state.ask(at(30), RATE, false, &rule()) else { panic!() };
    assert!(matches!(state.ask(at(30), RATE, false, &rule()), Verdict::NotBefore { .. }));
    let answered = report(Mark::ProbeAnswered, None, probe.generation);
    assert_eq!(state.record(&answered, at(31), &rule(), 0.0), Transition::Closed);
    assert!(matches!(state.ask(at(32), RATE, false, &rule()), Verdict::Go(_)));
}

#[test]
fn a_probe_that_was_taken_for_lost_is_not_sent_any_more() {
    let mut state = SiteState::default();
    for _ in 0..5 {
        state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
    }
    let Verdict::Probe(asleep) = state.ask(at(30), RATE, false, &rule()) else { panic!() };
    let Verdict::Probe(other) = state.ask(at(90), RATE, false, &rule()) else { panic!() };
    assert_eq!(state.spend(&asleep, at(91), RATE), Spend::Void);
    let late = report(Mark::ProbeAnswered, None, asleep.generation);
    assert_eq!(state.record(&late, at(91), &rule(), 0.0), Transition::None);
    assert_eq!(state.spend(&other, at(91), RATE), Spend::Go);
}

#[test]
fn a_clock_that_jumps_back_does_not_close_a_site() {
    let mut state = SiteState::default();
    go(&mut state, at(3_600));
    let Verdict::NotBefore { at: again, .. } = state.ask(at(0), RATE, false, &rule()) else {
        panic!()
    };
    assert!(again <= at(13));
}

#[test]
fn a_cleared_long_interval_leaves_the_distance_to_the_last_head() {
    let mut state = SiteState::default();
    state.obey(Order::SetInterval(Duration::from_secs(600)), "somebody", at(0));
    go(&mut state, at(0));
    state.obey(Order::ClearInterval, "somebody", at(0));
    assert!(go(&mut state, at(0)).slot.at >= at(1));
    assert!(go(&mut state, at(0)).slot.at >= at(2));
}

#[test]
fn a_clock_that_jumped_back_blocks_a_site_with_a_long_interval_for_one_interval() {
    let mut state = SiteState::default();
    state.obey(Order::SetInterval(Duration::from_secs(600)), "somebody", at(0));
    go(&mut state, at(86_400));
    let Verdict::NotBefore { at: again, .. } = state.ask(at(0), RATE, false, &rule()) else {
        panic!()
    };
    assert!(again <= at(10 + 4 * 600), "{again:?}");
}

#[test]
fn a_burst_of_more_than_the_horizon_is_spent_once() {
    let rate = Rate::per_second(10.0, 500);
    let mut state = SiteState::default();
    let at_once = (0..2_000)
        .filter(|_| {
            let verdict = state.ask(at(0), rate, false, &rule());
            matches!(verdict, Verdict::Go(permit) if permit.slot.at == at(0))
        })
        .count();
    assert_eq!(at_once, 500);
}

#[test]
fn a_penalty_an_open_breaker_and_an_order_bind_a_burst_too() {
    let rate = Rate::per_second(10.0, 20);
    let mut resting = SiteState::default();
    resting.record(&report(Mark::Limited, Some(60), 0), at(0), &rule(), 0.0);
    let verdict = resting.ask(at(1), rate, false, &rule());
    assert!(matches!(verdict, Verdict::NotBefore { because: Because::Penalty, .. }));
    let mut down = SiteState::default();
    for _ in 0..5 {
        down.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
    }
    let verdict = down.ask(at(1), rate, false, &rule());
    assert!(matches!(verdict, Verdict::NotBefore { because: Because::BreakerOpen { .. }, .. }));
    let mut ordered = SiteState::default();
    ordered.obey(Order::SetInterval(Duration::from_secs(2)), "somebody", at(0));
    for turn in 0..3 {
        let Verdict::Go(permit) = ordered.ask(at(0), rate, false, &rule()) else { panic!() };
        assert!(permit.slot.at >= at(2 * turn), "{turn}: {permit:?}");
    }
}

#[test]
fn a_site_in_penalty_is_never_forgettable() {
    let mut state = SiteState::default();
    go(&mut state, at(0));
    assert!(!state.is_forgettable(at(3_000)));
    assert!(state.is_forgettable(at(3_700)));
    // Each of these alone is reason enough.
    for (mark, rest_s) in
        [(Mark::Neutral, Some(80_000)), (Mark::Limited, None), (Mark::Failed, None)]
    {
        let mut state = state.clone();
        state.record(&report(mark, rest_s, 0), at(0), &rule(), 0.0);
        assert!(!state.is_forgettable(at(3_700)), "{mark:?}");
    }
}

proptest! {
    /// Whatever happens, two heads that were written under valid permits are at least one interval apart.
    #[test]
    fn heads_keep_their_distance(steps in prop::collection::vec((0u8..6, 0u64..1_500), 1..80)) {
        let mut state = SiteState::default();
        let mut now = at(0);
        let mut held: Option<Permit> = None;
        let mut last: Option<Time> = None;
        for (what, wait_ms) in steps {
            now = now + Duration::from_millis(wait_ms);
            match (what, held) {
                (0..=2, None) => {
                    if let Verdict::Go(permit) | Verdict::Probe(permit) =
                        state.ask(now, RATE, false, &rule())
                    {
                        held = Some(permit);
                    }
                }
                (0..=2, Some(permit)) if now >= permit.slot.at => {
                    held = None;
                    match state.spend(&permit, now, RATE) {
                        Spend::Go => {
                            prop_assert!(last.is_none_or(|l| now >= l + RATE.interval));
                            last = Some(now);
                        }
                        Spend::Wait(later) => held = Some(later),
                        Spend::Void => {}
                    }
                }
                (3, _) => {
                    let r = report(Mark::Limited, None, state.generation);
                    state.record(&r, now, &rule(), 0.5);
                }
                (4, _) => {
                    let r = report(Mark::Failed, None, state.generation);
                    state.record(&r, now, &rule(), 0.5);
                }
                (5, _) => {
                    let r = report(Mark::ProbeAnswered, None, state.generation);
                    state.record(&r, now, &rule(), 0.5);
                }
                _ => {}
            }
        }
    }
}
