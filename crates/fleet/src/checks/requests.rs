//! Checks that no site gets more requests than it allows, by when request heads arrive at the site.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fetchwell_policy::breaker::State;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;

use crate::doors::GROUP_INTERVAL;
use crate::web::{Head, HeadKind, SECTIONS, group_of};

/// After the store has recorded a penalty, a pause or an open breaker, a head may still leave under a permission that
/// was given before: the store's answer may take 2 s, and the head may be up to 250 ms late.
const ON_ITS_WAY: Duration = Duration::from_millis(2_250);
/// A probe may be replaced this long after it was taken. Its head may have left up to 10 s after it was taken.
const PROBES_APART: Duration = Duration::from_secs(30);
/// A new copy of robots.txt takes this long to replace the previous one at every process: the store is asked for it,
/// and requests that wait for their slots have already been checked.
const NEW_COPY_TAKES: Duration = Duration::from_secs(25);

/// A copy of robots.txt is fresh for at least this long.
const LEAST_FRESH: Duration = Duration::from_mins(1);
/// A robots.txt that cannot be read is tried again after this at the latest.
const ROBOTS_TRIED_EVERY: Duration = Duration::from_mins(5);
/// After this many failures in a row, the breaker of a site must have opened. It opens after five, but failures of
/// requests that were sent before the site asked for a wait do not count.
const MAX_FAILURES: u32 = 80;
/// How many pages of a group may leave together.
const PAGES_TOGETHER: u32 = 8;

/// How closely heads may follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaceRule {
    /// The interval of sites that ask for no other.
    pub(crate) interval: Duration,
    /// Whether answers of the store may be slow.
    pub(crate) has_slow_store: bool,
    /// Whether heads may leave later than permitted.
    pub(crate) has_late_heads: bool,
}

impl PaceRule {
    /// How much of an interval may be missing. These are the allowances of `engine::gate::permit`: how long an answer
    /// of the store may take, and how late a head may leave. At least half of the interval remains in any case.
    fn may_be_missing(self, owed: Duration) -> Duration {
        let answer = match self.has_slow_store {
            true => (owed / 10).clamp(Duration::from_millis(20), Duration::from_millis(250)),
            false => Duration::from_millis(5),
        };
        let lateness =
            if self.has_late_heads { Duration::from_millis(100) } else { Duration::ZERO };
        (answer + lateness).min(owed / 2)
    }
}

/// A report on the health of a site, as the store records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Failed,
    /// A page was served, which does not close an open breaker.
    Served,
    /// A probe was answered, or an operator says that the site is up.
    Recovered,
    Unknown,
}

/// What the politeness store still knows about a site after it forgot its last writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remembered {
    penalty_left: Duration,
    is_paused: bool,
    is_blocked: bool,
    interval: Option<Duration>,
    has_forgotten_robots: bool,
}

impl Remembered {
    pub(crate) fn of(state: &SiteState, now: Time) -> Remembered {
        Remembered {
            penalty_left: state.penalty_until.since(now),
            is_paused: state.orders.paused.is_some(),
            is_blocked: state.breaker.state != State::Closed,
            interval: state.orders.interval.as_ref().map(|ordered| ordered.interval),
            has_forgotten_robots: state.orders.robots_forgotten.is_some(),
        }
    }
}

/// How long it may take until every process knows of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// How long a copy of robots.txt is fresh; `None` if machines are suspended. A page that was ready to be sent is
    /// sent when its machine resumes, however much later that is.
    pub(crate) fresh_for: Option<Duration>,
    /// How long a copy of robots.txt may be used.
    pub(crate) copies_last: Duration,
    /// How long it may take until the store knows that a site asked for a wait.
    pub(crate) reports_take: Duration,
}

/// What the sites saw.
pub(crate) struct RequestChecks {
    pace: PaceRule,
    patience: Patience,
    max_in_flight: usize,
    sites: BTreeMap<String, SiteHistory>,
    /// The number of requests in flight, by process.
    in_flight: BTreeMap<String, usize>,
    /// When the next page of each group is due, if each of them left in its turn.
    groups: BTreeMap<&'static str, Duration>,
    pub(crate) heads: u64,
}

