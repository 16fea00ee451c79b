//! Three processes on one politeness store, with everything going wrong that can: killed, stopped, their
//! clocks set by an hour, the store restarted. Judged by what they say to the microsecond, and at the
//! origin within what a control sender achieves.
//!
//! The short form is part of the test command; `scripts/soak` runs the long one.

#![expect(clippy::print_stdout, reason = "figures are for whoever runs the test")]

use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_simweb::{HitKind, OutageKind, SiteScript, site_name};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::alone::alone;
use fetchwell_testkit::crash::{
    ControlSender, DispatchLog, FalseClock, OutsideLedger, OwnServer, Process, ProcessEnd, Program,
    TestWeb,
};
use fetchwell_testkit::replay::{is_soak, seed};
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3_600);
const LEASE_TTL: Duration = Duration::from_secs(4);
/// Two probes of a site are at least this far apart: the shortest open time, less its jitter.
const LEAST_BETWEEN_PROBES: Duration = Duration::from_millis(800);
/// The test fails after more restarts than this: the store is down only once, for a few seconds.
const MOST_RESTARTS: usize = 20;
/// The exit code when the store can't be reached.
const STORE_IS_AWAY: i32 = 5;
const FETCH: [&str; 6] = ["-v", "fetch", "@list", "--output", "rows.jsonl", "--resume"];

/// How much of it.
struct Size {
    sites: usize,
    pages_per_site: usize,
    interval: Duration,
    rate: &'static str,
}

fn size() -> Size {
    if is_soak() {
        Size { sites: 1_000, pages_per_site: 16, interval: Duration::from_secs(5), rate: "0.2" }
    } else {
        Size { sites: 40, pages_per_site: 36, interval: Duration::from_millis(500), rate: "2" }
    }
}

/// Three processes at work on one list.
struct ThreeFetchers {
    origin: TestWeb,
    program: Program,
    ledger: OutsideLedger,
    clock: FalseClock,
    processes: Vec<Process>,
    log: DispatchLog,
    /// Whether the politeness store is a server, which may be away.
    is_on_server: bool,
    restarts: usize,
}

