//! The circuit breaker of a site, as a state machine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// When a breaker opens and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRule {
    /// Consecutive site failures that open it.
    pub failure_threshold: u32,
    /// The first open time.
    pub initial_backoff: Duration,
    /// The longest open time.
    pub max_backoff: Duration,
    /// Each failed probe multiplies the open time by this.
    pub backoff_multiplier: f64,
    /// Open times are shortened by up to this share, so that many sites are not probed at once.
    pub jitter_share: f64,
    /// A probe without a result after this time is considered lost, and another may be sent.
    pub probe_ttl: Duration,
}

impl Default for BreakerRule {
    fn default() -> BreakerRule {
        BreakerRule {
            failure_threshold: 5,
            initial_backoff: Duration::from_secs(30),
            max_backoff: Duration::from_secs(300),
            backoff_multiplier: 2.0,
            jitter_share: 0.2,
            probe_ttl: Duration::from_secs(45),
        }
    }
}

impl BreakerRule {
    /// The open time after `failed_probes` failed probes; `chance` is in `0.0..1.0`.
    pub fn open_for(&self, failed_probes: u32, chance: f64) -> Duration {
        let growth = self.backoff_multiplier.max(1.0).powi(failed_probes.min(1_000) as i32);
        let unjittered =
            (self.initial_backoff.as_secs_f64() * growth).min(self.max_backoff.as_secs_f64());
        let share = 1.0 - self.jitter_share.clamp(0.0, 1.0) * chance;
        Duration::try_from_secs_f64(unjittered * share).unwrap_or(self.max_backoff)
    }
}

/// The state of a breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Requests may be sent.
    #[default]
    Closed,
    /// Nothing is sent to the site before `probe_at`.
    Open {
        /// When a probe may be sent.
        probe_at: Time,
        /// The number of failed probes since it opened.
        failed_probes: u32,
    },
    /// One probe is in flight; nothing else is sent to the site.
    HalfOpen {
        /// When the probe is considered lost.
        lost_at: Time,
        /// The number of failed probes before it.
        failed_probes: u32,
    },
}

/// The breaker of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Its state.
    pub state: State,
    /// Site failures since the last success.
    pub consecutive_failures: u32,
    /// When the first of these failures happened.
    pub failing_since: Option<Time>,
}

/// The effect of a result on a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It did not open or close.
    None,
    /// It opened, or opened again after a failed probe.
    Opened {
        /// When the next probe may be sent.
        probe_at: Time,
    },
    /// It closed.
    Closed,
}

