//! The gate: the one place that says *go*, *not before t*, or *never, because…*.
//!
//! It combines robots.txt, the pace of the site and the breaker. What all processes share lives in the
//! politeness store; here is what this process makes of it.

pub mod namespaced;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::outcome::{Happened, WaitAskedBy};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::{Robots, RobotsVerdict, WhenUnreachable};
use fetchwell_policy::site::{Mark, Permit, Report, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site, WebUrl};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tracing::debug;

use crate::clock::Clock;
use crate::ports::politeness::{Politeness, RobotsRecord, SiteAsk, SiteReport, Unreachable};
use crate::store_health::{StoreCall, StoreHealth};
use crate::web::{Given, Leave};

/// A held connection waits at most this long for its slot; a longer wait goes back to the workbench.
const LONGEST_WAIT_IN_FLIGHT: Duration = Duration::from_secs(2);

/// A head that is early by less than timers can tell is not early.
const TIMER_GRAIN: Duration = Duration::from_millis(1);

/// A store's answer that a head may go is good for a tenth of the interval: the next head comes that much too soon
/// when the answer takes as long as this. Within these bounds, because no store answers at once…
const LEAST_GOOD_FOR: Duration = Duration::from_millis(20);
/// …and an answer that takes longer says that the process or the store was stopped.
const MOST_GOOD_FOR: Duration = Duration::from_millis(250);

/// How many times a permit is spent when each answer arrives too late to use; after that it is given back.
const MOST_SPENDINGS: u32 = 4;

/// A robots.txt that was just read is good for at least this long, whatever the setting.
const LEAST_FRESH: Duration = Duration::from_secs(60);

/// Where a pace comes from that an operator ordered…
pub const BY_ORDER: &str = "operator";
/// …one that robots.txt asks for…
pub const CRAWL_DELAY: &str = "Crawl-delay";
/// …and one that a group was given.
pub const GROUP_LIMIT: &str = "retailer limit";

/// Where the pace of groups is kept, among the sites.
const GROUPS: &str = "group";

/// The rules of robots.txt.
#[derive(Clone, Debug)]
pub struct RobotsRules {
    /// The name by which robots.txt files know us.
    pub product_token: String,
    /// What an unreachable file means.
    pub when_unreachable: WhenUnreachable,
    /// How long a copy is fresh.
    pub fresh_for: Duration,
    /// How old a copy may be that stands in for a file that cannot be reached.
    pub stale_for: Duration,
    /// A longer Crawl-delay makes the site's URLs fail.
    pub max_crawl_delay: Option<Duration>,
    /// A site that can't be reached for its robots.txt can't be reached for its pages either: with this,
    /// those that wait for it hear of that as of an attempt of their own.
    pub pages_fail_with_it: bool,
}

/// The pace that a site is given, and by whom.
#[derive(Clone, Debug)]
pub struct PaceRules {
    /// The interval where nothing else is said.
    pub default_interval: Duration,
    /// Intervals of single sites.
    pub sites: HashMap<Site, Duration>,
    /// Sites that are paced by concurrency instead: archives that are made to be read in bulk.
    pub concurrency: HashMap<Site, usize>,
    /// The pace of groups, which holds besides that of their sites.
    pub groups: GroupPace,
}

/// The pace of groups.
#[derive(Clone, Debug, Default)]
pub struct GroupPace {
    /// Where nothing else is said; `None`: groups have no pace of their own.
    pub default: Option<Rate>,
    /// Of single groups.
    pub named: HashMap<String, Rate>,
    /// Of single groups at each of their sites, in place of the site's own: for those whose limit somebody
    /// wrote down.
    pub at_sites: HashMap<String, Rate>,
}

/// All that the gate goes by.
#[derive(Clone, Debug)]
pub struct GateRules {
    /// The pace.
    pub pace: PaceRules,
    /// robots.txt.
    pub robots: RobotsRules,
    /// A site that has been down this long, while we were there to see it, is given up; so is one that asks for a
    /// longer wait, and a run whose store has failed for this long.
    pub give_up_after: Option<Duration>,
    /// While a site's breaker is open, each failed probe is an attempt of every URL that waited for it, and a URL
    /// ends when it has had this many. `None`: URLs wait unharmed.
    pub site_attempts: Option<u32>,
    /// The URLs of a host that does not exist, and never answered, fail for that; else the site does.
    pub missing_hosts_fail: bool,
}

/// What a site's next page waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// `paused`, `breaker`, `penalty`, `robots` (it can't be read, and is tried again later) or `pace`; `None`: it
    /// can go now.
    pub held_up_by: Option<&'static str>,
    /// When it could go, as things stand; `None`: not before an operator resumes the site.
    pub next_slot_in: Option<Duration>,
}

impl GateRules {
    /// The pace of a site whose robots.txt asks for `crawl_delay`, and where it comes from.
    pub fn rate(&self, site: &Site, crawl_delay: Option<Duration>) -> (Rate, &'static str) {
        if self.pace.concurrency.contains_key(site) {
            return (Rate::every(Duration::ZERO), "concurrency");
        }
        let (interval, source) = match self.pace.sites.get(site) {
            Some(interval) => (*interval, "site setting"),
            None => (self.pace.default_interval, "default rate"),
        };
        let least_interval = crawl_delay.unwrap_or_default();
        if least_interval > interval {
            return (Rate::at_most_every(least_interval), CRAWL_DELAY);
        }
        (Rate { least_interval, ..Rate::every(interval) }, source)
    }