#[derive(Default)]
struct SiteHistory {
    crawl_delay: Duration,
    last_head: Option<(Duration, HeadKind)>,
    /// The intervals that operators ordered, and when, oldest first.
    ordered: Vec<(Duration, Option<Duration>)>,
    /// What robots.txt disallowed whenever a process read it, oldest first.
    robots_read: Vec<(Duration, Vec<&'static str>)>,
    /// When a process last failed to read it.
    robots_failed_at: Option<Duration>,
    /// When an operator ordered to read it again.
    robots_forgotten_at: Option<Duration>,
    /// When its breaker last closed.
    recovered_at: Option<Duration>,
    /// The failures that the store recorded since the site last served a page.
    failures: u32,
    paused_since: Option<Duration>,
    blocked_since: Option<Duration>,
    /// When the store recorded that the site asks for a wait, and when that wait ends.
    penalty: Option<(Duration, Duration)>,
    /// When the site told a process to wait, and until when, if the process has not reported that yet.
    unreported: BTreeMap<String, (Duration, Duration)>,
    /// When each probe in flight was sent.
    probes: BTreeMap<String, Duration>,
}

type Checked = Result<(), String>;

impl RequestChecks {
    pub(crate) fn new(pace: PaceRule, patience: Patience, max_in_flight: usize) -> RequestChecks {
        RequestChecks {
            pace,
            patience,
            max_in_flight,
            sites: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            groups: BTreeMap::new(),
            heads: 0,
        }
    }

    /// Every site has its Crawl-delay in its robots.txt.
    pub(crate) fn add_site(&mut self, name: &str, crawl_delay: Duration) {
        self.sites.insert(name.to_owned(), SiteHistory { crawl_delay, ..SiteHistory::default() });
    }

    /// A head arrived.
    pub(crate) fn on_head(&mut self, process: &str, head: &Head<'_>, now: Duration) -> Checked {
        self.heads += 1;
        let in_flight = self.in_flight.entry(process.to_owned()).or_default();
        *in_flight += 1;
        if *in_flight > self.max_in_flight {
            return Err(format!("{process} has {in_flight} requests in flight"));
        }
        let pace = self.pace;
        let patience = self.patience;
        let in_turn = self.keeps_groups_pace(head, now);
        let Some(site) = self.sites.get_mut(head.site) else {
            return Err(format!("a request to the unknown site {}", head.site));
        };
        let last = site.last_head.replace((now, head.kind));
        let checked = in_turn
            .and_then(|()| site.keeps_pace(last, head.kind, pace, now))
            .and_then(|()| site.obeys_robots(head, patience.copies_last, now))
            .and_then(|()| site.knows_robots(head, patience, now))
            .and_then(|()| site.may_be_asked(head.kind, now))
            .and_then(|()| site.is_only_probe(head.kind, now))
            .and_then(|()| site.has_no_secrets(patience.reports_take, now));
        if head.kind == HeadKind::Probe {
            site.probes.insert(process.to_owned(), now);
        }
        let Head { site, path, kind, .. } = head;
        checked.map_err(|wrong| format!("{process} sent {kind:?} {site}{path}, but {wrong}"))
    }

    /// A group takes its turn before the site does, so some of its pages may leave together.
    fn keeps_groups_pace(&mut self, head: &Head<'_>, now: Duration) -> Checked {
        let Some(group) = group_of(head.path).filter(|_| head.kind == HeadKind::Page) else {
            return Ok(());
        };
        let due = self.groups.entry(group).or_default();
        let ahead = due.saturating_sub(now);
        *due = now + ahead + GROUP_INTERVAL;
        match ahead > GROUP_INTERVAL * PAGES_TOGETHER {
            true => Err(format!("group {group} is ahead of its pace by {ahead:?}")),
            false => Ok(()),
        }
    }

    /// Each of these sites got a request at `since` or later.
    pub(crate) fn all_had_a_head_since(
        &self,
        since: Duration,
        sites: &BTreeSet<String>,
    ) -> Checked {
        for name in sites {
            let last = self.sites.get(name).and_then(|site| site.last_head).map(|(at, _)| at);
            if last.is_none_or(|at| at < since) {
                return Err(format!("{name} waits, and got its last request at {last:?}"));
            }
        }
        Ok(())
    }

