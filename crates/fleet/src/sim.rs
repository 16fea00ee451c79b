//! What all parts of a run share: the stores, the web, the trace and the checks.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::pipeline::Event;
use fetchwell_engine::ports::politeness::{Politeness, SiteAsk, SiteReport, Turn};
use fetchwell_engine::ports::sites::Sites;
use fetchwell_policy::breaker::{BreakerRule, State};
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::site::{Report, SiteState, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::checks::requests::{Health, PaceRule, Patience, Remembered, RequestChecks};
use crate::dice::Dice;
use crate::inbox::Inbox;
use crate::machine::Process;
use crate::network::{Server, Store, at_once};
use crate::queue::QueueServer;
use crate::scenario::{Feature, Plant, Scenario};
use crate::sinks::PageServers;
use crate::site_states::{Forgotten, SiteStatesServer};
use crate::trace::{Trace, Tracing};
use crate::web::{Head, Internet};

/// The time at which every run begins, by the clock of the stores.
pub(crate) const BEGINS_AT: Time = Time::from_secs(1_800_000_000);
/// The interval of sites that ask for no other.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// No correct run reads the clocks this often at one simulated instant.
const MAX_CLOCK_READS: u32 = 1_000_000;
/// How a process that was told to stop ends.
pub(crate) const STOPPED: &str = "stopped";

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The check, such as `jobs` or `requests`.
    pub check: &'static str,
    pub at: Duration,
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {:.3} s: {}", self.check, self.at.as_secs_f64(), self.text)
    }
}

pub(crate) struct Sim {
    pub(crate) scenario: Scenario,
    pub(crate) web: Internet,
    /// The clock of the stores, which is also that of the sites.
    pub(crate) clock: Clock,
    /// The politeness store, unless it has [`Feature::SharedStates`]…
    pub(crate) politeness: MemoryPoliteness,
    /// …and if it has.
    pub(crate) site_states: SiteStatesServer,
    pub(crate) fetch_queue: Arc<QueueServer>,
    pub(crate) page_queue: Arc<QueueServer>,
    pub(crate) page_servers: Arc<PageServers>,
    pub(crate) inbox: Arc<Inbox>,
    queue_server: Arc<Server>,
    politeness_server: Arc<Server>,
    pub(crate) limits: Limits,
    started: Instant,
    is_troubled: AtomicBool,
    /// How often processes have read their clocks since it was this time.
    clock_reads: Mutex<(Time, u32)>,
    /// Every call to a store is answered at once.
    has_quiet_network: bool,
    /// In addition, no process ends before the run does.
    pub(crate) has_quiet_machines: bool,
    trace: Mutex<Trace>,
    requests: Mutex<RequestChecks>,
    failure: Mutex<Option<Failure>>,
    /// The number of calls to the stores.
    pub(crate) store_calls: AtomicU64,
    /// A check has failed, and the run is over.
    pub(crate) has_failed: CancellationToken,
}

/// Limits of every process, small enough to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_in_flight: usize,
    pub(crate) window: usize,
    pub(crate) max_per_site: usize,
    /// How long a copy of robots.txt is fresh.
    pub(crate) robots_fresh_for: Duration,
}

impl Limits {
    /// The limits of a seed.
    pub(crate) fn of(seed: u64) -> Limits {
        let mut dice = Dice::new(seed, "limits");
        Limits {
            max_in_flight: dice.number(1, 16),
            window: dice.number(4, 64),
            max_per_site: dice.number(1, 16),
            robots_fresh_for: dice.seconds(60, 600),
        }
    }
}

fn has_any(scenario: &Scenario, features: &[Feature]) -> bool {
    features.iter().any(|feature| scenario.has(*feature))
}

