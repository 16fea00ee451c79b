//! A politeness store whose clock is set: what was given out by the old time must not come too soon.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{Politeness, RobotsRecord, SiteAsk};
use fetchwell_engine::shared_politeness::{
    Change, SharedPoliteness, SiteStateStore, SiteStates, Texts,
};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::Verdict;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use parking_lot::Mutex;
use tokio::time::sleep;

const RATE: Rate = Rate::every(Duration::from_secs(5));
const HOUR: Duration = Duration::from_secs(3_600);
const START: Time = Time::from_secs(1_700_000_000);

/// A server in memory with a clock that can be set. Clones are the same server.
#[derive(Clone)]
struct Jumpy(Arc<Mutex<Server>>);

struct Server {
    clock: Clock,
    lost_until: Time,
    sites: HashMap<Site, Texts>,
}

impl Jumpy {
    fn new() -> Jumpy {
        let clock = Clock::simulated(START);
        let server = Server { clock, lost_until: Time::EPOCH, sites: HashMap::new() };
        Jumpy(Arc::new(Mutex::new(server)))
    }

    fn set_clock(&self, time: Time) {
        self.0.lock().clock = Clock::simulated(time);
    }

    fn now(&self) -> Time {
        self.0.lock().clock.now()
    }
}

#[async_trait]
impl SiteStateStore for Jumpy {
    async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError> {
        let server = self.0.lock();
        let texts = |site| server.sites.get(site).cloned().unwrap_or_default();
        let sites = sites.iter().map(texts).collect();
        Ok(SiteStates { now: server.clock.now(), lost_until: server.lost_until, sites })
    }

    async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        let mut server = self.0.lock();
        let mut replace = |change: &Change| {
            let kept = server.sites.entry(change.site.clone()).or_default();
            let stands = *kept == change.before;
            if stands {
                *kept = change.after.clone();
            }
            stands
        };
        Ok(changes.iter().map(&mut replace).collect())
    }

    async fn distrust_the_past(&self) -> Result<(), StoreError> {
        let mut server = self.0.lock();
        server.lost_until = server.clock.now();
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

    async fn robots(&self, origins: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError> {
        Ok(vec![None; origins.len()])
    }

    async fn forget_robots(&self, _: &[Origin]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn keep_robots(&self, _: &Origin, _: &RobotsRecord) -> Result<(), StoreError> {
        Ok(())
    }

    async fn sweep(&self, _: Time) -> Result<u64, StoreError> {
        Ok(0)
    }
}

type Watched = SharedPoliteness<Jumpy>;

fn watched(server: &Jumpy) -> Watched {
    SharedPoliteness::new(server.clone(), Clock::system(), BreakerRule::default(), 7)
}

fn site(name: &str) -> Site {
    Site::parse(name).unwrap()
}

/// How long it is until a request may go to a site.
async fn wait(politeness: &Watched, name: &str) -> Duration {
    let ask = SiteAsk { site: site(name), rate: RATE, follows_robots: false };
    let turn = politeness.turn(&[], &[ask]).await.unwrap();
    match turn.verdicts[0] {
        Verdict::Go(permit) => permit.slot.at.since(turn.now),
        Verdict::NotBefore { at, .. } => at.since(turn.now),
        Verdict::Probe(_) => panic!("nothing has failed"),
    }
}

/// Lets the clock jump from one time to another, while two processes look at it.
async fn jump(to: fn(Time) -> Time) {
    let server = Jumpy::new();
    let here = watched(&server);
    let there = watched(&server);
    assert_eq!(wait(&here, "known.test").await, Duration::ZERO);
    assert_eq!(wait(&there, "other.test").await, Duration::ZERO);
    sleep(RATE.interval * 2).await;
    server.set_clock(to(server.now()));
    for name in ["known.test", "unheard-of.test"] {
        let wait = wait(&here, name).await;
        assert!(wait >= RATE.interval, "{name} waits for {wait:?}");
    }
    // The other one notices it by itself, and again all wait.
    let wait_there = wait(&there, "unheard-of-there.test").await;
    assert!(wait_there >= RATE.interval, "{wait_there:?}");
    sleep(RATE.interval * 2).await;
    assert_eq!(wait(&here, "later.test").await, Duration::ZERO, "a jump is noticed once");
}

#[tokio::test(start_paused = true)]
async fn after_a_jump_ahead_every_site_waits_for_a_whole_interval() {
    jump(|now| now + HOUR).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_jump_back_every_site_waits_for_a_whole_interval() {
    jump(|now| now - HOUR).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_put_right_a_little_at_a_time_has_not_jumped() {
    let server = Jumpy::new();
    let politeness = watched(&server);
    for name in ["a.test", "b.test", "c.test"] {
        assert_eq!(wait(&politeness, name).await, Duration::ZERO, "{name}");
        server.set_clock(server.now() + Duration::from_millis(90));
    }
}