    /// A request ended, in whatever way.
    pub(crate) fn on_request_over(&mut self, process: &str, site: &str, is_probe: bool) {
        if let Some(in_flight) = self.in_flight.get_mut(process) {
            *in_flight -= 1;
        }
        if let Some(site) = self.sites.get_mut(site).filter(|_| is_probe) {
            site.probes.remove(process);
        }
    }

    /// A process read a robots.txt that disallows these sections.
    pub(crate) fn on_robots_read(&mut self, head: &Head<'_>, now: Duration) {
        if let Some(site) = self.sites.get_mut(head.site) {
            site.robots_read.push((now, head.disallows.to_vec()));
        }
    }

    /// A process could not read a robots.txt.
    pub(crate) fn on_robots_failed(&mut self, head: &Head<'_>, now: Duration) {
        if let Some(site) = self.sites.get_mut(head.site) {
            site.robots_failed_at = Some(now);
        }
    }

    /// An operator orders a re-read of the robots.txt of a site.
    pub(crate) fn on_robots_forgotten(&mut self, site: &str, now: Duration) {
        if let Some(site) = self.sites.get_mut(site) {
            site.robots_forgotten_at = Some(now);
        }
    }

    /// The store knows of an order to pause or resume a site.
    pub(crate) fn on_paused(&mut self, site: &str, is_paused: bool, now: Duration) {
        if let Some(site) = self.sites.get_mut(site) {
            let since = site.paused_since.unwrap_or(now);
            site.paused_since = is_paused.then_some(since);
        }
    }

    /// The store knows of an order for the interval of a site; `None` revokes it.
    pub(crate) fn on_ordered(&mut self, site: &str, interval: Option<Duration>, now: Duration) {
        if let Some(site) = self.sites.get_mut(site) {
            site.ordered.push((now, interval));
        }
    }

    /// The store recorded a report, or an order. The breaker of the site is open or closed now.
    pub(crate) fn on_breaker(
        &mut self,
        name: &str,
        health: Health,
        is_open: bool,
        now: Duration,
    ) -> Checked {
        let Some(site) = self.sites.get_mut(name) else { return Ok(()) };
        let was_open = site.blocked_since.is_some();
        let since = site.blocked_since.unwrap_or(now);
        site.blocked_since = is_open.then_some(since);
        match health {
            Health::Failed => site.failures += 1,
            Health::Served | Health::Recovered => site.failures = 0,
            Health::Unknown => {}
        }
        let failures = site.failures;
        if !is_open && failures > MAX_FAILURES {
            return Err(format!("{name} failed {failures} times, but its breaker is not open"));
        }
        if was_open && !is_open {
            site.recovered_at = Some(now);
            if health != Health::Recovered {
                return Err(format!("the breaker of {name} closed without a probe"));
            }
        }
        Ok(())
    }

    /// The store forgot its last writes about a site: reports and orders, and who probes.
    pub(crate) fn on_forgotten(&mut self, name: &str, remembered: &Remembered, now: Duration) {
        let Some(site) = self.sites.get_mut(name) else { return };
        let until = now + remembered.penalty_left;
        site.penalty = site.penalty.map(|(since, earlier)| (since, earlier.min(until)));
        site.paused_since = site.paused_since.or(Some(now)).filter(|_| remembered.is_paused);
        site.blocked_since = site.blocked_since.or(Some(now)).filter(|_| remembered.is_blocked);
        site.ordered.push((now, remembered.interval));
        site.robots_forgotten_at =
            site.robots_forgotten_at.filter(|_| remembered.has_forgotten_robots);
        site.failures = 0;
        site.recovered_at = None;
        site.probes.clear();
    }

    /// The store's clock jumped: penalties may end sooner, and the probe of another process may count as lost.
    pub(crate) fn on_times_changed(&mut self) {
        for site in self.sites.values_mut() {
            site.penalty = None;
            site.probes.clear();
            site.unreported.clear();
        }
    }

