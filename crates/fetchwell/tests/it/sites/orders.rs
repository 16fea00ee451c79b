//! Orders while pages are being fetched: what the origin sees of a pause, a resume and a pace.

use std::time::Duration;

use fetchwell_simweb::{Hit, HitKind, SiteScript};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{ControlSender, OutsideLedger, Process, Program, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::replay::is_soak;
use tokio::time::Instant;

const INTERVAL: Duration = Duration::from_millis(200);
/// Enough pages to outlast the `sites` commands on a busy machine.
const PAGES: usize = 150;

/// Two processes that fetch from the same three sites, five pages a second each.
struct TwoFetchers {
    origin: TestWeb,
    control: ControlSender,
    program: Program,
    ledgers: Vec<(OutsideLedger, &'static str)>,
    processes: Vec<Process>,
}

impl TwoFetchers {
    fn start() -> TwoFetchers {
        let sites = ["paused.test", "rated.test", "free.test"];
        let script = |name: &&str| SiteScript::new(name).page_bytes(500);
        let origin = TestWeb::start(sites.iter().map(script));
        let program =
            Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin).flags(["--rate", "5"]);
        let control = ControlSender::start(&origin);
        let mut fetchers =
            TwoFetchers { origin, control, program, ledgers: vec![], processes: vec![] };
        for name in ["one", "other"] {
            let url = |n: usize| format!("http://{}/{name}/{n}", sites[n % 3]);
            let ledger = OutsideLedger::of((0..PAGES * 3 / 2).map(url).collect());
            ledger.write_list(&fetchers.program.file(name));
            let output = format!("{name}.jsonl");
            let process = fetchers.program.start(&["fetch", &format!("@{name}"), "-o", &output]);
            fetchers.ledgers.push((ledger, name));
            fetchers.processes.push(process);
        }
        fetchers
    }

    fn pages_of(&self, site: &str) -> Vec<Hit> {
        let mut hits = self.origin.hits();
        hits.retain(|hit| &*hit.site == site && hit.kind == HitKind::Page);
        hits
    }

    /// Waits until a site has been asked for so many pages.
    async fn until(&self, site: &str, pages: usize) {
        eventually_ok(&format!("{pages} pages of {site}"), async || {
            let asked_for = self.pages_of(site).len();
            if asked_for >= pages { Ok(()) } else { Err(asked_for) }
        })
        .await;
    }

    async fn sites(&self, arguments: &[&str]) {
        let arguments = [&["sites"], arguments].concat();
        self.program.run(&arguments).await.expect_code(0);
    }

    /// When the last page of all was asked for, by the clock of the origin.
    async fn now(&self) -> Duration {
        let before = self.pages_of("free.test").len();
        self.until("free.test", before + 1).await;
        self.pages_of("free.test").last().map(|hit| hit.at).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_heed_orders_that_come_while_they_fetch() {
    let mut fetchers = TwoFetchers::start();
    fetchers.until("paused.test", 8).await;

    fetchers.sites(&["pause", "paused.test"]).await;
    let paused_at = fetchers.now().await;
    fetchers.sites(&["set-rate", "rated.test", "1"]).await;
    let rated_at = fetchers.now().await;
    // Unpaused, paused.test would get as many pages in this time.
    let free = fetchers.pages_of("free.test").len();
    fetchers.until("free.test", free + 20).await;
    let quiet_until = fetchers.now().await;
    let paused = fetchers.pages_of("paused.test");

    fetchers.sites(&["resume", "paused.test"]).await;
    let resumed = Instant::now();
    let free = fetchers.pages_of("free.test").len();
    fetchers.until("paused.test", paused.len() + 1).await;
    let effect_after = resumed.elapsed();
    let meanwhile = fetchers.pages_of("free.test").len() - free;
    assert!(meanwhile <= 30, "a resume took effect only after {meanwhile} pages of another site");
    fetchers.until("rated.test", fetchers.pages_of("rated.test").len() + 3).await;
    fetchers.sites(&["set-rate", "rated.test", "--clear"]).await;
    let cleared_at = fetchers.now().await;

    for process in fetchers.processes.drain(..) {
        process.wait(DEADLINE).await.expect_code(0);
    }
    for (ledger, name) in &fetchers.ledgers {
        ledger.balance(&fetchers.program.file(&format!("{name}.jsonl")));
    }
    let tolerance = fetchers.control.tolerance(&fetchers.origin).await;
    let verdict = fetchers.origin.verdict(INTERVAL, tolerance);
    println!("a resume took effect after {effect_after:?}; {verdict}; tolerance {tolerance:?}");
    assert!(verdict.is_polite(), "{verdict}");
    let during = paused.iter().filter(|hit| (paused_at..quiet_until).contains(&hit.at)).count();
    assert!(
        during <= 2,
        "{during} pages of a paused site: at most one per process may be in flight"
    );
    assert!(!is_soak() || effect_after < Duration::from_secs(5), "{effect_after:?}");
    let mut hits = fetchers.origin.hits();
    hits.retain(|hit| &*hit.site == "rated.test" && hit.at > rated_at && hit.at < cleared_at);
    let gaps: Vec<Duration> = hits.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    // The first may have been on its way when the order came.
    let least = gaps.iter().skip(1).min().copied().unwrap_or(Duration::MAX);
    assert!(gaps.len() >= 2 && least + tolerance >= Duration::from_secs(1), "{gaps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robots_txt_that_is_to_be_read_again_is_while_its_site_is_being_fetched() {
    let origin = TestWeb::start([SiteScript::new("a.test").robots("User-agent: *\nDisallow: /no")]);
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin).flags(["--rate", "4"]);
    let ledger = OutsideLedger::of((0..40).map(|n| format!("http://a.test/{n}")).collect());
    ledger.write_list(&program.file("list"));
    let process = program.start(&["fetch", "@list", "-o", "rows.jsonl"]);
    origin.until_page_hits(5).await;
    program.run(&["sites", "refetch-robots", "a.test"]).await.expect_code(0);
    let pages_before = origin.page_hits();
    process.wait(DEADLINE).await.expect_code(0);
    ledger.balance(&program.file("rows.jsonl"));
    let hits = origin.hits();
    let robots = hits.iter().filter(|hit| hit.kind == HitKind::Robots).count();
    assert_eq!(robots, 2, "once at the beginning, and once by order");
    let second = hits.iter().rposition(|hit| hit.kind == HitKind::Robots).unwrap();
    assert!(second < pages_before + 8, "it was read at {second}, the order came at {pages_before}");
}