    /// The same for a request in the name of a group. The limit that a group was given is the site's pace for
    /// it, unless the site has a rate of its own or asks for more time.
    pub fn rate_for(
        &self,
        site: &Site,
        crawl_delay: Option<Duration>,
        group: Option<&str>,
    ) -> (Rate, &'static str) {
        let PaceRules { sites, concurrency, groups, .. } = &self.pace;
        let has_its_own = sites.contains_key(site) || concurrency.contains_key(site);
        let limit = group.and_then(|group| groups.at_sites.get(group));
        let Some(limit) = limit.filter(|_| !has_its_own) else {
            return self.rate(site, crawl_delay);
        };
        let least_interval = crawl_delay.unwrap_or_default();
        if least_interval > limit.interval {
            return (Rate::at_most_every(least_interval), CRAWL_DELAY);
        }
        // A burst would be too soon for any Crawl-delay.
        let burst = if least_interval.is_zero() { limit.burst } else { 1 };
        (Rate { least_interval, burst, ..*limit }, GROUP_LIMIT)
    }

    /// The pace that holds in the light of what an operator ordered, and where it comes from.
    pub fn ordered(
        &self,
        state: &SiteState,
        (rate, source): (Rate, &'static str),
    ) -> (Rate, &'static str) {
        match &state.orders.interval {
            None => (rate, source),
            Some(_) if state.orders.decide(rate) => (state.rate(rate), BY_ORDER),
            Some(_) => (state.rate(rate), CRAWL_DELAY),
        }
    }

    /// What a site's next page waits for, where `rate` is the pace and these are the records of its robots.txt:
    /// the one answer for everything that shows it. `store_now` is the time by the store's clock, `now` by ours.
    pub fn outlook<'a>(
        &self,
        state: &SiteState,
        rate: Rate,
        robots: impl IntoIterator<Item = &'a RobotsRecord>,
        (store_now, now): (Time, Time),
    ) -> Outlook {
        let blocked = |record: &RobotsRecord| match self.view(Some(record), Some(state), now) {
            RobotsView::Blocked { until, .. } => Some(until.since(now)),
            _ => None,
        };
        let robots_wait = robots.into_iter().filter_map(blocked).max();
        let Some(slot) = state.next_slot(store_now, rate) else {
            return Outlook { held_up_by: Some("paused"), next_slot_in: None };
        };
        let slot_in = slot.since(store_now);
        let held_up_by = if state.breaker.blocked_until().is_some() {
            Some("breaker")
        } else if state.penalty_until > store_now {
            Some("penalty")
        } else if robots_wait.is_some() {
            Some("robots")
        } else {
            (!slot_in.is_zero()).then_some("pace")
        };
        Outlook { held_up_by, next_slot_in: Some(slot_in.max(robots_wait.unwrap_or_default())) }
    }

    /// What a robots.txt record means at `now`, where its site is in `state`. `None`: it was just read, so the
    /// state says nothing that the record does not know.
    pub fn view(
        &self,
        record: Option<&RobotsRecord>,
        state: Option<&SiteState>,
        now: Time,
    ) -> RobotsView {
        let Some(record) = record else { return RobotsView::Fetch };
        let rules = &self.robots;
        let copy = record.body.as_deref();
        let Some(unreachable) = &record.unreachable else {
            let until = record.fetched_at + rules.fresh_for.max(LEAST_FRESH);
            return match copy {
                Some(body) if now < until => {
                    RobotsView::Known { robots: self.parse(body), until, unread_as_of: None }
                }
                _ => RobotsView::Fetch,
            };
        };
        let until = unreachable.retry_at;
        if now >= until || state.is_some_and(|state| unreachable.comes_first(state)) {
            return RobotsView::Fetch;
        }
        let unread_as_of = unreachable.recoveries;
        let stands_in =
            |robots| RobotsView::Known { robots, until, unread_as_of: Some(unread_as_of) };
        let is_not_too_old = now < record.fetched_at + rules.stale_for;
        match (copy, rules.when_unreachable) {
            (Some(body), _) if is_not_too_old => stands_in(self.parse(body)),
            (_, WhenUnreachable::Allow) => stands_in(Arc::new(Robots::allow_all())),
            (_, WhenUnreachable::Disallow) => stands_in(Arc::new(Robots::disallow_all())),
            (_, WhenUnreachable::Defer) => {
                let Unreachable { since, is_asked_for, .. } = *unreachable;
                RobotsView::Blocked { until, since, unread_as_of, is_asked_for }
            }
        }
    }

    fn parse(&self, body: &[u8]) -> Arc<Robots> {
        Arc::new(Robots::parse(body, &self.robots.product_token))
    }
}

