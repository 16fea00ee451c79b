//! Penalties and the breaker: all processes on the store respect what a site asks for.

use std::time::Duration;

use fetchwell_engine::ports::politeness::SiteReport;
use fetchwell_policy::breaker::{Breaker, BreakerRule, State, Transition};
use fetchwell_policy::health::FailedProbes;
use fetchwell_policy::outcome::{Mark, SiteFault};
use fetchwell_policy::site::{Because, Permit, Spend, Verdict};

use super::PolitenessStore;
use super::trial::{Trial, ask, report, rule, secs};
use crate::conformance::HandClock;

/// Also slots that another process reserved; and questions in the same turn already see the penalty.
pub async fn a_429_rests_the_site_and_voids_what_was_reserved(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    let sent = here.go("a.test").await;
    let reserved = there.go("a.test").await;
    let limited = report("a.test", Mark::Limited, Some(secs(60)), sent.generation);
    assert_eq!(here.report(limited).await, Transition::None);
    let until = here.now() + secs(60);
    assert_eq!(there.wait("a.test").await, (until, Because::Penalty));
    here.clock.set(reserved.slot.at);
    assert_eq!(there.spend("a.test", &reserved).await, Spend::Void);
    here.clock.set(until - Duration::from_micros(1));
    let early = there.go("a.test").await;
    assert!(early.slot.at >= until, "within the horizon a slot after the rest is reserved");
    here.clock.set(early.slot.at);
    assert_eq!(there.spend("a.test", &early).await, Spend::Go);
}

/// It counts as a site failure, and its Retry-After is respected.
pub async fn a_503_with_retry_after_rests_the_site_and_counts(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let sent = trial.go("a.test").await;
    let reserved = trial.go("a.test").await;
    trial.report(report("a.test", Mark::Failed, Some(secs(120)), sent.generation)).await;
    assert_eq!(trial.wait("a.test").await, (trial.now() + secs(120), Because::Penalty));
    assert_eq!(trial.spend("a.test", &reserved).await, Spend::Void);
    let state = trial.look("a.test").await.expect("it is known");
    assert_eq!(state.breaker.consecutive_failures, 1);
}

/// The fifth in a row, not earlier; a served page resets the count.
pub async fn five_failures_open_it(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let failed = || report("a.test", Mark::Failed, None, 0);
    for _ in 0..4 {
        assert_eq!(trial.report(failed()).await, Transition::None);
    }
    trial.report(report("a.test", Mark::Served, None, 0)).await;
    for _ in 0..4 {
        assert_eq!(trial.report(failed()).await, Transition::None);
    }
    let failing_since = trial.now();
    trial.go("a.test").await;
    let probe_at = trial.now() + rule().initial_backoff;
    assert_eq!(trial.report(failed()).await, Transition::Opened { probe_at });
    let failed_probes = FailedProbes::default();
    let because = Because::BreakerOpen { failing_since, failed_probes };
    assert_eq!(trial.wait("a.test").await, (probe_at, because));
    trial.go("b.test").await;
}

/// By up to a fifth, never lengthened, and not all by the same amount.
pub async fn open_times_are_shortened_by_chance(store: &dyn PolitenessStore) {
    let clock = HandClock::new();
    let rule = BreakerRule::default();
    let trial = Trial { clock: clock.clone(), store: store.open(clock.clock(), rule) };
    let mut open_times = Vec::new();
    for n in 0..50 {
        let probe_at = trial.fail_until_open(&format!("site{n}.test")).await;
        open_times.push(probe_at.since(clock.now()));
    }
    let longest = rule.initial_backoff;
    let shortest = rule.initial_backoff.mul_f64(0.8);
    assert!(open_times.iter().all(|time| (shortest..=longest).contains(time)), "{open_times:?}");
    open_times.sort();
    open_times.dedup();
    assert!(open_times.len() > 25, "{open_times:?}");
}

/// From any process, and however many ask at the same time.
pub async fn exactly_one_of_many_askers_probes(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    let probe_at = here.fail_until_open("a.test").await;
    here.clock.set(probe_at - Duration::from_micros(1));
    there.wait("a.test").await;
    here.clock.set(probe_at);
    let mut probes: Vec<Permit> = Vec::new();
    for _ in 0..20 {
        let question = [ask("a.test")];
        let (one, other) = tokio::join!(here.turn(&[], &question), there.turn(&[], &question));
        for verdict in [one.verdicts[0], other.verdicts[0]] {
            match verdict {
                Verdict::Probe(permit) => probes.push(permit),
                Verdict::NotBefore { at, .. } => assert!(at > here.now()),
                Verdict::Go(_) => panic!("the breaker is open"),
            }
        }
    }
    assert_eq!(probes.len(), 1);
}

/// A failure changes only the breaker; two concurrent reports must both be counted.
pub async fn failures_that_are_told_at_once_all_count(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    let names: Vec<String> = (0..20).map(|n| format!("site{n}.test")).collect();
    for name in &names {
        here.go(name).await;
    }
    let failed: Vec<SiteReport> =
        names.iter().map(|name| report(name, Mark::Failed, None, 0)).collect();
    for _ in 0..2 {
        tokio::join!(here.turn(&failed, &[]), there.turn(&failed, &[]));
    }
    for name in &names {
        let state = here.look(name).await.expect("it is known");
        assert_eq!(state.breaker.consecutive_failures, 4, "{name}");
    }
}

/// A prober that dies must not keep a site closed for ever.
pub async fn a_lost_probe_is_given_again(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.clock.set(trial.fail_until_open("a.test").await);
    trial.probe("a.test").await;
    trial.clock.advance(rule().probe_ttl - Duration::from_micros(1));
    trial.wait("a.test").await;
    trial.clock.advance(Duration::from_micros(1));
    trial.probe("a.test").await;
    trial.wait("a.test").await;
}