impl ThreeFetchers {
    /// Every twentieth site is down for a while in the middle when it is to be hard.
    fn new(size: &Size, politeness: Option<&str>, hard: bool) -> ThreeFetchers {
        let whole = size.interval * u32::try_from(size.pages_per_site).unwrap_or(u32::MAX);
        let site = |rank: usize| {
            let site = SiteScript::new(&site_name(rank)).page_bytes(1_000);
            let down = OutageKind::Status503 { retry_after: None };
            if hard && rank.is_multiple_of(20) {
                site.outage(whole / 8..whole * 5 / 8, down)
            } else {
                site
            }
        };
        let origin = TestWeb::start((1..=size.sites).map(site));
        let flags = ["--rate", size.rate, "--max-in-flight", "64"];
        let mut program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin).flags(flags);
        if let Some(url) = politeness {
            program = program.flags(["--politeness", url]);
        }
        for (name, value) in [
            ("FETCHWELL_LOG__FORMAT", "json"),
            ("FETCHWELL_LEASE__TTL", "4s"),
            ("FETCHWELL_LEASE__HEARTBEAT", "1s"),
            ("FETCHWELL_BREAKER__FAILURE_THRESHOLD", "3"),
            ("FETCHWELL_BREAKER__INITIAL_BACKOFF", "1s"),
            ("FETCHWELL_BREAKER__MAX_BACKOFF", "2s"),
            ("FETCHWELL_HTTP__CONNECT_TIMEOUT", "2s"),
            ("FETCHWELL_HTTP__REQUEST_TIMEOUT", "4s"),
        ] {
            program = program.variable(name, value);
        }
        let page =
            |page| (1..=size.sites).map(move |rank| format!("http://{}/{page}", site_name(rank)));
        let ledger = OutsideLedger::of((1..=size.pages_per_site).flat_map(page).collect());
        ledger.write_list(&program.file("list"));
        let clock = FalseClock::new(program.file("clock"));
        let log = DispatchLog::default();
        let processes = Vec::new();
        let is_on_server = politeness.is_some();
        ThreeFetchers { origin, program, ledger, clock, processes, log, is_on_server, restarts: 0 }
    }

    fn start_three(&mut self) {
        self.processes = (0..3).map(|which| self.start(which)).collect();
    }

    /// The third process runs on the false clock.
    fn start(&self, which: usize) -> Process {
        let variables = if which == 2 { self.clock.variables().to_vec() } else { Vec::new() };
        self.program.start_with(&FETCH, &variables)
    }

    async fn kill_and_replace(&mut self, which: usize) {
        let ended = self.processes.remove(which).kill().await;
        self.replace(which, &ended);
    }

    /// Restarts processes that ended because the store was down when they started.
    async fn look_after(&mut self) {
        for which in 0..self.processes.len() {
            if self.processes[which].is_running() {
                continue;
            }
            let ended = self.processes.remove(which).wait(DEADLINE).await;
            assert!(self.found_no_store(&ended), "it was over before the trouble: {ended:?}");
            self.restart(which, &ended);
        }
    }

    /// Whether it ended because the store was down at its start. A run that has begun waits for the store instead.
    fn found_no_store(&self, ended: &ProcessEnd) -> bool {
        let mut log = DispatchLog::default();
        log.read(&ended.stderr);
        self.is_on_server && ended.code == Some(STORE_IS_AWAY) && log.is_empty()
    }

    fn restart(&mut self, which: usize, ended: &ProcessEnd) {
        self.restarts += 1;
        assert!(
            self.restarts <= MOST_RESTARTS,
            "too many restarts, the store is still down: {ended:?}"
        );
        self.replace(which, ended);
    }

    fn replace(&mut self, which: usize, ended: &ProcessEnd) {
        self.log.read(&ended.stderr);
        self.processes.insert(which, self.start(which));
    }

    /// Longer than its lease lasts.
    async fn put_to_sleep(&self, which: usize) {
        self.processes[which].stop().await;
        sleep(LEASE_TTL + Duration::from_secs(1)).await;
        self.processes[which].go_on().await;
    }

    /// Waits until all is done, and looks that nothing is missing.
    async fn finish(&mut self) {
        while let Some(process) = self.processes.pop() {
            let ended = process.wait(DEADLINE).await;
            if self.found_no_store(&ended) {
                self.restart(self.processes.len(), &ended);
            } else {
                self.log.read(&ended.expect_code(0).stderr);
            }
        }
        self.ledger.balance(&self.program.file("rows.jsonl"));
    }

    /// No head too early by what the processes say, none at the origin beyond the control's lateness,
    /// and never two probes of a site at once.
    async fn judge(&self, size: &Size, control: ControlSender) {
        let tolerance = control.tolerance(&self.origin).await;
        let verdict = self.origin.verdict(size.interval, tolerance);
        let too_close = self.log.too_close();
        let closest_probes = self.closest_probes();
        println!(
            "{} heads, {} too close in the dispatch log; {verdict}; tolerance {tolerance:?}; closest \
             probes {closest_probes:?}",
            self.log.len(),
            too_close.len(),
        );
        assert!(self.log.len() >= self.ledger.urls().len(), "the log is not whole");
        let first: Vec<String> = too_close.iter().take(5).map(ToString::to_string).collect();
        assert!(too_close.is_empty(), "{first:?}");
        assert!(verdict.is_polite(), "{verdict}");
        if let Some(closest) = closest_probes {
            assert!(closest + tolerance >= LEAST_BETWEEN_PROBES, "{closest:?}");
        }
    }

    fn closest_probes(&self) -> Option<Duration> {
        let mut probes = self.origin.hits();
        probes.retain(|hit| hit.kind == HitKind::Head);
        probes.sort_by(|a, b| (&a.site, a.at).cmp(&(&b.site, b.at)));
        let of_one_site = probes.windows(2).filter(|pair| pair[0].site == pair[1].site);
        of_one_site.map(|pair| pair[1].at - pair[0].at).min()
    }

    /// What share of the permitted rate was used, on the average of all sites, from each one's first
    /// page to its last.
    fn share_of_rate_used(&self, interval: Duration) -> f64 {
        let mut shares = Vec::new();
        let mut pages = self.origin.hits();
        pages.retain(|hit| hit.kind == HitKind::Page);
        pages.sort_by(|a, b| (&a.site, a.at).cmp(&(&b.site, b.at)));
        for site in pages.chunk_by(|a, b| a.site == b.site) {
            let took = site[site.len() - 1].at - site[0].at;
            let least = interval.as_secs_f64() * (site.len() - 1) as f64;
            shares.push(least / took.as_secs_f64());
        }
        shares.iter().sum::<f64>() / shares.len() as f64
    }
}

