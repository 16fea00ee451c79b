//! The status line on top of every page: whether this process does its work and, if not, why and where to look.
//!
//! It is computed at most once per second, from what the process knows anyway. Only the sites in trouble are read from
//! the store: less often, in the background, and a page never waits long for them.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use fetchwell_engine::ports::sites::SiteRank;
use fetchwell_engine::store_health::{Failing, StoreCall};
use fetchwell_policy::units::quantity;
use fetchwell_telemetry::metrics::MetricsSnapshot;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::history::Look;
use super::overview::sum_of_ledgers;
use super::subject::Subject;
use super::{Dashboard, words};
use crate::sites::{SiteRow, SiteService};

/// How long a status is shown again.
const KEPT: Duration = Duration::from_secs(1);
/// How long the sites in trouble are kept, since reading them costs the store something.
const SITES_KEPT: Duration = Duration::from_secs(5);
/// How old they may be before a page waits for them…
const SITES_OLD: Duration = Duration::from_secs(15);
/// …for this long at most; then it does without.
const PATIENCE: Duration = Duration::from_millis(100);
/// The maximum number of sites in trouble that are read.
const MOST_SITES: usize = 200;
/// One site in this many may be down (or have an unreadable robots.txt) before the process counts as degraded: on the
/// open web a few always are.
const ONE_IN: usize = 4;
/// With work waiting, a process that sends nothing for this long is stalled, if a site explains it…
const STALLED: Duration = Duration::from_secs(60);
/// …or for this long, if none does: a site may have a long Crawl-delay.
const STALLED_WITHOUT_REASON: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    #[default]
    Healthy,
    /// Some of the work is not done, or something needs a look.
    Degraded,
    /// No work is done.
    Blocked,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Healthy => "Healthy",
            Level::Degraded => "Degraded",
            Level::Blocked => "Blocked",
        }
    }

    fn mood(self) -> &'static str {
        match self {
            Level::Healthy => "good",
            Level::Degraded => "warn",
            Level::Blocked => "bad",
        }
    }
}

/// Why the process is not healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    level: Level,
    text: String,
    /// Where to look, and what is there.
    path: &'static str,
    link: &'static str,
}

impl Cause {
    fn new(level: Level, text: String, (path, link): (&'static str, &'static str)) -> Cause {
        Cause { level, text, path, link }
    }
}

const SYSTEM: (&str, &str) = ("/dashboard/system", "System");
const TROUBLE: (&str, &str) = ("/dashboard/sites", "Sites, trouble first");
const DOWN: (&str, &str) = ("/dashboard/sites?is=breaker-open", "Sites that are down");
const PAUSED: (&str, &str) = ("/dashboard/sites?is=paused", "Paused sites");
const FAILED: (&str, &str) = ("/dashboard/sites?is=failed", "Sites with recent failures");

/// The causes, worst first.
#[derive(Clone, Debug, Default, Template)]
#[template(path = "status.html")]
pub(super) struct Status {
    causes: Vec<Cause>,
    /// What a healthy process has to say about its sites.
    aside: String,
}

impl Status {
    fn level(&self) -> Level {
        self.causes.first().map(|cause| cause.level).unwrap_or_default()
    }
}

/// The last status, and the last known sites in trouble.
#[derive(Default)]
pub(super) struct StatusCache {
    last: Mutex<Option<(Instant, Arc<Status>)>>,
    sites: Mutex<Option<(Instant, SitesInTrouble)>>,
    /// Held while sites are read, so that they are read once at a time.
    reading: tokio::sync::Mutex<()>,
}

/// How many sites are held up, by the cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SitesInTrouble {
    paused: usize,
    down: usize,
    resting: usize,
    /// Their robots.txt cannot be read.
    robots: usize,
}

impl SitesInTrouble {
    fn of(rows: &[SiteRow]) -> SitesInTrouble {
        let held = |word: &str| rows.iter().filter(|row| row.held_up_by == Some(word)).count();
        SitesInTrouble {
            paused: held("paused"),
            down: held("breaker"),
            resting: held("penalty"),
            robots: held("robots"),
        }
    }

    fn is_any(self) -> bool {
        self != SitesInTrouble::default()
    }

