//! Implements the politeness port on any store of site states.

use std::collections::HashMap;
use std::sync::Arc;

use crate::clock::Clock;
use crate::ports::error::StoreError;
use crate::ports::politeness::{
    ORDERS_AT_ONCE, Politeness, RecentOrders, RobotsRecord, SiteAsk, SiteReport, Turn,
};
use async_trait::async_trait;
use fetchwell_policy::breaker::{BreakerRule, Transition};
use fetchwell_policy::chance::Chance;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use parking_lot::Mutex;

use super::clock_jump_guard::ClockJumpGuard;
use super::{Change, SiteStateStore, SiteStates, Texts};
use crate::coalescer::{BatchRule, Coalescer, MAX_PER_ROUND_TRIP, RunBatch};

/// The number of sites per request, which keeps each request to the server short. A batch of calls fits into one.
const STEP_SITES: usize = MAX_PER_ROUND_TRIP;

/// The maximum number of lost races in a row; more than this indicates a bug.
const MAX_ROUNDS: usize = 1_000;

/// Politeness that all processes on one server share.
pub struct SharedPoliteness<S> {
    pub(super) updater: Arc<SiteUpdater<S>>,
    /// Batches spends, which would otherwise each wait for a connection.
    spends: Coalescer<ToSpend, (Spend, Time)>,
    /// Batches asks. Every page of a group asks for its own turn, and all of them change the one state of the group, so
    /// separate requests would mostly lose races against each other.
    asks: Coalescer<SiteAsk, (Verdict, Time)>,
}

struct ToSpend {
    site: Site,
    permit: Permit,
    rate: Rate,
}

/// Changes stored states by the pure rules.
pub(super) struct SiteUpdater<S> {
    pub(super) site_states: S,
    /// `None` if a test sets the time of the store.
    clock_guard: Option<ClockJumpGuard>,
    /// The clock of the engine; `None` if a test sets the time of both.
    local: Option<Clock>,
    /// How far the server's clock is ahead of it, as of the last answer.
    ahead_us: Mutex<Option<i64>>,
    rule: BreakerRule,
    chance: Mutex<Chance>,
}

impl<S: SiteStateStore> SharedPoliteness<S> {
    /// `local` is the clock of the engine, and `seed` is for the jitter of breakers. Must be called within a tokio
    /// runtime.
    pub fn new(site_states: S, local: Clock, rule: BreakerRule, seed: u64) -> SharedPoliteness<S> {
        let guard = ClockJumpGuard::default();
        SharedPoliteness::start(site_states, Some(guard), Some(local), rule, seed)
    }

    /// The same for a store whose clock may jump, because a test sets it.
    pub fn unguarded(site_states: S, rule: BreakerRule, seed: u64) -> SharedPoliteness<S> {
        SharedPoliteness::start(site_states, None, None, rule, seed)
    }

    fn start(
        site_states: S,
        clock_guard: Option<ClockJumpGuard>,
        local: Option<Clock>,
        rule: BreakerRule,
        seed: u64,
    ) -> SharedPoliteness<S> {
        let chance = Mutex::new(Chance::seeded(seed));
        let ahead_us = Mutex::default();
        let updater = SiteUpdater { site_states, clock_guard, local, ahead_us, rule, chance };
        let updater = Arc::new(updater);
        let spends = Coalescer::start(&updater, BatchRule::ROUND_TRIPS);
        let asks = Coalescer::start(&updater, BatchRule::ROUND_TRIPS);
        SharedPoliteness { updater, spends, asks }
    }
}

impl<S: SiteStateStore> SiteUpdater<S> {
    /// Reads the state of these sites.
    pub(super) async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError> {
        let read = match &self.clock_guard {
            Some(guard) => guard.read(&self.site_states, sites).await?,
            None => self.site_states.read(sites).await?,
        };
        if let Some(local) = &self.local {
            let ahead_us = read.now.as_micros().saturating_sub(local.now().as_micros());
            *self.ahead_us.lock() = Some(ahead_us);
        }
        Ok(read)
    }

    /// How far the server's clock is ahead of the engine's, in microseconds.
    async fn ahead_us(&self) -> Result<i64, StoreError> {
        let known = *self.ahead_us.lock();
        match known {
            None if self.local.is_some() => {
                self.read(&[]).await?;
                Ok(self.ahead_us.lock().unwrap_or_default())
            }
            known => Ok(known.unwrap_or_default()),
        }
    }