/// What a robots.txt record means now.
#[derive(Clone, Debug)]
pub enum RobotsView {
    /// It must be fetched first.
    Fetch,
    /// It is known, and need not be asked for again before `until`.
    Known {
        /// The rules.
        robots: Arc<Robots>,
        /// Until when they are good.
        until: Time,
        /// They stand in for a file that could not be read when its site had recovered this often.
        unread_as_of: Option<u32>,
    },
    /// Its origin may not be connected to, or does not exist: this happens to its pages.
    Refused(Happened),
    /// It cannot be reached: no page is asked for before `until`.
    Blocked {
        /// When to try again.
        until: Time,
        /// Since when it has been so.
        since: Time,
        /// How often the site had recovered when the file could not be read.
        unread_as_of: u32,
        /// The site asked us to wait until then.
        is_asked_for: bool,
    },
}

impl RobotsView {
    /// The rules, when they are known.
    pub fn robots(&self) -> Option<&Robots> {
        match self {
            RobotsView::Known { robots, .. } => Some(robots),
            RobotsView::Fetch | RobotsView::Refused(_) | RobotsView::Blocked { .. } => None,
        }
    }

    /// How often the site had recovered when its file could not be read; `None`: it could be.
    pub fn unread_as_of(&self) -> Option<u32> {
        match self {
            RobotsView::Known { unread_as_of, .. } => *unread_as_of,
            RobotsView::Blocked { unread_as_of, .. } => Some(*unread_as_of),
            RobotsView::Fetch | RobotsView::Refused(_) => None,
        }
    }
}

/// The gate of one process.
pub struct Gate {
    /// What all processes on one store share.
    pub politeness: Arc<dyn Politeness>,
    rules: GateRules,
    clock: Clock,
    /// When this process last wrote a head to each site, by a clock that never jumps.
    heads: Arc<Heads>,
    started_at: Time,
    /// Which calls to the stores fail: the pipeline's, and those of its requests.
    pub health: Arc<StoreHealth>,
}

impl Gate {
    /// A gate on a politeness store.
    pub fn new(politeness: Arc<dyn Politeness>, rules: GateRules, clock: Clock) -> Gate {
        let started_at = clock.now();
        let heads = Arc::new(Heads::new());
        Gate { politeness, rules, clock, heads, started_at, health: Arc::default() }
    }

    /// The same in a process that keeps one record of its stores for all its pipelines.
    pub fn recording(self, health: StoreHealth) -> Gate {
        Gate { health: Arc::new(health), ..self }
    }

    /// The pace of a site whose robots.txt asks for `crawl_delay`, and where it comes from.
    pub fn rate(&self, site: &Site, crawl_delay: Option<Duration>) -> (Rate, &'static str) {
        self.rules.rate(site, crawl_delay)
    }

    /// The pace of a site in the light of what an operator ordered, and where it comes from.
    pub fn rate_under_orders(
        &self,
        state: &SiteState,
        site: &Site,
        crawl_delay: Option<Duration>,
    ) -> (Rate, &'static str) {
        self.rules.ordered(state, self.rate(site, crawl_delay))
    }

    /// The pace of a site for a request in the name of a group, and where it comes from.
    pub fn rate_for(
        &self,
        site: &Site,
        crawl_delay: Option<Duration>,
        group: Option<&str>,
    ) -> (Rate, &'static str) {
        self.rules.rate_for(site, crawl_delay, group)
    }

