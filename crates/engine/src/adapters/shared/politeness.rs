//! The politeness port on any keeper.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use fetchwell_policy::breaker::{BreakerRule, Transition};
use fetchwell_policy::chance::Chance;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use super::{Change, Keeper, Texts};
use crate::ports::{Politeness, RobotsRecord, SiteAsk, SiteReport, StoreFault, Turn};

/// Sites in one step on the server, so that no step keeps it from others for long.
const STEP_SITES: usize = 500;

/// Somebody else was faster at most this often in a row; more means that something is wrong.
const MAX_ROUNDS: usize = 1_000;

/// Politeness that all processes on one server share.
pub struct SharedPoliteness<S> {
    keeper: S,
    rule: BreakerRule,
    chance: Mutex<Chance>,
}

impl<S: Keeper> SharedPoliteness<S> {
    /// On a keeper. The seed is for the jitter of breakers.
    pub fn new(keeper: S, rule: BreakerRule, seed: u64) -> SharedPoliteness<S> {
        SharedPoliteness { keeper, rule, chance: Mutex::new(Chance::seeded(seed)) }
    }

    /// Changes sites by a rule, each atomically. The rule is called again for a site that somebody
    /// else changed meanwhile; the last answer counts. Returns the answers and the server's time.
    async fn amend<T>(
        &self,
        sites: &[Site],
        mut rule: impl FnMut(usize, &mut SiteState, Moment) -> T,
    ) -> Result<(Vec<T>, Time), StoreFault> {
        let mut answers: Vec<Option<T>> = sites.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..sites.len()).collect();
        let mut now = Time::EPOCH;
        if open.is_empty() {
            now = self.keeper.read(&[]).await?.now;
        }
        for _ in 0..MAX_ROUNDS {
            if open.is_empty() {
                return Ok((answers.into_iter().flatten().collect(), now));
            }
            let mut beaten = Vec::new();
            for step in open.chunks(STEP_SITES) {
                let step_sites: Vec<Site> = step.iter().map(|&i| sites[i].clone()).collect();
                let reading = self.keeper.read(&step_sites).await?;
                now = reading.now;
                let moment = Moment { now, lost_until: reading.lost_until };
                let (mut changes, mut changed) = (Vec::new(), Vec::new());
                for ((&i, site), before) in step.iter().zip(step_sites).zip(reading.sites) {
                    let was = before.state();
                    let mut state = was;
                    answers[i] = Some(rule(i, &mut state, moment));
                    let must_last =
                        state.breaker != was.breaker || state.penalty_until != was.penalty_until;
                    let (after, forgettable_at) = (Texts::of(&state), state.forgettable_at());
                    if after != before {
                        changes.push(Change {
                            site,
                            before,
                            after,
                            forgettable_at,
                            now,
                            must_last,
                        });
                        changed.push(i);
                    }
                }
                let made = self.keeper.replace(&changes).await?;
                beaten.extend(changed.into_iter().zip(made).filter(|(_, made)| !made));
            }
            open = beaten.into_iter().map(|(i, _)| i).collect();
        }
        Err(StoreFault::Unavailable(format!(
            "others changed the politeness of {} each time it was about to be",
            sites[open[0]]
        )))
    }

    fn unit(&self) -> f64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).unit()
    }
}

/// What the server says of time.
#[derive(Clone, Copy)]
struct Moment {
    now: Time,
    lost_until: Time,
}

impl Moment {
    /// Where heads may be forgotten that still count, they are assumed. True when there are none.
    fn own_up_to(self, state: &mut SiteState, rate: Rate) -> bool {
        let remembers = self.lost_until + rate.grace() + rate.interval <= self.now;
        if !remembers {
            state.assume_heads_until(self.lost_until, rate);
        }
        remembers
    }
}

/// What one site says and asks in a turn, by places in the lists.
#[derive(Default)]
struct SiteTurn {
    reports: Vec<usize>,
    asks: Vec<usize>,
}

#[async_trait]
impl<S: Keeper> Politeness for SharedPoliteness<S> {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreFault> {
        let (sites, turns) = by_site(reports, asks);
        let rule = |i: usize, state: &mut SiteState, moment: Moment| {
            let turn: &SiteTurn = &turns[i];
            let transitions: Vec<Transition> = turn
                .reports
                .iter()
                .map(|&r| state.record(&reports[r].report, moment.now, &self.rule, self.unit()))
                .collect();
            let verdicts: Vec<Verdict> =
                turn.asks.iter().map(|&a| ask(state, &asks[a], moment, &self.rule)).collect();
            (transitions, verdicts)
        };
        let (answers, now) = self.amend(&sites, rule).await?;
        let (mut transitions, mut verdicts) = (Vec::new(), Vec::with_capacity(asks.len()));
        for (of_site, (became, said)) in turns.iter().zip(answers) {
            transitions.extend(of_site.reports.iter().copied().zip(became));
            verdicts.extend(of_site.asks.iter().copied().zip(said));
        }
        let notable = in_order(transitions)
            .zip(reports)
            .filter(|(transition, _)| *transition != Transition::None)
            .map(|(transition, report)| (report.site.clone(), transition));
        Ok(Turn { now, verdicts: in_order(verdicts).collect(), transitions: notable.collect() })
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreFault> {
        let rule = |_: usize, state: &mut SiteState, moment: Moment| {
            moment.own_up_to(state, rate);
            state.spend(permit, moment.now, rate)
        };
        let (mut answers, now) = self.amend(std::slice::from_ref(site), rule).await?;
        let spend = answers.pop().unwrap_or(Spend::Void);
        Ok((spend, now))
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreFault> {
        self.keeper.robots(origin).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreFault> {
        self.keeper.keep_robots(origin, record).await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreFault> {
        let reading = self.keeper.read(std::slice::from_ref(site)).await?;
        let kept = reading.sites.first().filter(|texts| !texts.is_empty());
        Ok((kept.map(Texts::state), reading.now))
    }

    async fn sweep(&self) -> Result<u64, StoreFault> {
        let now = self.keeper.read(&[]).await?.now;
        self.keeper.sweep(now).await
    }
}

/// A site whose past is lost waits for a whole interval, also for the page of a robots.txt.
fn ask(state: &mut SiteState, ask: &SiteAsk, moment: Moment, rule: &BreakerRule) -> Verdict {
    let remembers = moment.own_up_to(state, ask.rate);
    state.ask(moment.now, ask.rate, ask.follows_robots && remembers, rule)
}

/// By the places that they had in the turn.
fn in_order<T>(mut placed: Vec<(usize, T)>) -> impl Iterator<Item = T> {
    placed.sort_unstable_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, value)| value)
}

/// Each site once, with all that is said and asked of it.
fn by_site(reports: &[SiteReport], asks: &[SiteAsk]) -> (Vec<Site>, Vec<SiteTurn>) {
    let (mut sites, mut turns): (Vec<Site>, Vec<SiteTurn>) = (Vec::new(), Vec::new());
    let mut places: HashMap<&Site, usize> = HashMap::new();
    let mut place_of = |site, sites: &mut Vec<Site>, turns: &mut Vec<SiteTurn>| {
        *places.entry(site).or_insert_with(|| {
            sites.push(Site::clone(site));
            turns.push(SiteTurn::default());
            sites.len() - 1
        })
    };
    for (r, report) in reports.iter().enumerate() {
        let place = place_of(&report.site, &mut sites, &mut turns);
        turns[place].reports.push(r);
    }
    for (a, ask) in asks.iter().enumerate() {
        let place = place_of(&ask.site, &mut sites, &mut turns);
        turns[place].asks.push(a);
    }
    (sites, turns)
}