    /// A site told a process to wait.
    pub(crate) fn on_told_to_wait(
        &mut self,
        process: &str,
        site: &str,
        wait: Duration,
        now: Duration,
    ) {
        if let Some(site) = self.sites.get_mut(site) {
            site.unreported.insert(process.to_owned(), (now, now + wait));
        }
    }

    /// A process ended. What it has not reported is lost; if it ended in an orderly way, that is an error.
    pub(crate) fn on_process_over(&mut self, process: &str, now: Duration) -> Checked {
        let mut checked = Ok(());
        for (name, site) in &mut self.sites {
            if site.unreported.remove(process).is_some_and(|(_, until)| now < until) {
                checked = Err(format!("{process} has not reported that {name} asks for a wait"));
            }
        }
        checked
    }

    /// The store recorded that a site asks for a wait, as this process reported.
    pub(crate) fn on_wait_asked(
        &mut self,
        process: &str,
        site: &str,
        wait: Duration,
        now: Duration,
    ) {
        if let Some(site) = self.sites.get_mut(site) {
            site.unreported.remove(process);
            let until = now + wait;
            match site.penalty {
                Some((_, earlier)) if earlier >= until => {}
                // The rest of an earlier wait is part of this one.
                Some((since, earlier)) if earlier >= now => site.penalty = Some((since, until)),
                _ => site.penalty = Some((now, until)),
            }
        }
    }
}

impl SiteHistory {
    /// The shortest interval that applied at some time since `from`. The Crawl-delay applies between pages: a process that
    /// asks for robots.txt may not know it yet, and one that probes may not know it any more.
    fn interval(&self, from: Duration, is_between_pages: bool, pace: PaceRule) -> Duration {
        let least = if is_between_pages { self.crawl_delay } else { Duration::ZERO };
        let at_start = self.ordered.iter().rev().find(|(at, _)| *at <= from);
        let later = self.ordered.iter().filter(|(at, _)| *at > from);
        let ordered = at_start.into_iter().chain(later).map(|(_, interval)| *interval);
        let ordered = ordered.map(|interval| interval.unwrap_or(pace.interval));
        let usual = at_start.is_none().then_some(pace.interval);
        ordered.chain(usual).min().unwrap_or(pace.interval).max(least)
    }

    /// A page may follow its robots.txt at once.
    fn keeps_pace(
        &self,
        last: Option<(Duration, HeadKind)>,
        kind: HeadKind,
        pace: PaceRule,
        now: Duration,
    ) -> Checked {
        let Some((last, after)) = last else { return Ok(()) };
        if after == HeadKind::Robots && kind == HeadKind::Page {
            return Ok(());
        }
        let is_between_pages = [after, kind] == [HeadKind::Page; 2];
        let owed = self.interval(last.saturating_sub(ON_ITS_WAY), is_between_pages, pace);
        let gap = now - last;
        if gap + pace.may_be_missing(owed) >= owed {
            return Ok(());
        }
        Err(format!("the gap to the last head is {gap:?} instead of {owed:?}"))
    }

    /// Any copy of robots.txt that may still be fresh somewhere may have allowed it.
    fn obeys_robots(&self, head: &Head<'_>, copies_last: Duration, now: Duration) -> Checked {
        if head.kind == HeadKind::Robots || head.path == "/robots.txt" {
            return Ok(());
        }
        let since = now.saturating_sub(copies_last + NEW_COPY_TAKES);
        let is_older = self.robots_read.iter().take_while(|(at, _)| *at < since).count();
        let copies = self.robots_read.get(is_older.saturating_sub(1)..).unwrap_or_default();
        if copies.is_empty() {
            return match head.kind {
                HeadKind::Probe => Ok(()), // It goes to robots.txt or, if that is not known, to the root.
                _ => Err("its robots.txt was never read".to_owned()),
            };
        }
        let section = SECTIONS.into_iter().find(|section| head.path.starts_with(section));
        let Some(section) = section else { return Ok(()) };
        match copies.iter().any(|(_, disallows)| !disallows.contains(&section)) {
            true => Ok(()),
            false => Err("robots.txt disallows it".to_owned()),
        }
    }