/// How long a process may use a copy of robots.txt: while it is fresh and, if the file cannot be read, until the next
/// attempt to read it. A report may take as long as its machine is suspended or its calls get no answer.
fn patience(scenario: &Scenario, limits: Limits) -> Patience {
    let fails = [Feature::RobotsFail, Feature::Outages, Feature::Flapping, Feature::BrokenPages];
    let next_attempt = match has_any(scenario, &fails) {
        true => Duration::from_secs(300),
        false => Duration::ZERO,
    };
    let reports_take = Duration::from_secs(match has_any(scenario, &DELAYS) {
        _ if scenario.has(Feature::StoreRestarts) => 140,
        true => 80,
        false => 20,
    });
    // The age of a stored copy is by the clock of the store's server.
    let jumps = if store_clock_jumps(scenario) { MOST_JUMPED } else { Duration::ZERO };
    let copies_last = limits.robots_fresh_for.max(next_attempt) + jumps;
    let is_suspended = scenario.has(Feature::Suspensions);
    let fresh_for = (!is_suspended && jumps.is_zero()).then_some(limits.robots_fresh_for);
    Patience { fresh_for, copies_last, reports_take }
}

/// The most by which the clock of the politeness store's server jumps.
pub(crate) const MOST_JUMPED: Duration = Duration::from_hours(2);

/// Whether the clock of the politeness store's server jumps.
pub(crate) fn store_clock_jumps(scenario: &Scenario) -> bool {
    scenario.has(Feature::SharedStates) && scenario.has(Feature::ClockJumps)
}

/// What delays calls to stores and their answers.
const DELAYS: [Feature; 7] = [
    Feature::StoreRestarts,
    Feature::Suspensions,
    Feature::Partitions,
    Feature::SlowNetwork,
    Feature::LostCalls,
    Feature::LostAnswers,
    Feature::LateCalls,
];
/// What ends processes.
const ENDS: [Feature; 3] = [Feature::Crashes, Feature::CrashesAtCalls, Feature::Restarts];

impl Sim {
    pub(crate) fn new(scenario: Scenario, limits: Limits, tracing: Tracing) -> Sim {
        let clock = Clock::simulated(BEGINS_AT);
        let web = Internet::of(&scenario);
        let has_quiet_network = !has_any(&scenario, &DELAYS);
        let has_quiet_machines = has_quiet_network && !has_any(&scenario, &ENDS);
        let pace = PaceRule {
            interval: INTERVAL,
            has_slow_store: has_any(&scenario, &[Feature::SlowNetwork, Feature::SharedStates]),
            // Otherwise, the store hears of a late head long before the next one.
            has_late_heads: scenario.has(Feature::LateHeads) && !has_quiet_machines,
        };
        let mut requests =
            RequestChecks::new(pace, patience(&scenario, limits), limits.max_in_flight);
        for (name, site) in &web.sites {
            requests.add_site(name, site.crawl_delay);
        }
        let chance = Dice::new(scenario.seed, "politeness store").seed();
        let delivers_first = scenario.has(Feature::SeparateSink);
        let page_queue = QueueServer::new("pages", clock.clone(), true);
        page_queue.checks.lock().letters_have_details = true;
        Sim {
            politeness: MemoryPoliteness::new(clock.clone(), BreakerRule::default(), chance),
            site_states: SiteStatesServer::new(clock.clone()),
            fetch_queue: Arc::new(QueueServer::new("fetch", clock.clone(), delivers_first)),
            page_queue: Arc::new(page_queue),
            page_servers: Arc::default(),
            inbox: Arc::new(Inbox::new(
                &scenario,
                QueueServer::new("messages", clock.clone(), false),
            )),
            queue_server: Arc::default(),
            politeness_server: Arc::default(),
            limits,
            started: Instant::now(),
            is_troubled: AtomicBool::new(true),
            clock_reads: Mutex::new((BEGINS_AT, 0)),
            has_quiet_network,
            has_quiet_machines,
            trace: Mutex::new(Trace::new(tracing)),
            requests: Mutex::new(requests),
            failure: Mutex::default(),
            store_calls: AtomicU64::new(0),
            has_failed: CancellationToken::new(),
            scenario,
            web,
            clock,
        }
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.scenario.has(feature)
    }

