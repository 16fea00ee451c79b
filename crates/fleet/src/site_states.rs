//! A politeness server that keeps texts, as Redis and PostgreSQL do. It may restart without its last writes, and its
//! clock may jump.
//!
//! Processes use it through the engine's `SharedPoliteness`: they read the state of a site, and replace it unless
//! another one did so in between.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{ORDERS_TOLD_FOR, RobotsRecord, SiteReport};
use fetchwell_engine::ports::sites::origins_of;
use fetchwell_engine::shared_politeness::{Change, SiteStateStore, SiteStates, Texts};
use fetchwell_policy::orders::Order;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::network::{Link, Store};

/// How long a state that never becomes forgettable is kept, as in Redis.
const LONGEST_KEPT: Duration = Duration::from_hours(30 * 24);
/// A restart undoes no older writes.
pub(crate) const LATEST_SYNC: Duration = Duration::from_millis(1_500);

tokio::task_local! {
    /// The reports of the turn that this task carries out.
    pub(crate) static REPORTS: Vec<SiteReport>;
}

/// The server.
pub(crate) struct SiteStatesServer {
    clock: Clock,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    sites: BTreeMap<Site, Row>,
    robots: BTreeMap<Origin, RobotsRecord>,
    ordered: BTreeMap<Site, Time>,
    /// The run of the server that has complete data; `None` if a process distrusts it.
    complete_run: Option<u64>,
    run: u64,
    lost_until: Time,
    /// The last writes, and how to undo them.
    journal: VecDeque<(Instant, Undo)>,
    /// How far its clock is off, in microseconds.
    ahead_us: i64,
}

#[derive(Clone, Default)]
struct Row {
    texts: Texts,
    /// `None` if it has orders.
    expires_at: Option<Instant>,
    must_last: bool,
}

/// A site of which the server forgot the last writes.
#[derive(Debug)]
pub(crate) struct Forgotten {
    pub(crate) site: Site,
    was: SiteState,
    pub(crate) is: SiteState,
}

impl Forgotten {
    /// Whether more than its pace is lost.
    pub(crate) fn is_serious(&self) -> bool {
        let Forgotten { was, is, .. } = self;
        was.penalty_until != is.penalty_until
            || was.breaker != is.breaker
            || was.orders != is.orders
    }
}

enum Undo {
    Site(Site, Option<Row>),
    Robots(Origin, Option<RobotsRecord>),
}

impl SiteStatesServer {
    pub(crate) fn new(clock: Clock) -> SiteStatesServer {
        let kept = Kept { complete_run: Some(0), ..Kept::default() };
        SiteStatesServer { clock, kept: Mutex::new(kept) }
    }

    fn now(&self, kept: &Kept) -> Time {
        Time::from_micros(self.clock.now().as_micros() + kept.ahead_us)
    }

    /// The time that its clock shows.
    pub(crate) fn shows(&self) -> Time {
        self.now(&self.kept.lock())
    }

    pub(crate) fn set_clock_ahead_by_us(&self, ahead_us: i64) {
        self.kept.lock().ahead_us = ahead_us;
    }

    /// Restarts without the writes of the last `lost`. What must last stays in any case if `syncs_what_must_last`, and
    /// so does everything before it. Returns the sites whose state is an older one now, with the state before.
    pub(crate) fn restart(&self, lost: Duration, syncs_what_must_last: bool) -> Vec<Forgotten> {
        let mut kept = self.kept.lock();
        kept.run += 1;
        let since = Instant::now().checked_sub(lost.min(LATEST_SYNC));
        let mut before: BTreeMap<Site, SiteState> = BTreeMap::new();
        while let Some((at, undo)) = kept.journal.pop_back() {
            if since.is_none_or(|since| at <= since) {
                break;
            }
            match undo {
                Undo::Site(site, row) => {
                    let written = kept.sites.get(&site);
                    if syncs_what_must_last && written.is_some_and(|written| written.must_last) {
                        break;
                    }
                    let was = written.map(|row| row.texts.state()).unwrap_or_default();
                    before.entry(site.clone()).or_insert(was);
                    match row {
                        Some(row) => kept.sites.insert(site, row),
                        None => kept.sites.remove(&site),
                    };
                }
                Undo::Robots(origin, record) => {
                    match record {
                        Some(record) => kept.robots.insert(origin, record),
                        None => kept.robots.remove(&origin),
                    };
                }
            }
        }
        kept.journal.clear();
        let forgotten = before.into_iter().map(|(site, was)| {
            let is = kept.sites.get(&site).map(|row| row.texts.state()).unwrap_or_default();
            Forgotten { site, was, is }
        });
        forgotten.collect()
    }

