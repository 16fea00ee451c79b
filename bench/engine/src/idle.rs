//! Memory of sites that are known and have nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::budget::Share;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::Gate;
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::pipeline::{self, Door, RunEnd, RunLimits};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::politeness::{Politeness, RobotsRecord, SiteAsk, SiteReport, Turn};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_engine::web::{Answer, Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use tokio_util::sync::CancellationToken;

use crate::flow::{LEASE_TTL, plan, rules, runtime};
use crate::meter::resident_bytes;
use crate::window::lease;

/// Leases handed out at once.
const A_TAKE: usize = 8_192;

/// Bytes a site that the engine still holds when it has fetched one page of each. The sites' state is
/// not in them: it is the store's.
pub async fn engine_bytes_per_site(sites: usize) -> Result<f64> {
    let clock = Clock::system();
    let rounds = Arc::new(Rounds { sites, ..Rounds::default() });
    let door = Door {
        source: rounds.clone(),
        planner: Arc::new(plan),
        finish: rounds.clone(),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    let elsewhere = Arc::new(Elsewhere(clock.clone()));
    let gate = Gate::new(elsewhere, rules(Duration::from_secs(1)), clock.clone());
    let before = resident_bytes()?;
    let runtime = runtime(gate, Arc::new(Ready), RunLimits::default(), clock);
    let ended = pipeline::run(door, runtime, CancellationToken::new()).await?;
    ensure!(ended == RunEnd::Exhausted, "{ended:?}");
    let after = rounds.resident_at_the_end.load(Ordering::Relaxed);
    Ok(after.saturating_sub(before) as f64 / sites as f64)
}

/// Bytes a site in the politeness store in memory.
pub async fn store_bytes_per_site(sites: usize) -> Result<f64> {
    let store = MemoryPoliteness::new(Clock::system(), BreakerRule::default(), 7);
    let before = resident_bytes()?;
    for number in 0..sites {
        let site = Site::parse(&format!("site-{number}.example"))?;
        let rate = Rate::every(Duration::from_secs(1));
        store.turn(&[], &[SiteAsk { site, rate, follows_robots: false }]).await?;
    }
    ensure!(store.sites_known() == sites);
    Ok((resident_bytes()? - before) as f64 / sites as f64)
}

/// A page of each site, until all are settled.
#[derive(Default)]
struct Rounds {
    sites: usize,
    given: AtomicUsize,
    settled: AtomicUsize,
    resident_at_the_end: AtomicU64,
}

#[async_trait]
impl Source for Rounds {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let from = self.given.load(Ordering::Relaxed);
        let to = (from + demand.most.min(A_TAKE)).min(self.sites);
        self.given.store(to, Ordering::Relaxed);
        if from < to {
            return Ok(Taken::Jobs((from..to).map(|number| lease(number, self.sites)).collect()));
        }
        if self.settled.load(Ordering::Relaxed) < self.sites {
            return Ok(Taken::Idle { until: Clock::system().now() + Duration::from_millis(100) });
        }
        let resident = resident_bytes().map_err(|error| StoreError::bug(error.to_string()))?;
        self.resident_at_the_end.store(resident, Ordering::Relaxed);
        Ok(Taken::Exhausted)
    }

    async fn started(&self, _: &[LeaseId]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        Ok(Renewal::Held { ttl: LEASE_TTL })
    }
}

#[async_trait]
impl<R: Send + Sync> Finish<R> for Rounds {
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError> {
        self.settled.fetch_add(batch.len(), Ordering::Relaxed);
        Ok(vec![Settled::Confirmed; batch.len()])
    }
}

/// A web that has an empty answer for everything.
struct Ready;

#[async_trait]
impl Web for Ready {
    async fn exchange(
        &self,
        _: &Request,
        send_permit: &mut dyn SendPermit,
        _: &mut Phases,
    ) -> Exchange {
        if !send_permit.to_write().await {
            return Exchange::NotSent;
        }
        let headers = http::HeaderMap::new();
        let body = Bytes::new();
        let share = Share::none();
        Exchange::Answered(Answer { status: 200, headers, body, share, wire: Box::default() })
    }
}

/// A politeness store that is somewhere else: it knows every site, and keeps nothing here.
struct Elsewhere(Clock);

#[async_trait]
impl Politeness for Elsewhere {
    async fn turn(&self, _: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let now = self.0.now();
        let rule = BreakerRule::default();
        let verdict = |ask: &SiteAsk| -> Verdict {
            SiteState::default().ask(now, ask.rate, ask.follows_robots, &rule)
        };
        Ok(Turn { now, verdicts: asks.iter().map(verdict).collect(), transitions: Vec::new() })
    }

    async fn spend(&self, _: &Site, _: &Permit, _: Rate) -> Result<(Spend, Time), StoreError> {
        Ok((Spend::Go, self.0.now()))
    }

    async fn robots(&self, _: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        let fetched_at = self.0.now();
        let body = Some(b"User-agent: *\nDisallow: /private/\n".to_vec());
        Ok(Some(RobotsRecord {
            body,
            status: Some(200),
            fetched_at,
            unreachable: None,
            robots_forgotten: None,
        }))
    }

    async fn keep_robots(&self, _: &Origin, _: &RobotsRecord) -> Result<(), StoreError> {
        Ok(())
    }

    async fn look(&self, _: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        Ok((None, self.0.now()))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}