    pub(crate) fn has_plant(&self, plant: Plant) -> bool {
        self.scenario.plant == Some(plant)
    }

    /// The time since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether faults may happen.
    pub(crate) fn is_troubled(&self) -> bool {
        self.is_troubled.load(Ordering::Relaxed)
    }

    pub(crate) fn end_of_trouble(&self) {
        self.is_troubled.store(false, Ordering::Relaxed);
        self.note("fleet", "calm", format_args!("no more faults"));
    }

    pub(crate) fn queues(&self) -> [&Arc<QueueServer>; 3] {
        [&self.fetch_queue, &self.page_queue, &self.inbox.queue]
    }

    /// The server of a store.
    pub(crate) fn server(&self, store: Store) -> &Arc<Server> {
        match store {
            Store::Queues => &self.queue_server,
            Store::Politeness => &self.politeness_server,
        }
    }

    /// Adds an event to the trace.
    pub(crate) fn note(&self, who: &str, what: &'static str, detail: fmt::Arguments<'_>) {
        self.trace.lock().note(self.elapsed(), who, what, detail);
    }

    /// Records a failed check. The first one ends the run.
    pub(crate) fn fail(&self, check: &'static str, text: &str) {
        self.note("fleet", "FAILED", format_args!("{check}: {text}"));
        let failure = Failure { check, at: self.elapsed(), text: text.to_owned() };
        self.failure.lock().get_or_insert(failure);
        self.has_failed.cancel();
    }

    fn check(&self, checked: Result<(), String>) {
        if let Err(found) = checked {
            self.fail("requests", &found);
        }
    }

    /// A process reads its clock. Simulated time passes only while all of them wait for something.
    pub(crate) fn on_clock_read(&self, now: Time) {
        let mut reads = self.clock_reads.lock();
        if reads.0 != now {
            *reads = (now, 0);
        }
        reads.1 = reads.1.saturating_add(1);
        if reads.1 == MAX_CLOCK_READS {
            self.fail("waits", "a process is always busy, and does not let time pass");
        }
    }

    pub(crate) fn on_head(&self, process: &Process, head: &Head<'_>) {
        let Head { site, path, kind, .. } = head;
        self.note(&process.name, "head", format_args!("{site} {kind:?} {path}"));
        let checked = self.requests.lock().on_head(&process.name, head, self.elapsed());
        self.check(checked);
        self.check_lease(process, head);
    }

    /// A process whose lease has expired sends nothing; unless it was suspended with a request that was ready.
    fn check_lease(&self, process: &Process, head: &Head<'_>) {
        let now = self.clock.now();
        let has_lease =
            |server: &Arc<QueueServer>| server.checks.lock().has_lease(&process.name, now);
        if !self.has(Feature::Suspensions) && !self.queues().into_iter().any(has_lease) {
            let Head { site, path, kind, .. } = head;
            let name = &process.name;
            self.fail("leases", &format!("{name} sent {kind:?} {site}{path} without a lease"));
        }
    }

    /// A site answered a request for its robots.txt. Without a visible status it sent nothing.
    pub(crate) fn on_robots_served(&self, head: &Head<'_>, status: Option<u16>) {
        match status {
            Some(200) => self.requests.lock().on_robots_read(head, self.elapsed()),
            Some(400..=428 | 430..=499) => {
                let allows_all = Head { disallows: &[], ..head.clone() };
                self.requests.lock().on_robots_read(&allows_all, self.elapsed());
            }
            _ => self.requests.lock().on_robots_failed(head, self.elapsed()),
        }
    }

    pub(crate) fn on_request_over(&self, process: &Process, site: &str, is_probe: bool) {
        self.note(&process.name, "end", format_args!("{site}"));
        self.requests.lock().on_request_over(&process.name, site, is_probe);
    }

