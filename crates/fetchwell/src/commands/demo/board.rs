//! The state of the demo, collected from the flows, the store and the simulated web.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_policy::breaker::State;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use fetchwell_simweb::Hit;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::info;

use super::counters::Counters;
use super::origin::{Judgement, Origin, by_site};
use super::scenario::{DemoSite, Scenario, Trouble};
use crate::wiring::Parts;

/// The state of the demo at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct DemoSnapshot {
    pub(super) elapsed: Duration,
    pub(super) sites: usize,
    pub(super) total: u64,
    pub(super) done: u64,
    pub(super) skipped: u64,
    pub(super) failed: u64,
    pub(super) under_way: u64,
    /// Results per second, from the start.
    pub(super) results_by_second: Vec<u64>,
    pub(super) judgement: Judgement,
    /// The sites that misbehave.
    pub(super) troubled: Vec<SiteLine>,
    pub(super) is_stopping: bool,
    /// Everything has its result; the dashboard stays until a key is pressed.
    pub(super) is_over: bool,
    /// The URL of the dashboard; empty if there is none.
    pub(super) dashboard: String,
}

/// One site on the screen.
#[derive(Clone, Debug)]
pub(super) struct SiteLine {
    pub(super) name: String,
    pub(super) about: &'static str,
    pub(super) standing: Standing,
    pub(super) last_status: Option<u16>,
    pub(super) hits: usize,
    pub(super) interval: Duration,
}

/// The state of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    Probing,
    Down { probe_in: Duration },
    Resting { left: Duration },
    Paced,
    Quiet,
}

impl Standing {
    /// Lower values are more interesting.
    fn urgency(self) -> u8 {
        match self {
            Standing::Probing | Standing::Down { .. } => 0,
            Standing::Resting { .. } => 1,
            Standing::Paced => 2,
            Standing::Quiet => 3,
        }
    }
}

/// A site without requests for this long has no URLs left, or waits for a retry.
const QUIET_AFTER: Duration = Duration::from_secs(5);
/// How often the store is read and the requests are judged.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) struct Board<'a> {
    scenario: &'a Scenario,
    origin: &'a Origin,
    parts: Parts,
    counters: Counters,
    started: Instant,
    looked: Option<Instant>,
    limiters: HashSet<String>,
    snapshot: DemoSnapshot,
}