    /// The shortest interval that a site has for requests in the name of any of these groups.
    pub(crate) fn shortest_interval<'a>(
        &self,
        site: &Site,
        crawl_delay: Option<Duration>,
        groups: impl Iterator<Item = Option<&'a str>>,
    ) -> Duration {
        let interval_for = |group| self.rate_for(site, crawl_delay, group).0.interval;
        if self.rules.pace.groups.at_sites.is_empty() {
            return interval_for(None); // All are alike, and there may be many.
        }
        groups.map(interval_for).min().unwrap_or_else(|| interval_for(None))
    }

    /// The pace of a permit, and where it comes from, in the light of what robots.txt asks for by now.
    pub(crate) fn rate_of(
        &self,
        permit: &Permit,
        site: &Site,
        crawl_delay: Option<Duration>,
        group: Option<&str>,
    ) -> (Rate, &'static str) {
        let (asked, source) = self.rate_for(site, crawl_delay, group);
        let interval = permit.rate.interval.max(asked.least_interval);
        let source = match interval {
            interval if permit.rate_is_ordered && interval == permit.rate.interval => BY_ORDER,
            interval if interval == asked.interval => source,
            _ => CRAWL_DELAY,
        };
        (Rate { interval, burst: permit.rate.burst.min(asked.burst), ..asked }, source)
    }

    /// The pace of a group, when it has one.
    pub fn group_rate(&self, group: &str) -> Option<Rate> {
        let GroupPace { default, named, .. } = &self.rules.pace.groups;
        named.get(group).copied().or(*default).filter(|rate| !rate.interval.is_zero())
    }

    /// The fastest pace that a group has.
    pub fn fastest_group_rate(&self) -> Option<Rate> {
        let GroupPace { default, named, .. } = &self.rules.pace.groups;
        let within_a_second = |rate: &Rate| {
            let intervals = 1_000_000 / rate.interval.as_micros().max(1);
            intervals.saturating_add(u128::from(rate.burst))
        };
        named.values().copied().chain(*default).max_by_key(within_a_second)
    }

    /// How many requests an archive origin may have at once.
    pub fn concurrency(&self, site: &Site) -> Option<usize> {
        self.rules.pace.concurrency.get(site).copied()
    }

    /// Whether a Crawl-delay is longer than we put up with; then, why its URLs fail.
    pub fn crawl_delay_refusal(&self, robots: &Robots) -> Option<String> {
        let delay = robots.crawl_delay()?;
        let most = self.rules.robots.max_crawl_delay?;
        (delay > most).then(|| {
            format!(
                "the site's Crawl-delay of {} s is over robots.max_crawl_delay ({} s)",
                delay.as_secs_f64(),
                most.as_secs_f64()
            )
        })
    }

    /// What a robots.txt record means now; see [`GateRules::view`].
    pub fn view(&self, record: Option<&RobotsRecord>, state: Option<&SiteState>) -> RobotsView {
        self.rules.view(record, state, self.clock.now())
    }

    /// What a site's next page waits for; see [`GateRules::outlook`].
    pub fn outlook<'a>(
        &self,
        state: &SiteState,
        rate: Rate,
        robots: impl IntoIterator<Item = &'a RobotsRecord>,
        times: (Time, Time),
    ) -> Outlook {
        self.rules.outlook(state, rate, robots, times)
    }

    /// How many attempts a URL has whose site is down; `None`: it waits unharmed.
    pub fn site_attempts(&self) -> Option<u32> {
        self.rules.site_attempts
    }

    /// What becomes of pages whose robots.txt can't be reached, as a log says it.
    pub(crate) fn while_robots_are_unreachable(&self) -> &'static str {
        match self.rules.robots.when_unreachable {
            WhenUnreachable::Defer => "pages wait",
            WhenUnreachable::Allow => "pages are fetched as if everything were allowed",
            WhenUnreachable::Disallow => "pages are skipped as if nothing were allowed",
        }
    }

    /// Whether pages hear of it when their robots.txt can't be reached.
    pub fn pages_fail_with_robots(&self) -> bool {
        self.rules.robots.pages_fail_with_it
    }

    /// What a probe asks for: the root, or robots.txt where we may not ask for the root. `copy` is an older copy of
    /// a robots.txt that could not be read.
    pub fn probe_url(
        &self,
        origin: &Origin,
        robots: Option<&Robots>,
        copy: Option<&[u8]>,
    ) -> WebUrl {
        let older = copy.map(|body| self.rules.parse(body));
        let root_allowed = match robots.or(older.as_deref()) {
            Some(robots) => robots.verdict("/").allowed,
            None => self.rules.robots.when_unreachable == WhenUnreachable::Allow,
        };
        if root_allowed { origin.root_url() } else { origin.robots_url() }
    }

    /// When a site that has been failing since `since` is given up.
    pub fn gives_up_at(&self, since: Time) -> Option<Time> {
        self.rules.give_up_after.map(|after| since.max(self.started_at) + after)
    }

    /// How long a store may fail before the run gives up; `None`: for ever.
    pub fn patience_with_stores(&self) -> Option<Duration> {
        self.rules.give_up_after
    }

    /// What happens to a URL whose site asks for this wait, where we don't wait that long.
    pub fn wait_too_long(&self, asked_by: WaitAskedBy, wait: Duration) -> Option<Happened> {
        let most = self.rules.give_up_after?;
        (wait > most).then_some(Happened::WaitTooLong { asked_by, wait, most })
    }

    /// Whether the URLs of a host fail that does not exist and never answered.
    pub fn missing_hosts_fail(&self) -> bool {
        self.rules.missing_hosts_fail
    }

    /// Leave to write one request head under `permit`, whose time by our clock is `at`.
    pub fn leave(&self, site: Site, permit: Permit, at: Time, rate: Rate) -> GateLeave {
        let slot = permit.slot;
        let need_not_be_spent = slot.at <= slot.use_by;
        let free_until = need_not_be_spent.then(|| at + slot.use_by.since(slot.at));
        GateLeave {
            politeness: self.politeness.clone(),
            clock: self.clock.clone(),
            heads: self.heads.clone(),
            health: self.health.clone(),
            site,
            permit,
            at,
            free_until,
            given: None,
            word: None,
            rate,
            follows_robots: false,
            group: None,
            group_rests_until: None,
            early_by: None,
        }
    }

    /// Whether this process's last head to a site is so near that nobody else's can have come since: all keep
    /// an interval from it. The second half of that is left for the way to the store.
    pub fn was_last_to_ask(&self, site: &Site) -> bool {
        self.heads.is_near(site)
    }

    /// Sites whose pace this process has kept lately.
    pub fn sites_known(&self) -> usize {
        self.heads.lock().len()
    }

    /// Forgets when heads were written, where it does not matter any more.
    pub fn sweep_heads(&self) {
        self.heads.sweep();
    }
}

/// The rule that a verdict came of, for a row's `why`.
pub fn rule_of(verdict: RobotsVerdict) -> Option<String> {
    let line = verdict.line?;
    let rule = verdict.rule?;
    Some(format!("line {line}: {rule}"))
}