    /// The robots.txt records of these origins, in order, with their times by the engine's clock. At the server they
    /// are by the server's, because processes on machines with different clocks share them.
    pub(super) async fn robots(
        &self,
        origins: &[Origin],
    ) -> Result<Vec<Option<RobotsRecord>>, StoreError> {
        let ahead_us = self.ahead_us().await?;
        let records = self.site_states.robots(origins).await?;
        let local = |record: RobotsRecord| record.by_clock_ahead_by_us(-ahead_us);
        Ok(records.into_iter().map(|record| record.map(local)).collect())
    }

    /// Changes sites by a rule, each atomically. The rule is called again for a site that another process changed
    /// meanwhile; its last answer counts. Returns the answers and the server's time.
    pub(super) async fn amend<T>(
        &self,
        sites: &[Site],
        mut rule: impl FnMut(usize, &mut SiteState, Moment) -> T,
    ) -> Result<(Vec<T>, Time), StoreError> {
        let mut answers: Vec<Option<T>> = sites.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..sites.len()).collect();
        let mut now = Time::EPOCH;
        if open.is_empty() {
            now = self.read(&[]).await?.now;
        }
        for _ in 0..MAX_ROUNDS {
            if open.is_empty() {
                return Ok((answers.into_iter().flatten().collect(), now));
            }
            let mut beaten = Vec::new();
            for step in open.chunks(STEP_SITES) {
                let step_sites: Vec<Site> = step.iter().map(|&i| sites[i].clone()).collect();
                let reading = self.read(&step_sites).await?;
                now = reading.now;
                let moment = Moment { now, lost_until: reading.lost_until };
                let mut changes = Vec::new();
                let mut changed = Vec::new();
                for ((&i, site), before) in step.iter().zip(step_sites).zip(reading.sites) {
                    let was = before.state();
                    let mut state = was.clone();
                    answers[i] = Some(rule(i, &mut state, moment));
                    let must_last = state.breaker != was.breaker
                        || state.penalty_until != was.penalty_until
                        || state.orders != was.orders;
                    let after = Texts::of(&state);
                    if after != before {
                        changes.push(Change {
                            site,
                            before,
                            after,
                            forgettable_at: state.forgettable_at(),
                            now,
                            must_last,
                            is_notable: state.is_notable(now),
                            has_orders: state.orders.stand(),
                        });
                        changed.push(i);
                    }
                }
                let made = self.site_states.replace(&changes).await?;
                beaten.extend(changed.into_iter().zip(made).filter(|(_, made)| !made));
            }
            open = beaten.into_iter().map(|(i, _)| i).collect();
        }
        Err(StoreError::transient(format!(
            "other processes kept changing the state of {}",
            sites[open[0]]
        )))
    }

    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let said = reports.iter().map(|report| &report.site);
        let (sites, of_site) = by_site(said.chain(asks.iter().map(|ask| &ask.site)));
        let rule = |i: usize, state: &mut SiteState, moment: Moment| {
            let mut transitions = Vec::new();
            let mut verdicts = Vec::new();
            for &place in &of_site[i] {
                if let Some(SiteReport { report, .. }) = reports.get(place) {
                    let became = state.record(report, moment.now, &self.rule, self.unit());
                    transitions.push((place, became));
                } else {
                    let place = place - reports.len();
                    verdicts.push((place, ask(state, &asks[place], moment, &self.rule)));
                }
            }
            (transitions, verdicts)
        };
        let (answers, now) = self.amend(&sites, rule).await?;
        let (transitions, verdicts): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
        let transitions = transitions.into_iter().flatten().collect();
        let verdicts = verdicts.into_iter().flatten().collect();
        let notable = in_order(transitions)
            .zip(reports)
            .filter(|(transition, _)| *transition != Transition::None)
            .map(|(transition, report)| (report.site.clone(), transition));
        Ok(Turn { now, verdicts: in_order(verdicts).collect(), transitions: notable.collect() })
    }

    fn unit(&self) -> f64 {
        self.chance.lock().unit()
    }
}

