//! Memory of URLs that wait in the window.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::Gate;
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::pipeline::{self, Door, RunLimits};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled};
use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_engine::web::{Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::flow::{LEASE_TTL, job, plan, rules, runtime};
use crate::meter::resident_bytes;

/// Leases handed out at once.
const A_TAKE: usize = 8_192;

/// Bytes a URL, with so many URLs of so many sites waiting in the window of a run.
pub async fn bytes_per_url(urls: usize, sites: usize) -> Result<f64> {
    let clock = Clock::system();
    let source = Arc::new(Given { urls, sites, ..Given::default() });
    let door = Door {
        source: source.clone(),
        planner: Arc::new(plan),
        finish: Arc::new(Keeps),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    let politeness = Arc::new(MemoryPoliteness::new(clock.clone(), BreakerRule::default(), 7));
    let gate = Gate::new(politeness, rules(Duration::from_millis(100)), clock.clone());
    let limits = RunLimits { window: 2 * urls, max_per_site: urls, ..RunLimits::default() };
    let before = resident_bytes()?;
    let stop = CancellationToken::new();
    let run = pipeline::run(door, runtime(gate, Arc::new(Silent), limits, clock), stop);
    tokio::select! {
        ended = run => ended.map(|_| ()).context("the run must not end")?,
        () = source.all_given.notified() => {}
    }
    Ok((resident_bytes()? - before) as f64 / urls as f64)
}

/// The URL of a page: about as long as they are, and with no more room than it needs, as a store hands
/// it out.
pub fn url(number: usize, sites: usize) -> String {
    let site = number % sites;
    let text = format!("https://site-{site}.example/articles/2024/some-page-title-{number}.html");
    text.as_str().to_owned()
}

/// Leases made up as they are asked for.
#[derive(Default)]
struct Given {
    urls: usize,
    sites: usize,
    given: AtomicUsize,
    all_given: Notify,
}

#[async_trait]
impl Source for Given {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let from = self.given.load(Ordering::Relaxed);
        let to = (from + demand.most.min(A_TAKE)).min(self.urls);
        self.given.store(to, Ordering::Relaxed);
        if from == to {
            self.all_given.notify_one(); // And all of them have been taken in by now.
            return Ok(Taken::Idle { until: Time::FAR_FUTURE });
        }
        Ok(Taken::Jobs((from..to).map(|number| lease(number, self.sites)).collect()))
    }

    async fn started(&self, _: &[LeaseId]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        Ok(Renewal::Held { ttl: LEASE_TTL })
    }
}

/// A lease as a store hands it out.
pub fn lease(number: usize, sites: usize) -> Lease {
    Lease {
        id: number as LeaseId,
        job: job(url(number, sites)),
        history: History::default(),
        interruptions: 0,
        accepted_at: Time::EPOCH,
    }
}

/// Nothing comes to an end here.
struct Keeps;

#[async_trait]
impl<R: Send + Sync> Finish<R> for Keeps {
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError> {
        Ok(vec![Settled::Confirmed; batch.len()])
    }
}

/// A web that never answers.
struct Silent;

#[async_trait]
impl Web for Silent {
    async fn exchange(&self, _: &Request, _: &mut dyn SendPermit, _: &mut Phases) -> Exchange {
        std::future::pending().await
    }
}