/// Only the probe does: a late page from before has no effect.
pub async fn an_answered_probe_closes_it(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    here.clock.set(here.fail_until_open("a.test").await);
    let probe = here.probe("a.test").await;
    let served = report("a.test", Mark::Served, None, probe.generation);
    assert_eq!(here.report(served).await, Transition::None);
    there.wait("a.test").await;
    let answered = report("a.test", Mark::ProbeAnswered, None, probe.generation);
    assert_eq!(here.report(answered.clone()).await, Transition::Closed);
    assert_eq!(here.report(answered).await, Transition::None, "it is closed already");
    let page = there.go("a.test").await;
    assert!(page.slot.at >= probe.slot.at + secs(1), "the probe was a request, too");
    let state = there.look("a.test").await.expect("it is known");
    assert_eq!(state.breaker, Breaker::default());
}

/// Up to the maximum.
pub async fn a_failed_probe_doubles_the_time(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let mut probe_at = trial.fail_until_open("a.test").await;
    let mut open_times = Vec::new();
    for _ in 0..5 {
        trial.clock.set(probe_at);
        let probe = trial.probe("a.test").await;
        let mark = Mark::ProbeFailed(SiteFault::TimedOut);
        let failed = report("a.test", mark, None, probe.generation);
        let Transition::Opened { probe_at: next } = trial.report(failed).await else {
            panic!("it opens again")
        };
        open_times.push(next.since(trial.now()).as_secs());
        probe_at = next;
    }
    assert_eq!(open_times, [60, 120, 240, 300, 300]);
}

/// Their number, and how and when the last one failed, in every process and after a restart. An answered probe clears
/// the list and counts as a recovery, which permits report.
pub async fn failed_probes_and_recoveries_are_kept(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    here.clock.set(here.fail_until_open("a.test").await);
    let accepted_at = here.now();
    for fault in [SiteFault::Network, SiteFault::Answered(503)] {
        let probe = here.probe("a.test").await;
        let failed = report("a.test", Mark::ProbeFailed(fault), None, probe.generation);
        let Transition::Opened { probe_at } = here.report(failed).await else {
            panic!("it opens again")
        };
        here.clock.set(probe_at - Duration::from_micros(1));
        let Because::BreakerOpen { failed_probes, .. } = there.wait("a.test").await.1 else {
            panic!("it is open")
        };
        assert_eq!(failed_probes.last, Some(fault));
        assert_eq!(failed_probes.since(accepted_at), failed_probes.count);
        assert_eq!(failed_probes.since(here.now()), 0);
        here.clock.set(probe_at);
    }
    let probe = there.probe("a.test").await;
    let state = here.look("a.test").await.expect("it is known");
    assert_eq!((state.health.failed_probes.count, probe.recoveries), (2, 0));
    here.report(report("a.test", Mark::ProbeAnswered, None, probe.generation)).await;
    assert_eq!(there.go("a.test").await.recoveries, 1);
    let state = there.look("a.test").await.expect("it is known");
    assert_eq!(state.health.failed_probes, FailedProbes::default());
}

/// Neither failures nor successes from before a penalty count; but a Retry-After is always respected.
pub async fn results_of_an_old_generation_say_nothing(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let old = trial.go("a.test").await.generation;
    trial.report(report("a.test", Mark::Limited, Some(secs(1)), old)).await;
    trial.clock.advance(secs(5));
    let new = trial.go("a.test").await.generation;
    assert!(new > old);
    for _ in 0..10 {
        let late = report("a.test", Mark::Failed, None, old);
        assert_eq!(trial.report(late).await, Transition::None);
    }
    let state = trial.look("a.test").await.expect("it is known");
    assert_eq!((state.breaker, state.generation), (Breaker::default(), new));
    trial.report(report("a.test", Mark::Served, None, old)).await;
    let state = trial.look("a.test").await.expect("it is known");
    assert_eq!((state.limited_in_a_row, state.last_served), (1, None));
    trial.report(report("a.test", Mark::Failed, Some(secs(60)), old)).await;
    assert_eq!(trial.wait("a.test").await, (trial.now() + secs(60), Because::Penalty));
    let state = trial.look("a.test").await.expect("it is known");
    assert_eq!(state.breaker, Breaker::default());
}

/// In one turn, all reports are processed first, in order; the answers reflect them.
pub async fn reports_come_before_questions(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let failed: Vec<SiteReport> = (0..5).map(|_| report("a.test", Mark::Failed, None, 0)).collect();
    let limited = report("b.test", Mark::Limited, Some(secs(60)), 0);
    let reports = [failed, vec![limited]].concat();
    let turn = trial.turn(&reports, &[ask("a.test"), ask("b.test"), ask("c.test")]).await;
    let probe_at = trial.now() + rule().initial_backoff;
    assert_eq!(turn.transitions, [(ask("a.test").site, Transition::Opened { probe_at })]);
    let failed_probes = FailedProbes::default();
    let open = Because::BreakerOpen { failing_since: trial.now(), failed_probes };
    assert_eq!(turn.verdicts[0], Verdict::NotBefore { at: probe_at, because: open });
    let at = trial.now() + secs(60);
    assert_eq!(turn.verdicts[1], Verdict::NotBefore { at, because: Because::Penalty });
    assert!(matches!(turn.verdicts[2], Verdict::Go(_)));
    let state = trial.look("a.test").await.expect("it is known");
    assert_eq!(state.breaker.state, State::Open { probe_at, failed_probes: 0 });
}