    /// A process received an answer of a site that asks for a wait.
    pub(crate) fn on_told_to_wait(&self, process: &Process, site: &str, wait: Duration) {
        self.note(&process.name, "told", format_args!("{site} to wait for {wait:?}"));
        self.requests.lock().on_told_to_wait(&process.name, site, wait, self.elapsed());
    }

    pub(crate) fn on_process_over(&self, process: &Process, how: &'static str) {
        self.note(&process.name, how, format_args!(""));
        let told = self.requests.lock().on_process_over(&process.name, self.elapsed());
        if how != STOPPED || !self.has_quiet_network {
            return;
        }
        self.check(told);
        for server in self.queues() {
            if let Err(found) = server.checks.lock().on_stopped(&process.name) {
                self.fail("jobs", &format!("{}: {found}", server.name));
            }
        }
    }

    /// The politeness store in memory has carried out a turn.
    pub(crate) fn on_turn(
        &self,
        process: &Process,
        reports: &[SiteReport],
        asks: &[SiteAsk],
        turn: &Turn,
    ) {
        let mut sites: Vec<&Site> = Vec::new();
        for SiteReport { site, .. } in reports {
            if !sites.contains(&site) {
                sites.push(site);
            }
        }
        for site in sites {
            let Ok((Some(state), _)) = at_once(self.politeness.look(site)) else { continue };
            let of_site = reports.iter().filter(|told| told.site == *site);
            self.on_reports(process, site, of_site, &state, Duration::ZERO);
        }
        self.note_verdicts(process, asks, turn);
    }