    /// The state of a site.
    pub(crate) fn look(&self, site: &Site) -> SiteState {
        let kept = self.kept.lock();
        kept.texts(site).state()
    }

    /// An operator gives an order.
    pub(crate) fn order(&self, site: &Site, order: Order) {
        let mut kept = self.kept.lock();
        let now = self.now(&kept);
        if order == Order::ForgetRobots {
            for origin in origins_of(site) {
                kept.write_robots(&origin, None);
            }
        }
        let mut state = kept.texts(site).state();
        state.obey(order, "ann", now);
        let expires_at = (!state.orders.stand()).then(|| Instant::now() + LONGEST_KEPT);
        let row = Row { texts: Texts::of(&state), expires_at, must_last: true };
        kept.write_site(site, row);
        if order.may_end_a_wait() {
            kept.ordered.retain(|_, at| *at >= now - ORDERS_TOLD_FOR);
            kept.ordered.insert(site.clone(), now);
        }
    }
}

impl Kept {
    fn texts(&self, site: &Site) -> Texts {
        let is_there = |row: &&Row| row.expires_at.is_none_or(|at| Instant::now() < at);
        self.sites.get(site).filter(is_there).map(|row| row.texts.clone()).unwrap_or_default()
    }

    fn write_site(&mut self, site: &Site, row: Row) {
        let before = self.sites.insert(site.clone(), row);
        self.note(Undo::Site(site.clone(), before));
    }

    fn write_robots(&mut self, origin: &Origin, record: Option<RobotsRecord>) {
        let before = match record {
            Some(record) => self.robots.insert(origin.clone(), record),
            None => self.robots.remove(origin),
        };
        self.note(Undo::Robots(origin.clone(), before));
    }

    fn note(&mut self, undo: Undo) {
        let now = Instant::now();
        while self.journal.front().is_some_and(|(at, _)| *at + LATEST_SYNC < now) {
            self.journal.pop_front();
        }
        self.journal.push_back((now, undo));
    }

    /// After a restart, the server may have lost what happened until now.
    fn begin(&mut self, now: Time) {
        if self.complete_run != Some(self.run) {
            self.complete_run = Some(self.run);
            self.lost_until = now;
        }
    }
}

/// The server, as a process sees it over the network.
pub(crate) struct RemoteSiteStates {
    pub(crate) link: std::sync::Arc<Link>,
}

impl RemoteSiteStates {
    async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        serve: impl FnOnce(&SiteStatesServer) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let sim = self.link.sim.clone();
        let serve = move || Ok(serve(&sim.site_states));
        self.link.call(Store::Politeness, what, serve).await
    }
}

#[async_trait]
impl SiteStateStore for RemoteSiteStates {
    async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError> {
        let sites = sites.to_vec();
        let read = move |server: &SiteStatesServer| {
            let mut kept = server.kept.lock();
            let now = server.now(&kept);
            kept.begin(now);
            let texts = sites.iter().map(|site| kept.texts(site)).collect();
            SiteStates { now, lost_until: kept.lost_until, sites: texts }
        };
        self.call("a read of sites", read).await
    }

