//! A politeness store with a manual clock.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::politeness::{SiteAsk, SiteReport, Turn};
use fetchwell_engine::ports::sites::Sites;
use fetchwell_policy::breaker::{BreakerRule, Transition};
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Because, Permit, Report, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::PolitenessStore;
use crate::conformance::HandClock;

/// The default pace of all sites.
pub(super) const RATE: Rate = Rate::every(Duration::from_secs(1));

/// The default rule without jitter, so that times are exact.
pub(super) fn rule() -> BreakerRule {
    BreakerRule { jitter_share: 0.0, ..BreakerRule::default() }
}

/// A store under test, as seen by one process.
pub(super) struct Trial {
    pub(super) clock: HandClock,
    pub(super) store: Arc<dyn Sites>,
}

impl Trial {
    /// With a new clock.
    pub(super) fn new(store: &dyn PolitenessStore) -> Trial {
        Trial::open(store, &HandClock::new())
    }

    /// The store, as seen by another process.
    pub(super) fn beside(&self, store: &dyn PolitenessStore) -> Trial {
        Trial::open(store, &self.clock)
    }

    pub(super) fn open(store: &dyn PolitenessStore, clock: &HandClock) -> Trial {
        Trial { clock: clock.clone(), store: store.open(clock.clock(), rule()) }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(super) async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Turn {
        let turn = self.store.turn(reports, asks).await.expect("a turn is answered");
        assert_eq!((turn.now, turn.verdicts.len()), (self.now(), asks.len()));
        turn
    }

    pub(super) async fn ask(&self, name: &str) -> Verdict {
        self.turn(&[], &[ask(name)]).await.verdicts[0]
    }

    /// Asks for a permit; the answer must be a slot.
    pub(super) async fn go(&self, name: &str) -> Permit {
        match self.ask(name).await {
            Verdict::Go(permit) => permit,
            other => panic!("{other:?} of {name}"),
        }
    }

    /// Asks for a permit; the answer must be a probe.
    pub(super) async fn probe(&self, name: &str) -> Permit {
        match self.ask(name).await {
            Verdict::Probe(permit) => permit,
            other => panic!("{other:?} of {name}"),
        }
    }

    /// Asks for a permit; the answer must be a wait.
    pub(super) async fn wait(&self, name: &str) -> (Time, Because) {
        match self.ask(name).await {
            Verdict::NotBefore { at, because } => (at, because),
            other => panic!("{other:?} of {name}"),
        }
    }

    /// The sites that got orders at `since` or later.
    pub(super) async fn orders_since(&self, since: Time) -> Vec<(Site, Time)> {
        let orders = self.store.orders_since(since).await.expect("orders are told of");
        assert_eq!(orders.now, self.now());
        orders.sites
    }

    /// Reports the outcome of a request, and returns its effect on the breaker.
    pub(super) async fn report(&self, report: SiteReport) -> Transition {
        let site = report.site.clone();
        match self.turn(&[report], &[]).await.transitions.as_slice() {
            [] => Transition::None,
            [(of, transition)] if *of == site => *transition,
            other => panic!("{other:?} of one report about {site}"),
        }
    }

    /// Lets a site fail until its breaker opens. Returns the time of the next probe.
    pub(super) async fn fail_until_open(&self, name: &str) -> Time {
        for _ in 0..rule().failure_threshold {
            let generation = self.look(name).await.map_or(0, |state| state.generation);
            let failed = report(name, Mark::Failed, None, generation);
            if let Transition::Opened { probe_at } = self.report(failed).await {
                return probe_at;
            }
        }
        panic!("{name} did not open");
    }

    pub(super) async fn spend(&self, name: &str, permit: &Permit) -> Spend {
        self.spend_at(name, permit, RATE).await
    }

    pub(super) async fn spend_at(&self, name: &str, permit: &Permit, rate: Rate) -> Spend {
        let spent = self.store.spend(&site(name), permit, rate).await;
        let (spend, now) = spent.expect("a permit is judged");
        assert_eq!(now, self.now());
        spend
    }

    pub(super) async fn look(&self, name: &str) -> Option<SiteState> {
        self.store.look(&site(name)).await.expect("a site can be looked at").0
    }

    /// Gives an order, and returns whether it changed anything.
    pub(super) async fn order(&self, name: &str, order: Order) -> bool {
        self.store.order(&site(name), order, "operator").await.expect("an order is heard")
    }

    pub(super) async fn sweep(&self) -> u64 {
        self.store.sweep().await.expect("the store is swept")
    }
}

pub(super) fn site(name: &str) -> Site {
    Site::parse(name).expect("the name of a site")
}

pub(super) fn ask(name: &str) -> SiteAsk {
    SiteAsk { site: site(name), rate: RATE, follows_robots: false }
}

pub(super) fn report(
    name: &str,
    mark: Mark,
    retry_after: Option<Duration>,
    generation: u64,
) -> SiteReport {
    SiteReport { site: site(name), report: Report { mark, retry_after, generation } }
}

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