/// The last head of each site, by the monotonic clock: the store's clock may jump, this one can't.
#[derive(Debug)]
struct Heads {
    since: Instant,
    last: Mutex<HashMap<Site, Head>>,
    /// How long the store's last answer about a head took.
    answer_took_us: AtomicU64,
}

/// In microseconds: there is one for each of a million sites.
#[derive(Clone, Copy, Debug)]
struct Head {
    written_us: u64,
    interval_us: u64,
    /// When all that was taken of a burst is earned again.
    used_until_us: u64,
}

impl Head {
    /// The same where the last one had been taken by this rate.
    fn used_until_us_at(self, rate: Rate) -> u64 {
        let last_us = self.used_until_us.saturating_sub(self.interval_us);
        last_us.saturating_add(micros(rate.interval))
    }
}

impl Heads {
    fn new() -> Heads {
        Heads {
            since: Instant::now(),
            last: Mutex::default(),
            answer_took_us: AtomicU64::default(),
        }
    }

    fn answer_took(&self, took: Duration) {
        self.answer_took_us.store(micros(took), Ordering::Relaxed);
    }

    fn last_answer_took(&self) -> Duration {
        Duration::from_micros(self.answer_took_us.load(Ordering::Relaxed))
    }

    /// How long until the last head is an interval away, or a burst has room for another one.
    fn gap_left(&self, site: &Site, rate: Rate) -> Duration {
        self.lock().get(site).map_or(Duration::ZERO, |last| {
            let free_us = match rate.burst {
                0 | 1 => last.written_us.saturating_add(micros(rate.interval)),
                burst => {
                    let headroom = rate.interval.saturating_mul(burst - 1);
                    last.used_until_us_at(rate).saturating_sub(micros(headroom))
                }
            };
            Duration::from_micros(free_us.saturating_sub(self.now_us()))
        })
    }

    /// Whether the last head is less than half of its interval away.
    fn is_near(&self, site: &Site) -> bool {
        self.lock().get(site).is_some_and(|last| {
            self.now_us() < last.written_us.saturating_add(last.interval_us / 2)
        })
    }

    fn mark(&self, site: &Site, rate: Rate) {
        let written_us = self.now_us();
        let interval_us = micros(rate.interval);
        let mut heads = self.lock();
        let used_from_us = match heads.get(site) {
            Some(last) if rate.burst > 1 => last.used_until_us_at(rate).max(written_us),
            _ => written_us,
        };
        let used_until_us = used_from_us.saturating_add(interval_us);
        heads.insert(site.clone(), Head { written_us, interval_us, used_until_us });
    }

