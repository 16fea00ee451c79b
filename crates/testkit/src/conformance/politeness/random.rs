//! A random history, compared with the pure rules: the same calls in the same order give the same answers.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_engine::ports::politeness::{SiteAsk, SiteReport};
use fetchwell_policy::breaker::Transition;
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::{Mark, SiteFault};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend, Verdict};

use super::PolitenessStore;
use super::trial::{Trial, report, rule, site};
use crate::conformance::replay::{Dice, for_each_seed};
use crate::replay::is_soak;

const SEEDS: std::ops::Range<u64> = 0..4;
/// The length of each history: in the test command, and in `scripts/soak`.
const STEPS: [usize; 2] = [600, 2_000];
const SITES: usize = 4;

/// Two processes ask, report, spend and sweep; the store must behave like one pure state per site.
pub async fn a_random_history_follows_the_pure_rules(store: &dyn PolitenessStore) {
    for_each_seed(SEEDS, |seed| async move {
        let store = store.fresh();
        let here = Trial::new(&*store);
        let there = here.beside(&*store);
        let handles = [here, there];
        let dice = Dice::seeded(seed);
        let model = HashMap::new();
        let permits = Vec::new();
        let sweeps = !store.forgets_by_itself();
        let mut history = RandomHistory { handles, dice, model, permits, sweeps };
        for _ in 0..STEPS[usize::from(is_soak())] {
            history.step().await;
        }
    })
    .await;
}

struct RandomHistory {
    handles: [Trial; 2],
    dice: Dice,
    model: HashMap<String, SiteState>,
    /// Permits that may still be spent or reported under.
    permits: Vec<(String, Permit)>,
    sweeps: bool,
}

impl RandomHistory {
    async fn step(&mut self) {
        let handle = self.dice.below(2);
        match self.dice.below(20) {
            0..=8 => self.turn(handle).await,
            9..=12 => self.spend(handle).await,
            13..=14 => self.look(handle).await,
            16 => self.order(handle).await,
            15 if self.sweeps && self.dice.once_in(10) => self.sweep(handle).await,
            _ => self.pass_time(),
        }
    }

    fn some_site(&mut self) -> String {
        format!("site{}.test", self.dice.below(SITES))
    }

    fn some_rate(&mut self) -> Rate {
        let millis = *self.dice.pick(&[0, 500, 1_000, 1_000, 1_000, 7_000]);
        let rate = Rate::every(Duration::from_millis(millis));
        if self.dice.once_in(6) { Rate::at_most_every(rate.interval) } else { rate }
    }

    /// Mostly a little; sometimes hours, and sometimes back.
    fn pass_time(&mut self) {
        let clock = &self.handles[0].clock;
        match self.dice.below(40) {
            0 => clock.advance(Duration::from_secs(7_200)),
            1 => clock.set(clock.now() - Duration::from_secs(3_000)),
            2..=10 => clock.advance(Duration::from_secs(40)),
            _ => clock.advance(Duration::from_millis(200)),
        }
    }

    async fn turn(&mut self, handle: usize) {
        let reports: Vec<SiteReport> =
            (0..self.dice.below(4)).map(|_| self.some_report()).collect();
        let asks: Vec<SiteAsk> = (0..self.dice.below(4)).map(|_| self.some_ask()).collect();
        let rule = rule();
        let now = self.handles[0].now();
        let mut transitions = Vec::new();
        for SiteReport { site, report } in &reports {
            let state = self.model.entry(site.to_string()).or_default();
            let transition = state.record(report, now, &rule, 0.0);
            if transition != Transition::None {
                transitions.push((site.clone(), transition));
            }
        }
        let mut verdicts = Vec::new();
        for ask in &asks {
            let state = self.model.entry(ask.site.to_string()).or_default();
            let verdict = state.ask(now, ask.rate, ask.follows_robots, &rule);
            if let Verdict::Go(permit) | Verdict::Probe(permit) = verdict {
                self.permits.push((ask.site.to_string(), permit));
            }
            verdicts.push(verdict);
        }
        let turn = self.handles[handle].turn(&reports, &asks).await;
        assert_eq!((turn.verdicts, turn.transitions), (verdicts, transitions));
    }

    fn some_ask(&mut self) -> SiteAsk {
        let site = site(&self.some_site());
        let rate = self.some_rate();
        SiteAsk { site, rate, follows_robots: self.dice.once_in(5) }
    }

    fn some_report(&mut self) -> SiteReport {
        use Mark::{
            Failed, LeftLate, Limited, Neutral, ProbeAnswered, ProbeFailed, RobotsFailed, Served,
        };
        let name = self.some_site();
        let mark = *self.dice.pick(&[
            Failed,
            Failed,
            Failed,
            Failed,
            Served,
            Limited,
            Neutral,
            ProbeAnswered,
            ProbeFailed(SiteFault::Network),
            ProbeFailed(SiteFault::Answered(502)),
            RobotsFailed,
            LeftLate { by: self.handles[0].now() },
        ]);
        let retry_after =
            *self.dice.pick(&[None, None, None, None, Some(1), Some(30), Some(90_000)]);
        let retry_after = retry_after.filter(|_| mark != Served).map(Duration::from_secs);
        let generation = self.model.get(&name).map_or(0, |state| state.generation);
        let age = u64::from(self.dice.once_in(5));
        report(&name, mark, retry_after, generation.saturating_sub(age))
    }

    async fn spend(&mut self, handle: usize) {
        if self.permits.is_empty() {
            return;
        }
        let index = self.dice.below(self.permits.len());
        let (name, permit) = self.permits.swap_remove(index);
        let rate = self.some_rate();
        let now = self.handles[0].now();
        let expected = self.model.entry(name.clone()).or_default().spend(&permit, now, rate);
        let spend = self.handles[handle].spend_at(&name, &permit, rate).await;
        assert_eq!(spend, expected);
        if let Spend::Wait(later) = spend {
            self.permits.push((name, later));
        }
    }

    /// Mostly orders that let the history continue.
    async fn order(&mut self, handle: usize) {
        let name = self.some_site();
        let now = self.handles[0].now();
        let millis = *self.dice.pick(&[100, 2_000, 20_000]);
        let order = *self.dice.pick(&[
            Order::Pause,
            Order::Resume,
            Order::Resume,
            Order::Resume,
            Order::SetInterval(Duration::from_millis(millis)),
            Order::ClearInterval,
            Order::ClearInterval,
            Order::ResetBreaker,
            Order::ForgetRobots,
        ]);
        let expected = self.model.entry(name.clone()).or_default().obey(order, "operator", now);
        assert_eq!(self.handles[handle].order(&name, order).await, expected, "{order:?} to {name}");
    }

    async fn look(&mut self, handle: usize) {
        let name = self.some_site();
        assert_eq!(self.handles[handle].look(&name).await, self.model.get(&name).cloned());
    }

    async fn sweep(&mut self, handle: usize) {
        let now = self.handles[0].now();
        let before = self.model.len();
        self.model.retain(|_, state| !state.is_forgettable(now));
        let expected = u64::try_from(before - self.model.len()).unwrap_or(0);
        assert_eq!(self.handles[handle].sweep().await, expected);
    }
}