/// Spends permits in one request, each at the server's time.
impl<S: SiteStateStore> RunBatch<ToSpend, (Spend, Time)> for SiteUpdater<S> {
    async fn run(&self, batch: Vec<ToSpend>) -> Vec<Result<(Spend, Time), StoreError>> {
        let (sites, of_site) = by_site(batch.iter().map(|to_spend| &to_spend.site));
        let rule = |i: usize, state: &mut SiteState, moment: Moment| {
            let spend = |&place: &usize| {
                let ToSpend { permit, rate, .. } = &batch[place];
                moment.own_up_to(state, *rate);
                (place, (state.spend(permit, moment.now, *rate), moment.now))
            };
            of_site[i].iter().map(spend).collect::<Vec<_>>()
        };
        match self.amend(&sites, rule).await {
            Ok((answers, _)) => in_order(answers.into_iter().flatten().collect()).map(Ok).collect(),
            Err(fault) => vec![Err(fault); batch.len()],
        }
    }
}

/// Answers asks in one request.
impl<S: SiteStateStore> RunBatch<SiteAsk, (Verdict, Time)> for SiteUpdater<S> {
    async fn run(&self, batch: Vec<SiteAsk>) -> Vec<Result<(Verdict, Time), StoreError>> {
        match self.turn(&[], &batch).await {
            Ok(turn) => turn.verdicts.into_iter().map(|verdict| Ok((verdict, turn.now))).collect(),
            Err(fault) => vec![Err(fault); batch.len()],
        }
    }
}

/// The server's time, and how far back its record is complete.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Time,
    lost_until: Time,
}

impl Moment {
    /// If the server may have lost request heads that still count, assumes them. Returns whether none were lost.
    fn own_up_to(self, state: &mut SiteState, rate: Rate) -> bool {
        let rate = state.rate(rate);
        let remembers = self.lost_until + rate.grace() + rate.interval <= self.now;
        if !remembers {
            state.assume_heads_until(self.lost_until, rate);
        }
        remembers
    }
}

#[async_trait]
impl<S: SiteStateStore> Politeness for SharedPoliteness<S> {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let ([], [alone]) = (reports, asks) else {
            return self.updater.turn(reports, asks).await;
        };
        let (verdict, now) = self.asks.call(alone.clone()).await?;
        Ok(Turn { now, verdicts: vec![verdict], ..Turn::default() })
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        self.spends.call(ToSpend { site: site.clone(), permit: *permit, rate }).await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        let records = self.updater.robots(std::slice::from_ref(origin)).await?;
        Ok(records.into_iter().next().flatten())
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        let record = record.clone().by_clock_ahead_by_us(self.updater.ahead_us().await?);
        self.updater.site_states.keep_robots(origin, &record).await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        let reading = self.updater.read(std::slice::from_ref(site)).await?;
        let kept = reading.sites.first().filter(|texts| !texts.is_empty());
        Ok((kept.map(Texts::state), reading.now))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.updater.read(&[]).await?.now;
        self.updater.site_states.sweep(now).await
    }

    async fn orders_since(&self, since: Time) -> Result<RecentOrders, StoreError> {
        let now = self.updater.read(&[]).await?.now;
        let ordered = self.updater.site_states.ordered(since, ORDERS_AT_ONCE).await?;
        let sites = ordered.iter().filter_map(|(name, at)| Some((Site::parse(name).ok()?, *at)));
        Ok(RecentOrders { now, sites: sites.collect() })
    }
}

/// A site whose past was lost waits for a whole interval, even for a page that follows its robots.txt.
fn ask(state: &mut SiteState, ask: &SiteAsk, moment: Moment, rule: &BreakerRule) -> Verdict {
    let remembers = moment.own_up_to(state, ask.rate);
    state.ask(moment.now, ask.rate, ask.follows_robots && remembers, rule)
}

/// Restores the order of the turn.
fn in_order<T>(mut placed: Vec<(usize, T)>) -> impl Iterator<Item = T> {
    placed.sort_unstable_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, value)| value)
}

/// The distinct sites of a list, each with its indexes in the list, in order.
fn by_site<'a>(list: impl Iterator<Item = &'a Site>) -> (Vec<Site>, Vec<Vec<usize>>) {
    let mut sites: Vec<Site> = Vec::new();
    let mut places: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<&Site, usize> = HashMap::new();
    for (place, site) in list.enumerate() {
        let index = *known.entry(site).or_insert_with(|| {
            sites.push(site.clone());
            places.push(Vec::new());
            sites.len() - 1
        });
        places[index].push(place);
    }
    (sites, places)
}

#[cfg(test)]
mod tests {
    use crate::ports::politeness::Unreachable;
    use async_trait::async_trait;

    use super::*;