    /// `2 sites are paused, 1 is down`; empty if there are none.
    fn text(self) -> String {
        let SitesInTrouble { paused, down, resting, robots } = self;
        let part = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 site {one}")),
            MOST_SITES.. => Some(format!("{count} or more sites {many}")),
            _ => Some(format!("{count} sites {many}")),
        };
        let parts = [
            part(paused, "is paused", "are paused"),
            part(down, "is down", "are down"),
            part(resting, "asked us to wait", "asked us to wait"),
            part(
                robots,
                "has a robots.txt that cannot be read",
                "have a robots.txt that cannot be read",
            ),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The status of the process, at most a second old.
pub(super) async fn status(dashboard: &Dashboard) -> Arc<Status> {
    let cache = &dashboard.status;
    let known = cache.last.lock().clone();
    if let Some((at, status)) = known
        && at.elapsed() < KEPT
    {
        return status;
    }
    let sites = cache.sites_in_trouble(&dashboard.subject.sites).await;
    let status = Arc::new(compute(&dashboard.subject, dashboard.stop.is_cancelled(), sites));
    *cache.last.lock() = Some((Instant::now(), status.clone()));
    status
}

impl StatusCache {
    async fn sites_in_trouble(self: &Arc<StatusCache>, sites: &Arc<SiteService>) -> SitesInTrouble {
        let known = *self.sites.lock();
        if let Some((at, sites)) = known
            && at.elapsed() < SITES_KEPT
        {
            return sites;
        }
        let cache = self.clone();
        let sites = sites.clone();
        let reading = tokio::spawn(async move {
            let Ok(_alone) = cache.reading.try_lock() else { return };
            // The record of store errors has the error, if this is more than a moment.
            if let Ok(rows) = sites.worst(SiteRank::Trouble, MOST_SITES).await {
                *cache.sites.lock() = Some((Instant::now(), SitesInTrouble::of(&rows)));
            }
        });
        // While somebody looks, the last known sites are good enough for the moment.
        if known.is_none_or(|(at, _)| at.elapsed() >= SITES_OLD)
            && timeout(PATIENCE, reading).await.is_err()
        {
            debug!("reading the sites in trouble takes long; the status goes without them");
        }
        self.sites.lock().map(|(_, sites)| sites).unwrap_or_default()
    }
}

fn compute(subject: &Subject, is_stopping: bool, sites: SitesInTrouble) -> Status {
    let snapshot = subject.process_metrics.snapshot();
    let mut causes = Vec::new();
    if is_stopping {
        let text = "This process is stopping.".to_owned();
        causes.push(Cause::new(Level::Blocked, text, SYSTEM));
    }
    let fatal = subject.health.fatal();
    let failing = || subject.health.failing_anywhere(|_| true);
    let stops_work = || subject.health.failing_anywhere(StoreCall::stops_work);
    causes.extend(fatal.or_else(stops_work).or_else(failing).map(|failing| of_store(&failing)));
    causes.extend(of_ledgers(&snapshot));
    let mut looks = subject.history.looks();
    looks.push(Look::of(&snapshot, subject.clock.wall()));
    causes.extend(of_stall(&snapshot, &looks, sites));
    causes.extend(of_shares(&snapshot, sites));
    causes.extend(of_process(&snapshot));
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.level));
    Status { causes, aside: sites.text() }
}

fn of_store(failing: &Failing) -> Cause {
    let Failing { call, lasts, fault } = failing;
    let fault = fault.to_string();
    let is_full = ["disk is full", "free some space", "o space left"];
    let is_full = is_full.iter().any(|words| fault.contains(words));
    let subject = match (is_full, lasts.as_secs()) {
        (true, 0) => "The disk is full".to_owned(),
        (false, 0) => "The store is failing".to_owned(),
        (true, _) => format!("The disk has been full for {}", words::span(*lasts)),
        (false, _) => format!("The store has been failing for {}", words::span(*lasts)),
    };
    let level = match call.stops_work() || *call == StoreCall::Engine {
        true => Level::Blocked,
        false => Level::Degraded,
    };
    Cause::new(level, format!("{subject}: {}. {fault}", call.means()), SYSTEM)
}

