//! Orders of operators: what they change, what they leave alone, and what they can't undo.

use std::time::Duration;

use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::orders::{MAX_ORDERED_INTERVAL, Order};
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Because, Permit, Report, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

fn rule() -> BreakerRule {
    BreakerRule { jitter_share: 0.0, ..BreakerRule::default() }
}

fn at(secs: i64) -> Time {
    Time::from_secs(1_000 + secs)
}

fn ask(state: &mut SiteState, now: Time, rate: Rate) -> Verdict {
    state.ask(now, rate, false, &rule())
}

fn go(state: &mut SiteState, now: Time, rate: Rate) -> Permit {
    match ask(state, now, rate) {
        Verdict::Go(permit) => permit,
        other => panic!("{other:?}"),
    }
}

fn report(state: &SiteState, mark: Mark, rest_s: Option<u64>) -> Report {
    Report { mark, retry_after: rest_s.map(Duration::from_secs), generation: state.generation }
}

#[test]
fn the_pace_is_the_orders_unless_the_site_asks_for_a_longer_one() {
    let ms = Duration::from_millis;
    for (ordered_ms, asked, expected_ms, is_ordered) in [
        (None, Rate::every(ms(1_000)), 1_000, false),
        (Some(200), Rate::every(ms(1_000)), 200, true),
        (Some(9_000), Rate::every(ms(1_000)), 9_000, true),
        (Some(0), Rate::every(ms(1_000)), 0, true),
        (Some(200), Rate::at_most_every(ms(5_000)), 5_000, false),
        (Some(0), Rate::at_most_every(ms(5_000)), 5_000, false),
        (Some(9_000), Rate::at_most_every(ms(5_000)), 9_000, true),
        // A setting that is slower than the Crawl-delay gives way to the order, the Crawl-delay does not.
        (Some(10), Rate { least_interval: ms(300), ..Rate::every(ms(1_000)) }, 300, false),
    ] {
        let mut state = SiteState::default();
        if let Some(ordered_ms) = ordered_ms {
            state.obey(Order::SetInterval(ms(ordered_ms)), "ann", at(0));
        }
        let permit = go(&mut state, at(0), asked);
        let given = (permit.rate.interval, permit.rate_is_ordered);
        assert_eq!(given, (ms(expected_ms), is_ordered), "{ordered_ms:?} {asked:?}");
    }
}

#[test]
fn an_order_has_an_author_and_a_bound() {
    let mut state = SiteState::default();
    assert!(state.obey(Order::SetInterval(MAX_ORDERED_INTERVAL * 9), "ann", at(3)));
    let ordered = state.orders.interval.clone().unwrap();
    assert_eq!((ordered.interval, ordered.given.at), (MAX_ORDERED_INTERVAL, at(3)));
    assert_eq!(ordered.given.by, "ann");
}

#[test]
fn a_state_that_an_older_program_kept_is_read_and_one_without_orders_looks_as_it_did() {
    let mut state = SiteState::default();
    go(&mut state, at(0), Rate::every(SECOND));
    let text = serde_json::to_string(&state).unwrap();
    for name in ["orders", "limited\"", "failed\""] {
        assert!(!text.contains(name), "{text}");
    }
    let older = r#"{"pace":{"used_until":7,"interval":{"secs":1,"nanos":0},"last_head":3},
        "breaker":{"state":"closed","consecutive_failures":2,"failing_since":5},"generation":4,
        "penalty_until":9,"limited_in_a_row":1,"last_served":null}"#;
    let read: SiteState = serde_json::from_str(older).unwrap();
    assert_eq!((read.generation, read.breaker.consecutive_failures), (4, 2));
    assert!(read.orders.is_empty() && read.limited.is_empty() && read.failed.is_empty());
    state.obey(Order::Pause, "ann", at(1));
    state.obey(Order::ForgetRobots, "ann", at(1));
    let again: SiteState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    assert_eq!(again, state);
}

#[test]
fn a_pause_ends_neither_a_rest_nor_an_open_breaker() {
    for (mark, rest_s, expected) in
        [(Mark::Limited, Some(600), Because::Penalty), (Mark::Failed, None, Because::Pace)]
    {
        let mut state = SiteState::default();
        for _ in 0..5 {
            let told = report(&state, mark, rest_s);
            state.record(&told, at(0), &rule(), 0.0);
        }
        assert!(state.obey(Order::Pause, "ann", at(1)) && state.obey(Order::Resume, "ann", at(2)));
        let Verdict::NotBefore { because, .. } = ask(&mut state, at(3), Rate::every(SECOND)) else {
            panic!("{mark:?}: it goes")
        };
        match because {
            Because::BreakerOpen { .. } => assert_eq!(mark, Mark::Failed),
            other => assert_eq!(other, expected),
        }
    }
}