impl<'a> Board<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        origin: &'a Origin,
        parts: Parts,
        counters: Counters,
        dashboard: &str,
    ) -> Board<'a> {
        let snapshot = DemoSnapshot {
            sites: scenario.sites.len(),
            total: u64::try_from(scenario.pages()).unwrap_or(u64::MAX),
            dashboard: dashboard.to_owned(),
            ..DemoSnapshot::default()
        };
        let started = Instant::now();
        let looked = None;
        let limiters = HashSet::new();
        Board { scenario, origin, parts, counters, started, looked, limiters, snapshot }
    }

    /// Takes a snapshot.
    pub(super) async fn look(&mut self, is_stopping: bool) -> &DemoSnapshot {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let snapshot = &mut self.snapshot;
        snapshot.elapsed = self.started.elapsed();
        snapshot.done = count(&self.counters.done);
        snapshot.skipped = count(&self.counters.skipped);
        snapshot.under_way = count(&self.counters.under_way);
        snapshot.failed = self.counters.failed();
        snapshot.is_stopping = is_stopping;
        snapshot.note_results();
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            let hits = self.origin.hits();
            self.tell_of_limiters(&hits);
            self.snapshot.judgement = self.origin.judge(&hits);
            self.snapshot.troubled = self.troubled(&hits).await;
        }
        &self.snapshot
    }

    /// Takes the last snapshot, which is judged once more. The clock stops here.
    pub(super) async fn last_look(&mut self, is_stopping: bool) -> &DemoSnapshot {
        self.looked = None;
        self.look(is_stopping).await;
        self.snapshot.is_over = true;
        &self.snapshot
    }

    /// Logs the first 429 of each site: the flow does not report it, because it is not a failure.
    fn tell_of_limiters(&mut self, hits: &[Hit]) {
        for hit in hits.iter().filter(|hit| hit.status == Some(429)) {
            if self.limiters.insert(hit.site.to_string()) {
                info!("{} answered 429 to {}: pausing requests to it", hit.site, hit.path);
            }
        }
    }

    async fn troubled(&self, hits: &[Hit]) -> Vec<SiteLine> {
        let seen = by_site(hits);
        let states = self.states().await;
        let now = self.parts.clock.now();
        let line = |site: &DemoSite, trouble: Trouble| {
            let seen = seen.get(site.name.as_str()).cloned().unwrap_or_default();
            let state = states.get(&site.name).cloned().unwrap_or_default();
            let quiet_for = self.snapshot.elapsed.saturating_sub(seen.last_at);
            SiteLine {
                name: site.name.clone(),
                about: trouble.about(),
                standing: standing(&state, now, quiet_for),
                last_status: seen.last_status,
                hits: seen.hits,
                interval: self.origin.rule.interval_of(&site.name),
            }
        };
        let mut lines = Vec::new();
        for trouble in Trouble::ALL {
            let sites = self.scenario.sites.iter().filter(|site| site.trouble == Some(trouble));
            let mut alike: Vec<SiteLine> = sites.map(|site| line(site, trouble)).collect();
            alike.sort_by_key(|line| line.standing.urgency());
            lines.extend(alike.into_iter().enumerate());
        }
        // First the most interesting site of each kind, then the second of each, and so on.
        lines.sort_by_key(|(rank, _)| *rank);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// The stored state of the sites that misbehave. They are read concurrently, so that they share a transaction.
    async fn states(&self) -> HashMap<String, SiteState> {
        let mut looks = JoinSet::new();
        for site in self.scenario.sites.iter().filter(|site| site.trouble.is_some()) {
            let Ok(key) = Site::parse(&site.name) else { continue };
            let politeness = self.parts.politeness.clone();
            let name = site.name.clone();
            looks.spawn(async move { Some((name, politeness.look(&key).await.ok()?.0?)) });
        }
        looks.join_all().await.into_iter().flatten().collect()
    }
}

impl DemoSnapshot {
    /// The number of jobs that have a result.
    pub(super) fn finished(&self) -> u64 {
        self.done + self.skipped
    }

    fn note_results(&mut self) {
        let seconds = usize::try_from(self.elapsed.as_secs()).unwrap_or(usize::MAX) + 1;
        let before: u64 = self.results_by_second.iter().sum();
        let new = self.finished().saturating_sub(before);
        self.results_by_second.resize(seconds.max(self.results_by_second.len()), 0);
        if let Some(last) = self.results_by_second.last_mut() {
            *last += new;
        }
    }
}

fn standing(state: &SiteState, now: Time, quiet_for: Duration) -> Standing {
    match state.breaker.state {
        State::HalfOpen { .. } => Standing::Probing,
        State::Open { probe_at, .. } => Standing::Down { probe_in: probe_at.since(now) },
        State::Closed if state.penalty_until > now => {
            Standing::Resting { left: state.penalty_until.since(now) }
        }
        State::Closed if quiet_for > QUIET_AFTER => Standing::Quiet,
        State::Closed => Standing::Paced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_in_the_second_in_which_they_came() {
        let mut snapshot = DemoSnapshot::default();
        for (elapsed_ms, done) in [(100, 3), (900, 5), (1_200, 5), (3_500, 9)] {
            snapshot.elapsed = Duration::from_millis(elapsed_ms);
            snapshot.done = done;
            snapshot.note_results();
        }
        assert_eq!(snapshot.results_by_second, [5, 0, 0, 4]);
    }

    #[test]
    fn a_site_stands_as_the_store_has_it() {
        let now = Time::from_secs(100);
        let second = Duration::from_secs(1);
        let mut state = SiteState::default();
        assert_eq!(standing(&state, now, second), Standing::Paced);
        assert_eq!(standing(&state, now, second * 6), Standing::Quiet);
        state.penalty_until = now + second;
        assert_eq!(standing(&state, now, second), Standing::Resting { left: second });
        state.breaker.state = State::Open { probe_at: now + second, failed_probes: 0 };
        assert_eq!(standing(&state, now, second), Standing::Down { probe_in: second });
    }
}