fn of_ledgers(snapshot: &MetricsSnapshot) -> Option<Cause> {
    let ledger = sum_of_ledgers(snapshot)?;
    let text = match ledger.difference() {
        0 => return None,
        missing @ 1.. => {
            format!("{} missing", quantity(missing, "job is", "jobs are"))
        }
        twice => {
            format!("{} counted twice", quantity(twice.unsigned_abs(), "job is", "jobs are"))
        }
    };
    let text = format!("The ledger does not add up: {text}.");
    Some(Cause::new(Level::Degraded, text, SYSTEM))
}

/// Jobs wait, and nothing was sent for a while.
fn of_stall(snapshot: &MetricsSnapshot, looks: &[Look], sites: SitesInTrouble) -> Option<Cause> {
    let ledger = sum_of_ledgers(snapshot)?;
    let in_flight: usize = snapshot.doors.values().map(|door| door.window.in_flight).sum();
    // What waits for a paused site is put off again and again, and so counts as delayed.
    let waiting = ledger.queued + if sites.paused > 0 { ledger.delayed } else { 0 };
    if waiting <= 0 || in_flight > 0 {
        return None;
    }
    let last = looks.last()?;
    let idle_since =
        looks.iter().rev().take_while(|look| look.requests() == last.requests()).last()?;
    let idle = last.at.since(idle_since.at);
    let patience = if sites.is_any() { STALLED } else { STALLED_WITHOUT_REASON };
    if idle < patience {
        return None;
    }
    let why = match sites.text() {
        sites if sites.is_empty() => "no site is due, or no URL can be taken".to_owned(),
        sites => sites,
    };
    let urls = if waiting == 1 { "URL waits" } else { "URLs wait" };
    let waiting = words::count::<i64>(waiting);
    let text = format!(
        "Nothing has been fetched for {} while {waiting} {urls}: {why}.",
        words::span(idle)
    );
    let only_paused =
        sites.paused > 0 && SitesInTrouble { paused: 0, ..sites } == SitesInTrouble::default();
    Some(Cause::new(Level::Blocked, text, if only_paused { PAUSED } else { TROUBLE }))
}

/// Many of the sites that this process knows are down, or have no readable robots.txt.
fn of_shares(snapshot: &MetricsSnapshot, sites: SitesInTrouble) -> Vec<Cause> {
    let known: usize = snapshot.doors.values().map(|door| door.window.sites_known).sum();
    let open: usize = snapshot.doors.values().map(|door| door.circuits.count).sum();
    let is_many = |count: usize| count > 0 && count * ONE_IN >= known.max(1);
    let of = |count: usize| {
        let all = known.max(count);
        format!("{} of {} sites", words::count::<usize>(count), words::count::<usize>(all))
    };
    let mut causes = Vec::new();
    if is_many(open) {
        let verb = if open == 1 { "is" } else { "are" };
        let text = format!("{} {verb} down.", of(open));
        causes.push(Cause::new(Level::Degraded, text, DOWN));
    }
    if is_many(sites.robots) {
        let text = format!("The robots.txt of {} cannot be read.", of(sites.robots));
        causes.push(Cause::new(Level::Degraded, text, FAILED));
    }
    causes
}

