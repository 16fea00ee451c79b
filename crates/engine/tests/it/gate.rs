//! Permission to write a head: what the gate adds to the store's answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::{Gate, GatePermit, GateRules, GroupPace, PaceRules, RobotsRules};
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{Politeness, RobotsRecord, SiteAsk, SiteReport, Turn};
use fetchwell_engine::web::SendPermit;
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::chance::Chance;
use fetchwell_policy::pace::{Pace, Rate};
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::site::{Permit, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

const RATE: Rate = Rate::every(Duration::from_secs(1));

/// A store that lets everything go, some of it late: as one does whose clock has jumped.
struct Yes {
    late_answers: usize,
    asked: AtomicUsize,
}

#[async_trait]
impl Politeness for Yes {
    async fn spend(&self, _: &Site, _: &Permit, _: Rate) -> Result<(Spend, Time), StoreError> {
        if self.asked.fetch_add(1, Ordering::SeqCst) < self.late_answers {
            sleep(Duration::from_millis(300)).await;
        }
        Ok((Spend::Go, Time::EPOCH))
    }

    async fn turn(&self, _: &[SiteReport], _: &[SiteAsk]) -> Result<Turn, StoreError> {
        Ok(Turn::default())
    }

    async fn robots(&self, _: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        Ok(None)
    }

    async fn keep_robots(&self, _: &Origin, _: &RobotsRecord) -> Result<(), StoreError> {
        Ok(())
    }

    async fn look(&self, _: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        Ok((None, Time::EPOCH))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// A gate on such a store.
fn rules() -> GateRules {
    GateRules {
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
        site_attempts: None,
        missing_hosts_fail: false,
    }
}

struct Trial {
    store: Arc<Yes>,
    gate: Gate,
    clock: Clock,
}

impl Trial {
    fn new(late_answers: usize) -> Trial {
        let store = Arc::new(Yes { late_answers, asked: AtomicUsize::new(0) });
        let clock = Clock::simulated(Time::from_secs(1_800_000_000));
        Trial { gate: Gate::new(store.clone(), rules(), clock.clone()), store, clock }
    }

    /// Permission to write a head whose slot comes `after` a while.
    fn send_permit(&self, name: &str, after: Duration) -> GatePermit {
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
            lead: Duration::ZERO,
            recoveries: 0,
        };
        self.gate.send_permit(Site::parse(name).unwrap(), permit, slot.at, RATE)
    }

    /// Asks for leave to write a head whose slot comes `after` a while, and says how long it took.
    async fn write(&self, name: &str, after: Duration, follows_robots: bool) -> Duration {
        let mut send_permit = self.send_permit(name, after).following_robots(follows_robots);
        let asked = Instant::now();
        assert!(send_permit.to_write().await);
        assert_eq!(send_permit.early_by, None);
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
    let trial = Trial::new(0);
    let ahead = Duration::from_millis(500);
    let mut one = trial.send_permit("a.test", ahead);
    let mut other = trial.send_permit("a.test", ahead);
    assert_eq!(tokio::join!(one.to_write(), other.to_write()), (true, true));
    let early: Vec<Duration> = one.early_by.into_iter().chain(other.early_by).collect();
    assert_eq!(early, [RATE.interval]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_lies_ahead_is_waited_for_and_spent() {
    let trial = Trial::new(0);
    let ahead = Duration::from_millis(700);
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

/// A store whose answers about heads are under way for a while.
struct Slow {
    store: MemoryPoliteness,
    chance: Mutex<Chance>,
}

#[async_trait]
impl Politeness for Slow {
    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        let answer = self.store.spend(site, permit, rate).await;
        let chance = self.chance.lock().next_u64();
        let slowest = if chance.is_multiple_of(4) { 900 } else { 60 };
        sleep(Duration::from_millis((chance >> 8) % slowest)).await;
        answer
    }

    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        self.store.turn(reports, asks).await
    }

    async fn robots(&self, _: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        Ok(None)
    }

    async fn keep_robots(&self, _: &Origin, _: &RobotsRecord) -> Result<(), StoreError> {
        Ok(())
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        self.store.look(site).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// A process that writes this many heads as soon as it may; gives the moments.
async fn write_heads(store: Arc<Slow>, clock: Clock, count: usize) -> Vec<Instant> {
    let gate = Gate::new(store.clone(), rules(), clock.clone());
    let site = Site::parse("a.test").unwrap();
    let mut written = Vec::new();
    while written.len() < count {
        let ask = SiteAsk { site: site.clone(), rate: RATE, follows_robots: false };
        let turn = store.turn(&[], &[ask]).await.unwrap();
        let [verdict] = &turn.verdicts[..] else { panic!("{turn:?}") };
        match verdict {
            Verdict::Go(permit) => {
                let at = permit.slot.at;
                sleep(at.since(clock.now())).await;
                if gate.send_permit(site.clone(), *permit, at, RATE).to_write().await {
                    written.push(Instant::now());
                }
            }
            Verdict::NotBefore { at, .. } => sleep(at.since(clock.now())).await,
            Verdict::Probe(_) => panic!("no breaker is open"),
        }
    }
    written
}

/// A process that takes slots, and dies before it uses them.
async fn take_slots(store: Arc<Slow>) {
    let site = Site::parse("a.test").unwrap();
    loop {
        sleep(Duration::from_millis(1_700)).await;
        let ask = SiteAsk { site: site.clone(), rate: RATE, follows_robots: false };
        store.turn(&[], &[ask]).await.unwrap();
    }
}

/// However long its answers take, the heads of two processes keep their distance, but for the tenth of the interval
/// that an answer may take. A third process asks while their heads are on their way.
#[tokio::test(start_paused = true)]
async fn a_slow_store_costs_time_and_no_distance() {
    for seed in 0..40 {
        let clock = Clock::simulated(Time::from_secs(1_800_000_000));
        let store = MemoryPoliteness::new(clock.clone(), BreakerRule::default(), seed);
        let store = Arc::new(Slow { store, chance: Mutex::new(Chance::seeded(seed)) });
        let one = write_heads(store.clone(), clock.clone(), 20);
        let other = write_heads(store.clone(), clock, 20);
        let (mut written, of_the_other) = tokio::select! {
            biased;
            heads = async { tokio::join!(one, other) } => heads,
            () = take_slots(store) => unreachable!("it never ends"),
        };
        written.extend(of_the_other);
        written.sort();
        let gaps = written.windows(2).map(|pair| pair[1] - pair[0]);
        let shortest = gaps.min().unwrap();
        assert!(shortest >= RATE.interval * 9 / 10, "seed {seed}: {shortest:?}");
    }
}
