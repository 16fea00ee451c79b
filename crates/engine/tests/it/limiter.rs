//! The seven cases of the domain rate limiter's design, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::ports::politeness::{Politeness, SiteAsk};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::Verdict;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use futures::future::join_all;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

struct Limiter(Arc<MemoryPoliteness>);

impl Limiter {
    fn new() -> Limiter {
        let clock = Clock::simulated(Time::from_secs(1_000_000));
        Limiter(Arc::new(MemoryPoliteness::new(clock, BreakerRule::default(), 1)))
    }

    /// Reserves a slot, waits for it, and tells how long that took.
    async fn wait(&self, domain: &str) -> Duration {
        let site = Site::parse(domain).unwrap();
        let started = Instant::now();
        loop {
            let ask =
                SiteAsk { site: site.clone(), rate: Rate::every(SECOND), follows_robots: false };
            let turn = self.0.turn(&[], &[ask]).await.unwrap();
            match turn.verdicts[0] {
                Verdict::Go(permit) => {
                    sleep(permit.slot.at.since(turn.now)).await;
                    return started.elapsed();
                }
                Verdict::NotBefore { at, .. } => sleep(at.since(turn.now)).await,
                Verdict::Probe(_) => panic!("nothing has failed"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn first_request() {
    assert_eq!(Limiter::new().wait("a.test").await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn second_request_within_interval() {
    let limiter = Limiter::new();
    limiter.wait("a.test").await;
    sleep(SECOND / 2).await;
    let waited = limiter.wait("a.test").await;
    assert!((SECOND / 2..SECOND * 51 / 100).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn second_request_after_interval() {
    let limiter = Limiter::new();
    limiter.wait("a.test").await;
    sleep(SECOND * 2).await;
    assert_eq!(limiter.wait("a.test").await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn concurrent_same_domain() {
    let limiter = Limiter::new();
    let mut waits = join_all((0..10).map(|_| limiter.wait("a.test"))).await;
    waits.sort();
    assert!(waits.windows(2).all(|pair| pair[1] - pair[0] >= SECOND), "{waits:?}");
    assert!(waits[9] < SECOND * 10, "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn concurrent_different_domains() {
    let limiter = Limiter::new();
    let domains: Vec<String> = (0..100).map(|n| format!("site-{n}.test")).collect();
    let waits = join_all(domains.iter().map(|domain| limiter.wait(domain))).await;
    assert!(waits.iter().all(Duration::is_zero), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn cleanup_removes_stale() {
    let limiter = Limiter::new();
    limiter.wait("a.test").await;
    sleep(SECOND * 3_700).await;
    assert_eq!(limiter.0.sweep().await.unwrap(), 1);
    assert_eq!(limiter.0.sites_known(), 0);
}

#[tokio::test(start_paused = true)]
async fn cleanup_preserves_recent() {
    let limiter = Limiter::new();
    limiter.wait("old.test").await;
    sleep(SECOND * 3_000).await;
    limiter.wait("recent.test").await;
    sleep(SECOND * 700).await;
    assert_eq!(limiter.0.sweep().await.unwrap(), 1);
    assert_eq!(limiter.0.sites_known(), 1);
}