    fn sweep(&self) {
        let now_us = self.now_us();
        let mut last = self.lock();
        last.retain(|_, head| {
            head.written_us.saturating_add(head.interval_us).max(head.used_until_us) > now_us
        });
        last.shrink_to_fit();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Site, Head>> {
        self.last.lock()
    }

    fn now_us(&self) -> u64 {
        micros(self.since.elapsed())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A permit, and what it takes to spend it.
pub struct GateLeave {
    politeness: Arc<dyn Politeness>,
    clock: Clock,
    heads: Arc<Heads>,
    health: Arc<StoreHealth>,
    site: Site,
    permit: Permit,
    /// Its time, by our clock.
    at: Time,
    /// Until then, by our clock, it need not be spent.
    free_until: Option<Time>,
    given: Option<Given>,
    /// The store's clock showed this time at or after this moment of ours.
    word: Option<(Time, Instant)>,
    rate: Rate,
    follows_robots: bool,
    group: Option<(Site, Rate)>,
    /// Nothing more of the group goes before then, by our clock.
    group_rests_until: Option<Time>,
    /// How much too early the head leaves.
    early_by: Option<Duration>,
}

impl GateLeave {
    /// A page of a group takes a turn of the group's, too.
    pub fn in_the_name_of(mut self, group: Option<(&str, Rate)>) -> GateLeave {
        self.group = group.map(|(name, rate)| (Site::apart(GROUPS, name), rate));
        self
    }

    /// What was heard of the group: nothing more of it goes before then, by our clock.
    pub fn group_rests_until(&self) -> Option<Time> {
        self.group_rests_until
    }

    /// How much sooner after the last one the head leaves than the pace allows; `None`: it keeps its
    /// distance, as it always should.
    pub fn early_by(&self) -> Option<Duration> {
        self.early_by
    }

    /// Takes a turn of the group's, and waits for a near one. `false`: it is too far.
    async fn take_groups_turn(&mut self) -> bool {
        let Some((group, rate)) = self.group.clone() else { return true };
        let ask = SiteAsk { site: group, rate, follows_robots: false };
        let turn = match self.politeness.turn(&[], &[ask]).await {
            Ok(turn) => turn,
            Err(fault) => {
                self.health.failed(StoreCall::Pace, &fault);
                return false;
            }
        };
        let at = match turn.verdicts.first() {
            Some(Verdict::Go(permit)) => permit.slot.at,
            Some(Verdict::Probe(_)) | None => return false, // A group has no breaker.
            Some(Verdict::NotBefore { at, .. }) => *at,
        };
        let wait = at.since(turn.now);
        if wait.is_zero() {
            return true;
        }
        self.group_rests_until = Some(self.clock.now() + wait);
        if wait > LONGEST_WAIT_IN_FLIGHT {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }

    /// The page of a robots.txt may follow it at once.
    pub fn following_robots(mut self, follows: bool) -> GateLeave {
        self.follows_robots = follows;
        self
    }

    /// What the store must hear of a head that leaves only now: the others keep their distance from it.
    pub fn late_report(&self) -> Option<SiteReport> {
        self.heads.mark(&self.site, self.rate);
        let (time, since) = self.word?;
        let mark = Mark::LeftLate { by: time + since.elapsed() };
        let report = Report { mark, retry_after: None, generation: self.permit.generation };
        Some(SiteReport { site: self.site.clone(), report })
    }

    /// When the head may be written, by the store's clock: that is now. `None`: it may not.
    async fn settle_time(&mut self) -> Option<Time> {
        let now = self.clock.now();
        match self.free_until {
            Some(until) if now <= until => {
                self.given = Some(Given { at: Instant::now(), decided_before: Duration::ZERO });
                self.word = Some((self.permit.slot.at + now.since(self.at), Instant::now()));
                Some(self.permit.slot.at)
            }
            _ => self.spend().await,
        }
    }

    /// Asks the store, and waits for a near slot. `None`: the permit is void or the slot too far.
    async fn spend(&mut self) -> Option<Time> {
        let good_for = (self.rate.interval / 10).clamp(LEAST_GOOD_FOR, MOST_GOOD_FOR);
        let lead_for = |took: Duration| {
            if took > good_for { (took * 2).min(LONGEST_WAIT_IN_FLIGHT) } else { Duration::ZERO }
        };
        // A store that was slow a moment ago is taken to be slow still.
        self.permit.lead = lead_for(self.heads.last_answer_took());
        let mut spendings_left = MOST_SPENDINGS;
        loop {
            let asked = Instant::now();
            let answer = self.politeness.spend(&self.site, &self.permit, self.rate).await;
            let took = asked.elapsed();
            self.heads.answer_took(took);
            match answer {
                // Somebody else may have gone meanwhile, a whole interval after the store's word.
                Ok((Spend::Go, _)) if took > good_for.max(self.permit.lead) => {
                    spendings_left -= 1;
                    if spendings_left == 0 {
                        return None;
                    }
                    self.permit.lead = lead_for(took);
                }
                Ok((Spend::Go, now)) => {
                    self.given =
                        Some(Given { at: Instant::now(), decided_before: asked.elapsed() });
                    self.word = Some((now, asked));
                    return Some(now);
                }
                Ok((Spend::Void, _)) => return None,
                Ok((Spend::Wait(permit), now)) => {
                    let wait = permit.slot.at.since(now);
                    self.permit = permit;
                    if wait > LONGEST_WAIT_IN_FLIGHT {
                        return None;
                    }
                    tokio::time::sleep(wait).await;
                }
                Err(fault) => {
                    self.health.failed(StoreCall::Pace, &fault);
                    return None;
                }
            }
        }
    }
}

#[async_trait]
impl Leave for GateLeave {
    async fn to_write(&mut self) -> bool {
        let early = self.at.since(self.clock.now());
        if self.rate.interval.is_zero() {
            // Only a site that rests has a slot ahead, and its rest is over then, not a little before.
            if !early.is_zero() {
                tokio::time::sleep(early).await;
            }
            return self.take_groups_turn().await;
        }
        let gap_left = match self.follows_robots {
            true => Duration::ZERO,
            false => self.heads.gap_left(&self.site, self.rate),
        };
        if gap_left > LONGEST_WAIT_IN_FLIGHT {
            return false;
        }
        tokio::time::sleep(gap_left.max(early)).await;
        if !self.take_groups_turn().await {
            return false;
        }
        let Some(at) = self.settle_time().await else { return false };
        if !self.follows_robots {
            let gap_left = self.heads.gap_left(&self.site, self.rate);
            self.early_by = (gap_left > TIMER_GRAIN).then_some(gap_left);
        }
        self.heads.mark(&self.site, self.rate);
        let at_us = at.as_micros();
        let interval_us = self.rate.interval.as_micros();
        let site = &self.site;
        let follows_robots = self.follows_robots;
        debug!(target: "fetchwell::dispatch", %site, at_us, interval_us, follows_robots);
        true
    }

    fn given(&self) -> Option<Given> {
        self.given
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::breaker::{BreakerRule, State};
    use fetchwell_policy::orders::Order;

    use super::*;
    use crate::memory::MemoryPoliteness;

    const DAY: Duration = Duration::from_secs(86_400);
    const NOW: Time = Time::from_secs(100_000_000);

    fn gate(when_unreachable: WhenUnreachable) -> Gate {
        let clock = Clock::new(|| NOW);
        let politeness = MemoryPoliteness::new(clock.clone(), BreakerRule::default(), 1);
        let site = |name: &str| Site::parse(name).unwrap();
        let rules = GateRules {
            pace: PaceRules {
                default_interval: Duration::from_secs(1),
                sites: HashMap::from([(site("slow.test"), Duration::from_secs(3))]),
                concurrency: HashMap::from([(site("archive.test"), 8)]),
                groups: GroupPace {
                    at_sites: HashMap::from([("quick".to_owned(), Rate::per_second(10.0, 20))]),
                    ..GroupPace::default()
                },
            },
            robots: RobotsRules {
                product_token: "TestBot".to_owned(),
                when_unreachable,
                fresh_for: DAY,
                stale_for: 30 * DAY,
                max_crawl_delay: Some(Duration::from_secs(60)),
                pages_fail_with_it: false,
            },
            give_up_after: None,
            site_attempts: None,
            missing_hosts_fail: false,
        };
        Gate::new(Arc::new(politeness), rules, clock)
    }

    fn record(age: Duration, body: Option<&str>, retry_in_s: Option<i64>) -> RobotsRecord {
        RobotsRecord {
            body: body.map(|text| text.as_bytes().to_vec()),
            status: None,
            fetched_at: NOW - age,
            unreachable: retry_in_s.map(|secs| Unreachable {
                since: NOW - age,
                tries: 1,
                retry_at: Time::from_micros(NOW.as_micros() + secs * 1_000_000),
                is_asked_for: false,
                reason: "503".to_owned(),
                recoveries: 0,
            }),
        }
    }

    /// What a record means: `?` must be fetched, `-` blocked, else whether `/` is allowed.
    fn means(when: WhenUnreachable, record: Option<&RobotsRecord>) -> &'static str {
        word_for(&gate(when).view(record, Some(&SiteState::default())))
    }

    fn word_for(view: &RobotsView) -> &'static str {
        match view {
            RobotsView::Fetch => "?",
            RobotsView::Blocked { .. } => "-",
            RobotsView::Refused(_) => "refused",
            RobotsView::Known { robots, .. } if robots.verdict("/").allowed => "allowed",
            RobotsView::Known { .. } => "disallowed",
        }
    }

    #[test]
    fn a_file_that_could_not_be_read_is_read_when_the_site_has_answered_again() {
        use WhenUnreachable::*;
        let mut back = SiteState::default();
        back.health.recovered();
        let mut down = SiteState::default();
        down.breaker.state = State::Open { probe_at: NOW, failed_probes: 0 };
        let unread = record(DAY, None, Some(300));
        let with_copy = record(DAY, Some(""), Some(300));
        let read = record(DAY / 2, Some(""), None);
        for when in [Defer, Allow, Disallow] {
            for state in [&back, &down] {
                let word = |record| word_for(&gate(when).view(Some(record), Some(state)));
                assert_eq!((word(&unread), word(&with_copy)), ("?", "?"), "{when:?} {state:?}");
                assert_eq!(word(&read), "allowed", "a file that was read stays good");
            }
        }
    }

    #[test]
    fn what_a_page_waits_for_is_told_in_one_way() {
        let rules = gate(WhenUnreachable::Defer).rules;
        let rate = Rate::every(Duration::from_secs(1));
        let unread = record(DAY, None, Some(40));
        let outlook = |state: &SiteState, robots: Option<&RobotsRecord>| {
            let Outlook { held_up_by, next_slot_in } =
                rules.outlook(state, rate, robots, (NOW, NOW));
            (held_up_by, next_slot_in.map(|wait| wait.as_secs()))
        };
        let mut state = SiteState::default();
        assert_eq!(outlook(&state, None), (None, Some(0)));
        assert_eq!(outlook(&state, Some(&unread)), (Some("robots"), Some(40)));
        state.penalty_until = NOW + Duration::from_secs(9);
        assert_eq!(outlook(&state, None), (Some("penalty"), Some(9)));
        assert_eq!(outlook(&state, Some(&unread)), (Some("penalty"), Some(40)));
        let probe_at = NOW + Duration::from_secs(20);
        state.breaker.state = State::Open { probe_at, failed_probes: 0 };
        assert_eq!(outlook(&state, Some(&unread)), (Some("breaker"), Some(20)));
        state.breaker.state = State::Closed;
        state.penalty_until = NOW;
        state.health.recovered();
        assert_eq!(outlook(&state, Some(&unread)), (None, Some(0)), "it is read at once");
        state.obey(Order::Pause, "ann", NOW);
        assert_eq!(outlook(&state, Some(&unread)), (Some("paused"), None));
    }

    #[test]
    fn a_copy_is_fresh_for_a_day_and_stands_in_for_thirty() {
        use WhenUnreachable::*;
        let closed = Some("User-agent: *\nDisallow: /");
        for (when, record, expected) in [
            (Defer, None, "?"),
            (Defer, Some(record(DAY / 2, closed, None)), "disallowed"),
            (Defer, Some(record(DAY / 2, Some(""), None)), "allowed"),
            (Defer, Some(record(2 * DAY, closed, None)), "?"),
            (Defer, Some(record(2 * DAY, closed, Some(9))), "disallowed"),
            (Allow, Some(record(29 * DAY, closed, Some(9))), "disallowed"),
            (Allow, Some(record(31 * DAY, closed, Some(9))), "allowed"),
            (Disallow, Some(record(31 * DAY, Some(""), Some(9))), "disallowed"),
            (Defer, Some(record(31 * DAY, closed, Some(9))), "-"),
            (Defer, Some(record(DAY, None, Some(9))), "-"),
            (Allow, Some(record(DAY, None, Some(9))), "allowed"),
            (Disallow, Some(record(DAY, None, Some(9))), "disallowed"),
            (Defer, Some(record(DAY, None, Some(-1))), "?"),
            (Allow, Some(record(DAY, None, Some(-1))), "?"),
        ] {
            assert_eq!(means(when, record.as_ref()), expected, "{when:?} {record:?}");
        }
    }

    #[test]
    fn the_longest_of_rate_setting_and_crawl_delay_is_the_pace() {
        let gate = gate(WhenUnreachable::Defer);
        let pace = |site: &str, delay_s: Option<u64>| {
            let (rate, source) =
                gate.rate(&Site::parse(site).unwrap(), delay_s.map(Duration::from_secs));
            (rate.interval.as_secs(), source)
        };
        assert_eq!(pace("a.test", None), (1, "default rate"));
        assert_eq!(pace("a.test", Some(5)), (5, "Crawl-delay"));
        assert_eq!(pace("a.test", Some(0)), (1, "default rate"));
        assert_eq!(pace("slow.test", Some(2)), (3, "site setting"));
        assert_eq!(pace("archive.test", Some(5)), (0, "concurrency"));
    }

    #[test]
    fn the_limit_of_a_group_is_its_sites_pace_unless_the_site_has_its_own() {
        let gate = gate(WhenUnreachable::Defer);
        let pace = |site: &str, delay_ms: Option<u64>, group: Option<&str>| {
            let site = Site::parse(site).unwrap();
            let (rate, source) = gate.rate_for(&site, delay_ms.map(Duration::from_millis), group);
            (rate.interval.as_millis(), rate.burst, source)
        };
        let quick = Some("quick");
        assert_eq!(pace("a.test", None, quick), (100, 20, "retailer limit"));
        assert_eq!(pace("a.test", None, Some("other")), (1_000, 1, "default rate"));
        assert_eq!(pace("a.test", None, None), (1_000, 1, "default rate"));
        assert_eq!(pace("a.test", Some(5_000), quick), (5_000, 1, "Crawl-delay"));
        assert_eq!(pace("a.test", Some(50), quick), (100, 1, "retailer limit"));
        assert_eq!(pace("slow.test", None, quick), (3_000, 1, "site setting"));
        assert_eq!(pace("archive.test", None, quick), (0, 1, "concurrency"));
    }

    #[test]
    fn heads_of_a_burst_keep_no_distance_and_what_follows_it_does() {
        let heads = Heads::new();
        let site = Site::parse("a.test").unwrap();
        let rate = Rate::per_second(10.0, 3);
        for head in 0..3 {
            assert_eq!(heads.gap_left(&site, rate), Duration::ZERO, "{head}");
            heads.mark(&site, rate);
        }
        let left = heads.gap_left(&site, rate);
        assert!(left > Duration::from_millis(50) && left <= Duration::from_millis(100), "{left:?}");
        // A request without a burst keeps its interval from the last of them.
        let left = heads.gap_left(&site, Rate::every(Duration::from_secs(1)));
        assert!(left > Duration::from_millis(900), "{left:?}");
    }

    #[test]
    fn a_wait_is_too_long_where_somebody_gives_up_sooner() {
        let mut gate = gate(WhenUnreachable::Defer);
        let hour = Duration::from_secs(3_600);
        assert_eq!(gate.wait_too_long(WaitAskedBy::RetryAfter, hour), None);
        gate.rules.give_up_after = Some(Duration::from_secs(600));
        assert!(gate.wait_too_long(WaitAskedBy::RetryAfter, hour).is_some());
        assert_eq!(gate.wait_too_long(WaitAskedBy::RetryAfter, hour / 6), None);
    }

    #[test]
    fn a_probe_asks_for_the_root_only_where_it_may() {
        let origin = Origin::parse("https://a.test").unwrap();
        let open = Robots::allow_all();
        let closed = Robots::disallow_all();
        let probe = |when, robots| gate(when).probe_url(&origin, robots, None).as_str().to_owned();
        assert_eq!(probe(WhenUnreachable::Defer, Some(&open)), "https://a.test/");
        assert_eq!(probe(WhenUnreachable::Allow, Some(&closed)), "https://a.test/robots.txt");
        assert_eq!(probe(WhenUnreachable::Defer, None), "https://a.test/robots.txt");
        assert_eq!(probe(WhenUnreachable::Allow, None), "https://a.test/");
        let copy = Some(&b"User-agent: *\nDisallow: /"[..]);
        let by_copy = gate(WhenUnreachable::Allow).probe_url(&origin, None, copy);
        assert_eq!(by_copy.as_str(), "https://a.test/robots.txt");
    }

    #[test]
    fn a_crawl_delay_beyond_the_limit_is_a_refusal() {
        let gate = gate(WhenUnreachable::Defer);
        let asks = |secs: u32| {
            Robots::parse(format!("User-agent: *\nCrawl-delay: {secs}").as_bytes(), "x")
        };
        assert_eq!(gate.crawl_delay_refusal(&asks(60)), None);
        assert!(gate.crawl_delay_refusal(&asks(61)).is_some());
    }
}