impl Breaker {
    /// Converts its times to another clock; see [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> Breaker {
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        let state = match self.state {
            State::Closed => State::Closed,
            State::Open { probe_at, failed_probes } => {
                State::Open { probe_at: moved(probe_at), failed_probes }
            }
            State::HalfOpen { lost_at, failed_probes } => {
                State::HalfOpen { lost_at: moved(lost_at), failed_probes }
            }
        };
        Breaker { state, failing_since: self.failing_since.map(moved), ..self }
    }

    /// Records a failed request that is the site's fault.
    pub fn failed(&mut self, now: Time, rule: &BreakerRule, chance: f64) -> Transition {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.failing_since.get_or_insert(now);
        if self.state != State::Closed || self.consecutive_failures < rule.failure_threshold {
            return Transition::None;
        }
        self.open(now, 0, rule, chance)
    }

    /// Records a successful request.
    pub fn succeeded(&mut self) -> Transition {
        if self.state != State::Closed {
            return Transition::None; // Only a probe closes an open breaker.
        }
        *self = Breaker::default();
        Transition::None
    }

    /// Takes the probe if one is due. Exactly one caller gets `true`.
    pub fn take_probe(&mut self, now: Time, rule: &BreakerRule) -> bool {
        let failed_probes = match self.state {
            State::Open { probe_at, failed_probes } if now >= probe_at => failed_probes,
            State::HalfOpen { lost_at, failed_probes } if now >= lost_at => failed_probes,
            _ => return false,
        };
        self.state = State::HalfOpen { lost_at: now + rule.probe_ttl, failed_probes };
        true
    }

    /// Records the result of the probe.
    pub fn probed(
        &mut self,
        answered: bool,
        now: Time,
        rule: &BreakerRule,
        chance: f64,
    ) -> Transition {
        let State::HalfOpen { failed_probes, .. } = self.state else { return Transition::None };
        if answered {
            *self = Breaker::default();
            return Transition::Closed;
        }
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.open(now, failed_probes.saturating_add(1), rule, chance)
    }

    /// When to ask again; `None` if the breaker is closed.
    pub fn blocked_until(&self) -> Option<Time> {
        match self.state {
            State::Closed => None,
            State::Open { probe_at, .. } => Some(probe_at),
            State::HalfOpen { lost_at, .. } => Some(lost_at),
        }
    }

    fn open(
        &mut self,
        now: Time,
        failed_probes: u32,
        rule: &BreakerRule,
        chance: f64,
    ) -> Transition {
        let probe_at = now + rule.open_for(failed_probes, chance);
        self.state = State::Open { probe_at, failed_probes };
        Transition::Opened { probe_at }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unjittered() -> BreakerRule {
        BreakerRule { jitter_share: 0.0, ..BreakerRule::default() }
    }

    fn at(secs: i64) -> Time {
        Time::from_secs(1_000 + secs)
    }

    #[test]
    fn five_failures_in_a_row_open_it() {
        let mut breaker = Breaker::default();
        let rule = unjittered();
        for n in 0..4 {
            assert_eq!(breaker.failed(at(n), &rule, 0.0), Transition::None);
        }
        assert_eq!(breaker.failed(at(4), &rule, 0.0), Transition::Opened { probe_at: at(34) });
        assert_eq!(breaker.failing_since, Some(at(0)));
    }

    #[test]
    fn a_success_in_between_starts_the_count_again() {
        let mut breaker = Breaker::default();
        let rule = unjittered();
        for n in 0..4 {
            breaker.failed(at(n), &rule, 0.0);
        }
        breaker.succeeded();
        for n in 5..9 {
            assert_eq!(breaker.failed(at(n), &rule, 0.0), Transition::None);
        }
    }

    #[test]
    fn probes_come_after_30_s_1_m_2_m_4_m_and_then_every_5_m() {
        let rule = unjittered();
        let waits: Vec<u64> = (0..7).map(|n| rule.open_for(n, 0.5).as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 300, 300, 300]);
    }

    #[test]
    fn one_asker_gets_the_probe_and_a_lost_probe_is_given_again() {
        let mut breaker = Breaker::default();
        let rule = unjittered();
        for _ in 0..5 {
            breaker.failed(at(0), &rule, 0.0);
        }
        assert!(!breaker.take_probe(at(29), &rule));
        assert!(breaker.take_probe(at(30), &rule));
        assert!(!breaker.take_probe(at(30), &rule));
        assert!(breaker.take_probe(at(75), &rule));
        assert_eq!(breaker.probed(true, at(76), &rule, 0.0), Transition::Closed);
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn a_late_success_does_not_close_an_open_breaker() {
        let mut breaker = Breaker::default();
        let rule = unjittered();
        for _ in 0..5 {
            breaker.failed(at(0), &rule, 0.0);
        }
        let open = breaker;
        assert_eq!(breaker.succeeded(), Transition::None);
        assert_eq!(breaker, open);
    }

    #[derive(Clone, Debug)]
    enum Event {
        Failed,
        Succeeded,
        AskProbe,
        Probed(bool),
    }

    fn events() -> impl Strategy<Value = Vec<(Event, u32)>> {
        let event = prop_oneof![
            3 => Just(Event::Failed),
            1 => Just(Event::Succeeded),
            2 => Just(Event::AskProbe),
            1 => any::<bool>().prop_map(Event::Probed),
        ];
        prop::collection::vec((event, 0u32..400), 0..60)
    }

    proptest! {
        #[test]
        fn it_opens_only_by_the_threshold_and_closes_only_by_a_probe(
            events in events(), chance in 0.0..1.0f64,
        ) {
            let rule = BreakerRule::default();
            let mut breaker = Breaker::default();
            let mut now = at(0);
            for (event, wait_s) in events {
                now = now + Duration::from_secs(u64::from(wait_s));
                let before = breaker;
                match event {
                    Event::Failed => {
                        let did = breaker.failed(now, &rule, chance);
                        let due = before.state == State::Closed
                            && before.consecutive_failures + 1 >= rule.failure_threshold;
                        prop_assert_eq!(matches!(did, Transition::Opened { .. }), due);
                    }
                    Event::Succeeded => { breaker.succeeded(); }
                    Event::AskProbe => {
                        let given = breaker.take_probe(now, &rule);
                        prop_assert_eq!(given, before.blocked_until().is_some_and(|t| now >= t));
                    }
                    Event::Probed(answered) => {
                        let did = breaker.probed(answered, now, &rule, chance);
                        let probing = matches!(before.state, State::HalfOpen { .. });
                        prop_assert_eq!(did == Transition::Closed, probing && answered);
                    }
                }
                if let State::Open { probe_at, .. } = breaker.state {
                    prop_assert!(probe_at <= now + rule.max_backoff);
                }
                let closes = before.state != State::Closed && breaker.state == State::Closed;
                prop_assert!(!closes || matches!(event, Event::Probed(true)));
            }
        }
    }
}