    /// A page needs a copy of robots.txt that is fresh, or an attempt to read it since then: not long ago, and after the
    /// last recovery of the site. After an order to read it again, it needs an attempt that began after the order.
    fn knows_robots(&self, head: &Head<'_>, patience: Patience, now: Duration) -> Checked {
        if head.kind != HeadKind::Page || head.path == "/robots.txt" {
            return Ok(());
        }
        let Some(fresh_for) = patience.fresh_for else { return Ok(()) };
        let Some((read_at, _)) = self.robots_read.last() else { return Ok(()) };
        let slack = NEW_COPY_TAKES + patience.reports_take;
        let is_over = |at: Duration, lasts: Duration| now > at + lasts + slack;
        let failed_at = self.robots_failed_at.filter(|at| at > read_at);
        let tried_at = failed_at.unwrap_or(*read_at);
        let order = self.robots_forgotten_at.filter(|at| is_over(*at, Duration::ZERO));
        if order.is_some_and(|at| tried_at < at) {
            return Err(format!("its robots.txt was last read {:?} ago", now - tried_at));
        }
        if !is_over(*read_at, fresh_for.max(LEAST_FRESH)) {
            return Ok(());
        }
        let Some(failed_at) = failed_at.filter(|at| !is_over(*at, ROBOTS_TRIED_EVERY)) else {
            return Err(format!("its robots.txt was last read {:?} ago", now - *read_at));
        };
        match self.recovered_at.filter(|at| is_over(*at, Duration::ZERO)) {
            Some(at) if failed_at < at => Err(format!(
                "its robots.txt was not read since the site recovered {:?} ago",
                now - at
            )),
            _ => Ok(()),
        }
    }

    /// Neither a pause, nor a wait that the site asked for, nor an open breaker forbids it.
    fn may_be_asked(&self, kind: HeadKind, now: Duration) -> Checked {
        let is_over = |since: Duration| now <= since + ON_ITS_WAY;
        if let Some(since) = self.paused_since.filter(|since| !is_over(*since)) {
            return Err(format!("the site has been paused for {:?}", now - since));
        }
        if let Some((since, until)) = self.penalty.filter(|(since, _)| !is_over(*since))
            && now < until
        {
            let asked = now - since;
            return Err(format!(
                "{asked:?} ago the site asked for a wait that lasts for {:?} more",
                until - now
            ));
        }
        let blocked = self.blocked_since.filter(|since| !is_over(*since));
        match blocked.filter(|_| kind != HeadKind::Probe) {
            Some(since) => Err(format!("the breaker has been open for {:?}", now - since)),
            None => Ok(()),
        }
    }

    /// Every process that was told to wait has reported it.
    fn has_no_secrets(&self, reports_take: Duration, now: Duration) -> Checked {
        let is_late = |(at, until): (Duration, Duration)| now > at + reports_take && now < until;
        match self.unreported.iter().find(|(_, told)| is_late(**told)) {
            Some((process, (at, _))) => {
                let ago = now - *at;
                Err(format!("{process} was told to wait {ago:?} ago, and has not reported it"))
            }
            None => Ok(()),
        }
    }