    /// The politeness store has recorded reports on a site. Its time was read `decided_before`.
    pub(crate) fn on_reports<'a>(
        &self,
        process: &Process,
        site: &Site,
        reports: impl Iterator<Item = &'a SiteReport> + Clone,
        state: &SiteState,
        decided_before: Duration,
    ) {
        for SiteReport { report, .. } in reports.clone() {
            let Report { mark, retry_after, .. } = report;
            self.note(&process.name, "report", format_args!("{site} {mark:?} {retry_after:?}"));
            if let Some(wait) = report.retry_after {
                let wait = wait.saturating_sub(decided_before);
                let mut requests = self.requests.lock();
                requests.on_wait_asked(&process.name, site.as_str(), wait, self.elapsed());
            }
        }
        let is_recovery = |told: &SiteReport| told.report.mark == Mark::ProbeAnswered;
        let has_recovered = reports.clone().any(is_recovery);
        for SiteReport { report, .. } in reports {
            let health = match report.mark {
                _ if has_recovered => Health::Recovered,
                Mark::Failed | Mark::RobotsFailed => Health::Failed,
                Mark::Served => Health::Served,
                _ => Health::Unknown,
            };
            self.check_breaker(site, health, state);
        }
    }

    /// What the politeness store answered.
    pub(crate) fn note_verdicts(&self, process: &Process, asks: &[SiteAsk], turn: &Turn) {
        for (ask, verdict) in asks.iter().zip(&turn.verdicts) {
            let site = &ask.site;
            let after = |at: &Time| at.since(turn.now).as_secs_f64();
            match verdict {
                Verdict::Go(permit) => {
                    let wait_s = after(&permit.slot.at);
                    self.note(&process.name, "ask", format_args!("{site} go in {wait_s:.3} s"));
                }
                Verdict::Probe(_) => self.note(&process.name, "ask", format_args!("{site} probe")),
                Verdict::NotBefore { at, because } => {
                    let wait_s = after(at);
                    self.note(
                        &process.name,
                        "ask",
                        format_args!("{site} not for {wait_s:.3} s, {because:?}"),
                    );
                }
            }
        }
        for (site, transition) in &turn.transitions {
            self.note("store", "breaker", format_args!("{site} {transition:?}"));
        }
    }

    fn check_breaker(&self, site: &Site, health: Health, state: &SiteState) {
        let is_open = state.breaker.state != State::Closed;
        let now = self.elapsed();
        let checked = self.requests.lock().on_breaker(site.as_str(), health, is_open, now);
        self.check(checked);
    }

    /// The state of a site at the politeness store.
    fn state_of(&self, site: &Site) -> SiteState {
        if self.has(Feature::SharedStates) {
            return self.site_states.look(site);
        }
        let looked = at_once(self.politeness.look(site));
        looked.ok().and_then(|(state, _)| state).unwrap_or_default()
    }

    /// An operator gives an order.
    pub(crate) fn order(&self, site: &Site, order: Order) {
        if self.has(Feature::SharedStates) {
            self.site_states.order(site, order);
        } else if at_once(self.politeness.order(site, order, "ann")).is_err() {
            return;
        }
        self.note("store", "order", format_args!("{site} {order:?}"));
        let now = self.elapsed();
        let mut requests = self.requests.lock();
        match order {
            Order::Pause => requests.on_paused(site.as_str(), true, now),
            Order::Resume => requests.on_paused(site.as_str(), false, now),
            Order::SetInterval(interval) => {
                requests.on_ordered(site.as_str(), Some(interval), now);
            }
            Order::ClearInterval => requests.on_ordered(site.as_str(), None, now),
            Order::ForgetRobots => requests.on_robots_forgotten(site.as_str(), now),
            Order::ResetBreaker => {}
        }
        drop(requests);
        let is_reset = order == Order::ResetBreaker;
        let health = if is_reset { Health::Recovered } else { Health::Unknown };
        self.check_breaker(site, health, &self.state_of(site));
    }

    /// The server of the politeness store restarts without its last writes.
    pub(crate) fn forget_last_writes(&self, lost: Duration, syncs_what_must_last: bool) {
        let now = self.elapsed();
        let time = self.site_states.shows();
        for forgotten in self.site_states.restart(lost, syncs_what_must_last) {
            let Forgotten { site, is, .. } = &forgotten;
            self.note("store", "forgot", format_args!("the last writes of {site}"));
            if syncs_what_must_last && forgotten.is_serious() {
                self.fail("requests", &format!("what must last was not synced: {forgotten:?}"));
            }
            let mut requests = self.requests.lock();
            requests.on_forgotten(site.as_str(), &Remembered::of(is, time), now);
        }
    }

    /// The clock of the politeness store's server jumps.
    pub(crate) fn set_store_clock_ahead_by_us(&self, ahead_us: i64) {
        self.note("store", "clock", format_args!("is {ahead_us} us ahead"));
        self.site_states.set_clock_ahead_by_us(ahead_us);
        self.requests.lock().on_times_changed();
    }

    /// A pipeline reports something.
    pub(crate) fn on_event(&self, process: &Process, event: &Event) {
        match event {
            Event::RateBreach { site, early_by } => {
                let name = &process.name;
                self.fail(
                    "gate",
                    &format!("{name} noticed that it was {early_by:?} early at {site}"),
                );
            }
            Event::Window(window) if window.leases > self.limits.window => {
                let Limits { window: most, .. } = self.limits;
                let leases = window.leases;
                self.fail("memory", &format!("{} holds {leases} leases of {most}", process.name));
            }
            Event::Window(window) if window.sites > self.scenario.sites => {
                let sites = window.sites;
                self.fail("memory", &format!("{} has {sites} sites in memory", process.name));
            }
            _ => {}
        }
    }

    pub(crate) fn no_site_waits_for(
        &self,
        wait: Duration,
        sites: &BTreeSet<String>,
    ) -> Result<(), String> {
        self.requests.lock().all_had_a_head_since(self.elapsed().saturating_sub(wait), sites)
    }

    pub(crate) fn heads(&self) -> u64 {
        self.requests.lock().heads
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.lock().clone()
    }

    pub(crate) fn with_trace<T>(&self, read: impl FnOnce(&mut Trace) -> T) -> T {
        read(&mut self.trace.lock())
    }
}