    /// A server that keeps one site, takes its time, and counts its answers.
    #[derive(Default)]
    struct Counting {
        kept: Mutex<Texts>,
        robots: Mutex<Option<RobotsRecord>>,
        answers: Mutex<usize>,
    }

    #[async_trait]
    impl SiteStateStore for Counting {
        async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError> {
            tokio::task::yield_now().await;
            *self.answers.lock() += 1;
            let kept = self.kept.lock().clone();
            let now = Time::from_secs(1_000);
            let lost_until = Time::EPOCH;
            Ok(SiteStates { now, lost_until, sites: vec![kept; sites.len()] })
        }

        async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
            tokio::task::yield_now().await;
            let mut kept = self.kept.lock();
            let made = |change: &Change| {
                let stands = *kept == change.before;
                if stands {
                    *kept = change.after.clone();
                }
                stands
            };
            Ok(changes.iter().map(made).collect())
        }

        async fn distrust_the_past(&self) -> Result<(), StoreError> {
            Ok(())
        }

        async fn names(&self, _: &str, _: bool, _: usize) -> Result<Vec<String>, StoreError> {
            Ok(Vec::new())
        }

        async fn note_order(&self, _: &Site, _: Time, _: Time) -> Result<(), StoreError> {
            Ok(())
        }

        async fn ordered(&self, _: Time, _: usize) -> Result<Vec<(String, Time)>, StoreError> {
            Ok(Vec::new())
        }

        async fn robots(&self, _: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError> {
            Ok(vec![self.robots.lock().clone()])
        }

        async fn forget_robots(&self, _: &[Origin]) -> Result<(), StoreError> {
            Ok(())
        }

        async fn keep_robots(&self, _: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
            *self.robots.lock() = Some(record.clone());
            Ok(())
        }

        async fn sweep(&self, _: Time) -> Result<u64, StoreError> {
            Ok(0)
        }
    }

    /// Else each would be beaten by most of the others, and ask again.
    #[tokio::test]
    async fn many_who_ask_alone_for_turns_of_one_group_are_answered_together() {
        let store = SharedPoliteness::unguarded(Counting::default(), BreakerRule::default(), 7);
        let rate = Rate::per_second(1_000.0, 50);
        let ask = SiteAsk { site: Site::apart("group", "shop"), rate, follows_robots: false };
        let turns = (0..100).map(|_| store.turn(&[], std::slice::from_ref(&ask)));
        let mut slots: Vec<Time> = Vec::new();
        for turn in futures::future::join_all(turns).await {
            match turn.unwrap().verdicts.as_slice() {
                [Verdict::Go(permit)] => slots.push(permit.slot.at),
                other => panic!("{other:?}"),
            }
        }
        let answers = *store.updater.site_states.answers.lock();
        assert!(answers <= 3, "the server was asked {answers} times");
        slots.sort();
        let last = slots.last().map(|at| at.since(Time::from_secs(1_000)));
        assert_eq!(last, Some(std::time::Duration::from_millis(50)), "the pace holds for all");
    }

    /// The server's clock shows 1,000 s, and that of this machine an hour more.
    #[tokio::test]
    async fn the_times_of_a_robots_txt_are_by_the_servers_clock_at_the_server() {
        let local = Clock::new(|| Time::from_secs(4_600));
        let rule = BreakerRule::default();
        let store = SharedPoliteness::new(Counting::default(), local, rule, 7);
        let unreachable = Unreachable {
            since: Time::from_secs(4_590),
            tries: 1,
            retry_at: Time::from_secs(4_660),
            is_asked_for: false,
            reason: "it is down".to_owned(),
            recoveries: 0,
        };
        let record = RobotsRecord {
            body: None,
            status: Some(503),
            fetched_at: Time::from_secs(4_600),
            unreachable: Some(unreachable),
            robots_forgotten: Some(Time::from_secs(4_500)),
        };
        let origin = Origin::parse("http://a.test").unwrap();
        store.keep_robots(&origin, &record).await.unwrap();
        let there = store.updater.site_states.robots.lock().clone().unwrap();
        assert_eq!(there.robots_forgotten, record.robots_forgotten, "it is by the server's clock");
        let unreachable = there.unreachable.unwrap();
        let times = [there.fetched_at, unreachable.since, unreachable.retry_at];
        assert_eq!(times, [1_000, 990, 1_060].map(Time::from_secs));
        assert_eq!(store.robots(&origin).await.unwrap(), Some(record));
    }
}