/// All that can go wrong, in an order by chance, each some seconds after the other.
async fn trouble(fetchers: &mut ThreeFetchers, server: Option<&OwnServer>, chance: &mut Chance) {
    let mut troubles = [0, 1, 2, 3, 4, 5];
    for place in (1..troubles.len()).rev() {
        let other = usize::try_from(chance.next_u64()).unwrap_or(0) % (place + 1);
        troubles.swap(place, other);
    }
    println!("troubles in the order {troubles:?}");
    for trouble in troubles {
        sleep(Duration::from_millis(500 + chance.next_u64() % 500)).await;
        fetchers.look_after().await;
        match trouble {
            0 => fetchers.kill_and_replace(0).await,
            1 => fetchers.put_to_sleep(1).await,
            2 => fetchers.clock.set_ahead(HOUR),
            3 => fetchers.clock.set_back(HOUR),
            4 => fetchers.kill_and_replace(1).await,
            _ => {
                if let Some(server) = server {
                    server.crash().await;
                    sleep(Duration::from_millis(300)).await;
                    server.restart().await;
                }
            }
        }
    }
    fetchers.look_after().await;
}

async fn a_hard_run(server: Option<&OwnServer>) {
    let size = size();
    let mut chance = Chance::seeded(seed());
    let mut fetchers = ThreeFetchers::new(&size, server.map(OwnServer::url), true);
    let control = ControlSender::start(&fetchers.origin);
    fetchers.start_three();
    for _ in 0..if is_soak() { 3 } else { 1 } {
        trouble(&mut fetchers, server, &mut chance).await;
    }
    fetchers.finish().await;
    fetchers.judge(&size, control).await;
}

async fn a_quiet_run(server: Option<&OwnServer>) {
    let size = size();
    let mut fetchers = ThreeFetchers::new(&size, server.map(OwnServer::url), false);
    let control = ControlSender::start(&fetchers.origin);
    fetchers.start_three();
    fetchers.finish().await;
    let share = fetchers.share_of_rate_used(size.interval);
    println!("{:.2} % of the permitted rate was used", share * 100.0);
    fetchers.judge(&size, control).await;
    assert!(share >= 0.98, "{share:.4} of the permitted rate was used");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_through_all_troubles() {
    let _turn = alone().await;
    a_hard_run(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_through_all_troubles() {
    let _turn = alone().await;
    let Some(server) = OwnServer::start("postgres").await else { return };
    a_hard_run(Some(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_through_all_troubles() {
    let _turn = alone().await;
    let Some(server) = OwnServer::start("redis").await else { return };
    a_hard_run(Some(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures throughput; run by scripts/soak"]
async fn on_sqlite_a_quiet_run_uses_the_rate() {
    let _turn = alone().await;
    a_quiet_run(None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures throughput; run by scripts/soak"]
async fn on_postgres_a_quiet_run_uses_the_rate() {
    let _turn = alone().await;
    let Some(server) = OwnServer::start("postgres").await else { return };
    a_quiet_run(Some(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures throughput; run by scripts/soak"]
async fn on_redis_a_quiet_run_uses_the_rate() {
    let _turn = alone().await;
    let Some(server) = OwnServer::start("redis").await else { return };
    a_quiet_run(Some(&server)).await;
}