#[test]
fn what_is_notable_is_what_an_operator_may_look_for() {
    let notable = |change: &dyn Fn(&mut SiteState)| {
        let mut state = SiteState::default();
        go(&mut state, at(0), Rate::every(SECOND));
        assert!(!state.is_notable(at(0)));
        change(&mut state);
        [at(1), at(3_600 * 3)].map(|now| state.is_notable(now))
    };
    let record = |mark, rest_s| {
        notable(&|state: &mut SiteState| {
            let told = report(state, mark, rest_s);
            state.record(&told, at(0), &rule(), 0.0);
        })
    };
    let order = |order| notable(&|state: &mut SiteState| assert!(state.obey(order, "ann", at(0))));
    assert_eq!(order(Order::Pause), [true, true]);
    assert_eq!(order(Order::SetInterval(SECOND)), [true, true]);
    assert_eq!(order(Order::ForgetRobots), [false, false]);
    assert_eq!(record(Mark::Limited, Some(1)), [true, false]);
    assert_eq!(record(Mark::Neutral, Some(60)), [true, false]);
    assert_eq!(record(Mark::Failed, None), [true, true]);
    assert_eq!(record(Mark::Served, None), [false, false]);
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![
        2 => Just(Order::Pause),
        4 => Just(Order::Resume),
        2 => (1u64..4_000).prop_map(|ms| Order::SetInterval(Duration::from_millis(ms))),
        2 => Just(Order::ClearInterval),
        1 => Just(Order::ResetBreaker),
        1 => Just(Order::ForgetRobots),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    AskOrSpend,
    Tell(Mark),
    Give(Order),
}

fn steps() -> impl Strategy<Value = Vec<(Step, u64)>> {
    let step = prop_oneof![
        6 => Just(Step::AskOrSpend),
        1 => Just(Step::Tell(Mark::Limited)),
        1 => Just(Step::Tell(Mark::Failed)),
        1 => Just(Step::Tell(Mark::ProbeAnswered)),
        2 => orders().prop_map(Step::Give),
    ];
    prop::collection::vec((step, 0u64..2_500), 1..120)
}

proptest! {
    /// Whatever is ordered, asked and told, in whatever order: a paused site gives nothing, what was given
    /// before an order is void after it, heads keep the interval that holds when they are written, and
    /// neither a Crawl-delay is undercut nor a site with an order forgotten.
    #[test]
    fn orders_hold_whatever_happens(steps in steps(), crawl_delay_ms in 0u64..3_000) {
        let asked = Rate {
            least_interval: Duration::from_millis(crawl_delay_ms),
            ..Rate::every(SECOND.max(Duration::from_millis(crawl_delay_ms)))
        };
        let mut state = SiteState::default();
        let mut now = at(0);
        let mut held: Option<(Permit, u32)> = None;
        let mut last = None::<Time>;
        let mut changes = 0;
        for (step, wait_ms) in steps {
            now = now + Duration::from_millis(wait_ms);
            let paused = state.orders.paused.is_some();
            match (step, held) {
                (Step::Give(order), _) => {
                    let before = state.clone();
                    let changed = state.obey(order, "ann", now);
                    prop_assert_eq!(changed, state != before);
                    prop_assert_eq!(state.generation, before.generation + u64::from(changed));
                    prop_assert_eq!(state.penalty_until, before.penalty_until);
                    changes += u32::from(changed);
                }
                (Step::Tell(mark), _) => {
                    let told = report(&state, mark, None);
                    state.record(&told, now, &rule(), 0.5);
                }
                (Step::AskOrSpend, None) => match ask(&mut state, now, asked) {
                    Verdict::Go(permit) | Verdict::Probe(permit) => {
                        prop_assert!(!paused);
                        prop_assert!(permit.rate.interval >= asked.least_interval);
                        held = Some((permit, changes));
                    }
                    Verdict::NotBefore { at, because } => {
                        prop_assert!(at > now);
                        prop_assert_eq!(because == Because::Paused, paused);
                        prop_assert!(!paused || at <= now + SECOND, "a resume is felt at once");
                    }
                },
                (Step::AskOrSpend, Some((permit, _))) if now < permit.slot.at => {}
                (Step::AskOrSpend, Some((permit, given_after))) => {
                    held = None;
                    match state.spend(&permit, now, asked) {
                        Spend::Go => {
                            prop_assert!(!paused && given_after == changes);
                            let interval = state.rate(asked).interval;
                            prop_assert!(last.is_none_or(|last| now >= last + interval));
                            last = Some(now);
                        }
                        Spend::Wait(later) => held = Some((later, given_after)),
                        Spend::Void => {}
                    }
                }
            }
            if state.orders.stand() {
                prop_assert_eq!(state.forgettable_at(), None);
                prop_assert!(state.is_notable(now));
            }
        }
    }
}