fn of_process(snapshot: &MetricsSnapshot) -> Vec<Cause> {
    let mut causes = Vec::new();
    let early: u64 = snapshot.doors.values().map(|door| door.rate_breaches).sum();
    if early > 0 {
        let requests = if early == 1 { "request was" } else { "requests were" };
        let text = format!(
            "{} {requests} sent too early. This is a bug: please report it.",
            words::count::<u64>(early)
        );
        causes.push(Cause::new(Level::Degraded, text, ("/", "Overview")));
    }
    if let (Some(open), Some(most)) = (snapshot.process.open_fds, snapshot.process.max_fds)
        && open.saturating_mul(10) >= most.saturating_mul(9)
    {
        let open = words::count::<u64>(open);
        let most = words::count::<u64>(most);
        let text =
            format!("{open} of {most} file descriptors are open. Raise the limit (`ulimit -n`).");
        causes.push(Cause::new(Level::Degraded, text, SYSTEM));
    }
    causes
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::error::StoreError;
    use fetchwell_engine::ports::queue::Ledger;
    use fetchwell_policy::time::Time;
    use fetchwell_telemetry::metrics::{DoorName, Metrics};

    use super::*;

    fn snapshot_with(ledger: Ledger) -> MetricsSnapshot {
        let metrics = Metrics::default();
        metrics.door(DoorName::Serve).note_ledger(Some(ledger));
        metrics.snapshot()
    }

    fn idle(seconds: i64) -> Vec<Look> {
        (0..=seconds).map(|n| Look { at: Time::from_secs(n), ..Look::default() }).collect()
    }

    #[test]
    fn a_store_that_fails_blocks_or_degrades_and_a_full_disk_is_named() {
        let lasts = Duration::from_secs(90);
        let of = |call, text: &str| {
            of_store(&Failing { call, lasts, fault: StoreError::transient(text.to_owned()) })
        };
        let full = of(StoreCall::Finish, "database or disk is full; free some space on its disk");
        assert_eq!(full.level, Level::Blocked);
        assert!(
            full.text.starts_with("The disk has been full for 90 s: results cannot be stored."),
            "{full:?}"
        );
        let lost = of(StoreCall::Prune, "connection refused");
        assert_eq!(lost.level, Level::Degraded);
        assert!(
            lost.text.starts_with("The store has been failing for 90 s: old messages"),
            "{lost:?}"
        );
    }

    #[test]
    fn a_ledger_that_does_not_add_up_is_told() {
        let ledger = |accepted, done| Ledger { accepted, done, ..Ledger::default() };
        assert_eq!(of_ledgers(&snapshot_with(ledger(3, 3))), None);
        for (accepted, done, expected) in [
            (3, 1, "The ledger does not add up: 2 jobs are missing."),
            (2, 1, "The ledger does not add up: 1 job is missing."),
            (1, 2, "The ledger does not add up: 1 job is counted twice."),
        ] {
            let cause = of_ledgers(&snapshot_with(ledger(accepted, done))).unwrap();
            assert_eq!(cause.text, expected);
        }
    }

    #[test]
    fn what_waits_without_a_fetch_is_a_stall_and_its_sites_are_named() {
        let queued = snapshot_with(Ledger { accepted: 5, queued: 5, ..Ledger::default() });
        let paused = SitesInTrouble { paused: 1, ..SitesInTrouble::default() };
        assert_eq!(of_stall(&queued, &idle(59), paused), None);
        let cause = of_stall(&queued, &idle(60), paused).unwrap();
        let expected = "Nothing has been fetched for 60 s while 5 URLs wait: 1 site is paused.";
        assert_eq!((cause.text.as_str(), cause.path), (expected, PAUSED.0));
        let both = SitesInTrouble { down: 2, ..paused };
        let cause = of_stall(&queued, &idle(60), both).unwrap();
        assert!(cause.text.ends_with("1 site is paused, 2 sites are down."), "{cause:?}");
        assert_eq!(of_stall(&queued, &idle(60), SitesInTrouble::default()), None);
        assert!(of_stall(&queued, &idle(300), SitesInTrouble::default()).is_some());
        let nothing = snapshot_with(Ledger::default());
        assert_eq!(of_stall(&nothing, &idle(900), paused), None, "nothing waits");
    }

    #[test]
    fn a_status_shows_its_worst_cause_first_with_a_link() {
        let causes = vec![
            Cause::new(Level::Blocked, "The store is failing.".to_owned(), SYSTEM),
            Cause::new(Level::Degraded, "1 of 2 sites are <down>.".to_owned(), DOWN),
        ];
        let page = Status { causes, aside: String::new() }.render().unwrap();
        assert!(page.contains("Blocked") && page.contains("href=\"/dashboard/system\""), "{page}");
        assert!(page.contains("&#60;down&#62;"), "{page}");
        let healthy = Status { aside: "1 site is paused".to_owned(), ..Status::default() };
        let page = healthy.render().unwrap();
        assert!(page.contains("Healthy") && page.contains("1 site is paused"), "{page}");
    }
}
