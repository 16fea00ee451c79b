//! Leave to write a head: what the gate adds to the store's word.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::{
    Gate, GateLeave, GateRules, GroupPace, PaceRules, RobotsRules, WhenUnreachable,
};
use fetchwell_engine::ports::{Politeness, RobotsRecord, SiteAsk, SiteReport, StoreFault, Turn};
use fetchwell_engine::web::Leave;
use fetchwell_policy::pace::{Pace, Rate};
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use tokio::time::{Instant, sleep};

const RATE: Rate = Rate::every(Duration::from_secs(1));

/// A store that lets everything go, some of it late: as one does whose clock has jumped.
struct Yes {
    late_answers: usize,
    asked: AtomicUsize,
}

#[async_trait]
impl Politeness for Yes {
    async fn spend(&self, _: &Site, _: &Permit, _: Rate) -> Result<(Spend, Time), StoreFault> {
        if self.asked.fetch_add(1, Ordering::SeqCst) < self.late_answers {
            sleep(Duration::from_millis(300)).await;
        }
        Ok((Spend::Go, Time::EPOCH))
    }

    async fn turn(&self, _: &[SiteReport], _: &[SiteAsk]) -> Result<Turn, StoreFault> {
        Ok(Turn::default())
    }

    async fn robots(&self, _: &Origin) -> Result<Option<RobotsRecord>, StoreFault> {
        Ok(None)
    }

    async fn keep_robots(&self, _: &Origin, _: &RobotsRecord) -> Result<(), StoreFault> {
        Ok(())
    }

    async fn look(&self, _: &Site) -> Result<(Option<SiteState>, Time), StoreFault> {
        Ok((None, Time::EPOCH))
    }

    async fn sweep(&self) -> Result<u64, StoreFault> {
        Ok(0)
    }
}

/// A gate on such a store.
struct Trial {
    store: Arc<Yes>,
    gate: Gate,
    clock: Clock,
}

impl Trial {
    fn new(late_answers: usize) -> Trial {
        let store = Arc::new(Yes { late_answers, asked: AtomicUsize::new(0) });
        let rules = GateRules {
            pace: PaceRules {
                default_interval: RATE.interval,
                sites: HashMap::new(),
                concurrency: HashMap::new(),
                groups: GroupPace::default(),
            },
            robots: RobotsRules {
                product_token: "TestBot".to_owned(),
                when_unreachable: WhenUnreachable::Defer,
                fresh_for: Duration::from_secs(86_400),
                stale_for: Duration::from_secs(86_400),
                max_crawl_delay: None,
                pages_fail_with_it: false,
            },
            give_up_after: None,
            missing_hosts_fail: false,
        };
        let clock = Clock::simulated(Time::from_secs(1_800_000_000));
        Trial { gate: Gate::new(store.clone(), rules, clock.clone()), store, clock }
    }

    /// Leave to write a head whose slot comes `after` a while.
    fn leave(&self, name: &str, after: Duration) -> GateLeave {
        let now = self.clock.now();
        let slot = Pace::default().reserve(now + after, now, RATE);
        let permit = Permit {
            slot,
            generation: 0,
            last_served: None,
            failures_on_record: false,
            rate: RATE,
            rate_is_ordered: false,
            robots_forgotten: None,
        };
        self.gate.leave(Site::parse(name).unwrap(), permit, slot.at, RATE)
    }

    /// Asks for leave to write a head whose slot comes `after` a while, and says how long it took.
    async fn write(&self, name: &str, after: Duration, follows_robots: bool) -> Duration {
        let mut leave = self.leave(name, after).following_robots(follows_robots);
        let asked = Instant::now();
        assert!(leave.to_write().await);
        assert_eq!(leave.early_by(), None);
        asked.elapsed()
    }

    fn asked(&self) -> usize {
        self.store.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn two_heads_are_an_interval_apart_whatever_the_store_says() {
    let trial = Trial::new(0);
    assert_eq!(trial.write("a.test", Duration::ZERO, false).await, Duration::ZERO);
    assert_eq!(trial.write("a.test", Duration::ZERO, true).await, Duration::ZERO, "a pair");
    assert_eq!(trial.write("b.test", Duration::ZERO, false).await, Duration::ZERO, "another");
    assert!(trial.write("a.test", Duration::ZERO, false).await >= RATE.interval);
}

/// Nobody asks for two at once; if somebody did, on a store that does not mind, it would be told.
#[tokio::test(start_paused = true)]
async fn a_head_that_leaves_too_early_is_told() {
    // Both wait for their slots, and neither knows of the other by then.
    let (trial, ahead) = (Trial::new(0), Duration::from_millis(500));
    let (mut one, mut other) = (trial.leave("a.test", ahead), trial.leave("a.test", ahead));
    assert_eq!(tokio::join!(one.to_write(), other.to_write()), (true, true));
    let early: Vec<Duration> = one.early_by().into_iter().chain(other.early_by()).collect();
    assert_eq!(early, [RATE.interval]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_lies_ahead_is_waited_for_and_spent() {
    let (trial, ahead) = (Trial::new(0), Duration::from_millis(700));
    assert!(trial.write("a.test", ahead, false).await >= ahead);
    assert_eq!(trial.asked(), 1);
}

/// The process may have been stopped after the store said so.
#[tokio::test(start_paused = true)]
async fn a_word_that_comes_late_is_asked_for_once_more() {
    let ahead = Duration::from_millis(700);
    for (late_answers, asked) in [(0, 1), (1, 2), (9, 2)] {
        let trial = Trial::new(late_answers);
        trial.write("a.test", ahead, false).await;
        assert_eq!(trial.asked(), asked, "{late_answers} late answers");
    }
}