    async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let changes = changes.to_vec();
        let reports = REPORTS.try_with(Clone::clone).unwrap_or_default();
        let sim = self.link.sim.clone();
        let process = self.link.process.clone();
        let replace = move |server: &SiteStatesServer| {
            let mut kept = server.kept.lock();
            let now = server.now(&kept);
            kept.begin(now);
            let made: Vec<bool> = changes.iter().map(|change| kept.replace(change)).collect();
            drop(kept);
            for (change, _) in changes.iter().zip(&made).filter(|(_, made)| **made) {
                let site = &change.site;
                let of_site = reports.iter().filter(|told| told.site == *site);
                let decided_before = now.since(change.now);
                sim.on_reports(&process, site, of_site, &change.after.state(), decided_before);
            }
            made
        };
        self.call("a change of sites", replace).await
    }

    async fn distrust_the_past(&self) -> Result<(), StoreError> {
        self.link.sim.note(&self.link.process.name, "distrust", format_args!("the past"));
        self.call("a distrust", |server| server.kept.lock().complete_run = None).await
    }

    /// No process of the fleet lists sites.
    async fn names(&self, _: &str, _: bool, _: usize) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Orders are given at the server.
    async fn note_order(&self, _: &Site, _: Time, _: Time) -> Result<(), StoreError> {
        Ok(())
    }

    async fn ordered(&self, since: Time, most: usize) -> Result<Vec<(String, Time)>, StoreError> {
        let ordered = move |server: &SiteStatesServer| {
            let kept = server.kept.lock();
            let lately = kept.ordered.iter().filter(|(_, at)| **at >= since);
            let mut lately: Vec<(String, Time)> =
                lately.map(|(site, at)| (site.as_str().to_owned(), *at)).collect();
            lately.sort_by_key(|(_, at)| *at);
            lately.truncate(most);
            lately
        };
        self.call("a poll for orders", ordered).await
    }

    async fn robots(&self, origins: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError> {
        let origins = origins.to_vec();
        let robots = move |server: &SiteStatesServer| {
            let kept = server.kept.lock();
            origins.iter().map(|origin| kept.robots.get(origin).cloned()).collect()
        };
        self.call("a lookup", robots).await
    }

    /// Orders are given at the server.
    async fn forget_robots(&self, _: &[Origin]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        let origin = origin.clone();
        let record = record.clone();
        let keep = move |server: &SiteStatesServer| {
            server.kept.lock().write_robots(&origin, Some(record));
        };
        self.call("a robots.txt", keep).await
    }

    /// Rows expire by themselves.
    async fn sweep(&self, _: Time) -> Result<u64, StoreError> {
        Ok(0)
    }
}

impl Kept {
    fn replace(&mut self, change: &Change) -> bool {
        if self.texts(&change.site) != change.before {
            return false;
        }
        let keep = change.forgettable_at.map_or(LONGEST_KEPT, |at| at.since(change.now));
        let keep = keep.max(Duration::from_secs(1));
        let expires_at = (!change.has_orders).then(|| Instant::now() + keep);
        let texts = change.after.clone();
        self.write_site(&change.site, Row { texts, expires_at, must_last: change.must_last });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site::parse("a.test").unwrap()
    }

    /// A server that paused a site 3 s ago, and changed its interval 1 s ago.
    async fn after_two_orders() -> SiteStatesServer {
        let server = SiteStatesServer::new(Clock::simulated(Time::from_secs(1_000)));
        tokio::time::advance(Duration::from_secs(3)).await;
        server.order(&site(), Order::Pause);
        tokio::time::advance(Duration::from_secs(2)).await;
        server.order(&site(), Order::SetInterval(Duration::from_secs(9)));
        tokio::time::advance(Duration::from_secs(1)).await;
        server
    }

    #[tokio::test(start_paused = true)]
    async fn a_restart_undoes_the_last_writes_only() {
        let server = after_two_orders().await;
        assert!(server.restart(Duration::from_millis(999), false).is_empty());
        let server = after_two_orders().await;
        let lost = server.restart(Duration::from_millis(1_001), false);
        let state = &lost[0].is;
        assert!(lost[0].is_serious());
        assert!(state.orders.paused.is_some() && state.orders.interval.is_none(), "{state:?}");
        assert_eq!(server.look(&site()), *state);
        let server = after_two_orders().await;
        assert!(server.restart(Duration::from_millis(1_001), true).is_empty(), "it must last");
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_restart_the_past_is_lost_once() {
        let server = after_two_orders().await;
        server.restart(Duration::ZERO, true);
        let mut kept = server.kept.lock();
        kept.begin(Time::from_secs(2_000));
        kept.begin(Time::from_secs(3_000));
        assert_eq!(kept.lost_until, Time::from_secs(2_000));
    }
}