    fn is_only_probe(&self, kind: HeadKind, now: Duration) -> Checked {
        let other = self.probes.iter().find(|(_, sent)| now < **sent + PROBES_APART);
        match other.filter(|_| kind == HeadKind::Probe) {
            Some((process, sent)) => {
                Err(format!("{process} has sent a probe {:?} ago, which is not over", now - *sent))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn checks() -> RequestChecks {
        let pace = PaceRule { interval: SECOND, has_slow_store: false, has_late_heads: false };
        let copies_last = 60 * SECOND;
        let fresh_for = Some(copies_last);
        let patience = Patience { fresh_for, copies_last, reports_take: 20 * SECOND };
        let mut checks = RequestChecks::new(pace, patience, 2);
        checks.add_site("a.test", Duration::ZERO);
        checks.add_site("slow.test", 5 * SECOND);
        checks
    }

    fn head<'a>(site: &'a str, path: &'a str, kind: HeadKind) -> Head<'a> {
        Head { site, path, kind, disallows: &[] }
    }

    /// Sends a head and ends the request at once.
    fn send(
        checks: &mut RequestChecks,
        site: &str,
        path: &str,
        kind: HeadKind,
        at_ms: u64,
    ) -> Checked {
        let head = head(site, path, kind);
        let now = Duration::from_millis(at_ms);
        let checked = checks.on_head("m0", &head, now);
        if kind == HeadKind::Robots {
            checks.on_robots_read(&head, now);
        }
        checks.on_request_over("m0", site, kind == HeadKind::Probe);
        checked
    }

    fn page(checks: &mut RequestChecks, at_ms: u64) -> Checked {
        send(checks, "a.test", "/a/1", HeadKind::Page, at_ms)
    }

    /// robots.txt was read at 0, and allows everything.
    fn known() -> RequestChecks {
        let mut checks = checks();
        send(&mut checks, "a.test", "/robots.txt", HeadKind::Robots, 0).unwrap();
        checks
    }

    #[test]
    fn a_head_must_keep_its_distance() {
        let mut checks = known();
        page(&mut checks, 1).unwrap();
        page(&mut checks, 1_001).unwrap();
        let wrong = page(&mut checks, 1_801).unwrap_err();
        assert!(wrong.contains("instead of 1s"), "{wrong}");
        send(&mut checks, "slow.test", "/robots.txt", HeadKind::Robots, 0).unwrap();
        send(&mut checks, "slow.test", "/a/1", HeadKind::Page, 1).unwrap();
        let wrong = send(&mut checks, "slow.test", "/a/2", HeadKind::Page, 2_001).unwrap_err();
        assert!(wrong.contains("instead of 5s"), "{wrong}");
    }

    #[test]
    fn an_ordered_interval_counts() {
        let mut checks = known();
        page(&mut checks, 1).unwrap();
        checks.on_ordered("a.test", Some(10 * SECOND), SECOND);
        page(&mut checks, 2_000).unwrap();
        page(&mut checks, 12_000).unwrap();
        assert!(page(&mut checks, 14_000).unwrap_err().contains("instead of 10s"));
        checks.on_ordered("a.test", None, 15 * SECOND);
        page(&mut checks, 15_500).unwrap();
    }

    #[test]
    fn a_page_needs_a_robots_txt_that_allows_it() {
        assert!(page(&mut checks(), 0).unwrap_err().contains("never read"));
        let mut checks = known();
        let disallows = &["/a/"];
        let now_disallowed = Head { disallows, ..head("a.test", "/robots.txt", HeadKind::Robots) };
        checks.on_robots_read(&now_disallowed, 10 * SECOND);
        page(&mut checks, 60_000).unwrap();
        assert!(page(&mut checks, 96_000).unwrap_err().contains("disallows"));
        send(&mut checks, "a.test", "/b/1", HeadKind::Page, 98_000).unwrap();
    }

    #[test]
    fn a_pause_a_wait_and_an_open_breaker_are_respected() {
        let mut checks = known();
        checks.on_paused("a.test", true, SECOND);
        page(&mut checks, 2_000).unwrap();
        assert!(page(&mut checks, 5_000).unwrap_err().contains("paused"));
        checks.on_paused("a.test", false, 6 * SECOND);
        page(&mut checks, 7_000).unwrap();
        checks.on_wait_asked("m0", "a.test", 60 * SECOND, 8 * SECOND);
        assert!(page(&mut checks, 20_000).unwrap_err().contains("asked for a wait"));
        page(&mut checks, 68_000).unwrap();
        checks.on_breaker("a.test", Health::Failed, true, 70 * SECOND).unwrap();
        assert!(page(&mut checks, 75_000).unwrap_err().contains("breaker"));
        send(&mut checks, "a.test", "/", HeadKind::Probe, 80_000).unwrap();
    }

    #[test]
    fn a_wait_that_is_not_reported_is_noticed() {
        let mut checks = known();
        checks.on_told_to_wait("m0", "a.test", 60 * SECOND, SECOND);
        checks.on_told_to_wait("m1", "a.test", 60 * SECOND, SECOND);
        page(&mut checks, 20_000).unwrap();
        assert!(page(&mut checks, 22_000).unwrap_err().contains("not reported"));
        checks.on_wait_asked("m0", "a.test", SECOND, 22 * SECOND);
        assert!(
            checks.on_process_over("m1", 23 * SECOND).unwrap_err().contains("has not reported")
        );
        checks.on_process_over("m0", 23 * SECOND).unwrap();
        page(&mut checks, 24_000).unwrap();
    }

    #[test]
    fn a_second_probe_and_a_third_request_are_too_many() {
        let mut checks = known();
        let probe = head("a.test", "/", HeadKind::Probe);
        checks.on_head("m0", &probe, 10 * SECOND).unwrap();
        assert!(checks.on_head("m1", &probe, 12 * SECOND).unwrap_err().contains("probe"));
        checks.on_head("m0", &head("slow.test", "/", HeadKind::Probe), SECOND).unwrap();
        let third = head("slow.test", "/robots.txt", HeadKind::Robots);
        assert!(checks.on_head("m0", &third, 60 * SECOND).unwrap_err().contains("in flight"));
    }

    #[test]
    fn a_site_with_work_gets_requests() {
        let mut checks = known();
        page(&mut checks, 5_000).unwrap();
        let sites = BTreeSet::from(["a.test".to_owned()]);
        checks.all_had_a_head_since(5 * SECOND, &sites).unwrap();
        assert!(checks.all_had_a_head_since(6 * SECOND, &sites).unwrap_err().contains("a.test"));
    }

    #[test]
    fn only_a_probe_closes_a_breaker_and_failures_open_it() {
        let mut checks = checks();
        let mut report = |health, is_open| checks.on_breaker("a.test", health, is_open, SECOND);
        report(Health::Failed, true).unwrap();
        report(Health::Recovered, false).unwrap();
        report(Health::Failed, true).unwrap();
        assert!(report(Health::Served, false).unwrap_err().contains("without a probe"));
        for _ in 0..MAX_FAILURES {
            report(Health::Failed, false).unwrap();
        }
        assert!(report(Health::Failed, false).unwrap_err().contains("failed 81 times"));
    }

    #[test]
    fn a_copy_of_robots_txt_is_replaced_when_it_is_old_or_its_site_has_recovered() {
        let robots = head("a.test", "/robots.txt", HeadKind::Robots);
        let mut checks = known();
        page(&mut checks, 104_000).unwrap();
        assert!(page(&mut checks, 106_000).unwrap_err().contains("last read 106s ago"));
        checks.on_robots_failed(&robots, 107 * SECOND);
        page(&mut checks, 108_000).unwrap();
        checks.on_breaker("a.test", Health::Failed, true, 109 * SECOND).unwrap();
        checks.on_breaker("a.test", Health::Recovered, false, 110 * SECOND).unwrap();
        page(&mut checks, 154_000).unwrap();
        assert!(page(&mut checks, 156_000).unwrap_err().contains("recovered 46s ago"));
        checks.on_robots_failed(&robots, 157 * SECOND);
        page(&mut checks, 158_000).unwrap();
        checks.on_robots_forgotten("a.test", 157 * SECOND);
        page(&mut checks, 204_000).unwrap();
        checks.on_robots_forgotten("a.test", 158 * SECOND);
        assert!(page(&mut checks, 206_000).unwrap_err().contains("last read 49s ago"));
    }

    #[test]
    fn a_group_keeps_its_pace_over_all_sites() {
        let mut checks = known();
        checks.add_site("b.test", Duration::ZERO);
        send(&mut checks, "b.test", "/robots.txt", HeadKind::Robots, 0).unwrap();
        let mut send = |number: u64, at_ms| {
            let site = if number.is_multiple_of(2) { "a.test" } else { "b.test" };
            send(&mut checks, site, "/a/page-x1", HeadKind::Page, at_ms)
        };
        for number in 0..16 {
            send(number, 1_000 * number + 1).unwrap();
        }
        assert!(send(16, 16_001).and_then(|()| send(17, 17_001)).unwrap_err().contains("group x"));
    }
}
