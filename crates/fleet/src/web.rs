//! The simulated web: sites whose behaviour changes over time, and the connections of a machine to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::budget::Share;
use fetchwell_engine::web::{Answer, Exchange, Method, Phases, Request, SendPermit, Web};
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault, Phase};
use fetchwell_simweb::{OutageKind, SimRequest, SimResponse, SiteScript, Truncation, World};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::machine::Process;
use crate::scenario::{Feature, Plant, Scenario};
use crate::sim::Sim;

pub(crate) const PRODUCT_TOKEN: &str = "FleetBot";
/// How long a machine waits for a silent site.
const SILENCE: Duration = Duration::from_secs(10);
/// Pages are small: their content does not matter here.
const PAGE_BYTES: usize = 300;
/// A head that leaves later than this after its permission is reported, as in `engine::http`.
const ON_TIME: Duration = Duration::from_millis(2);
/// What robots.txt may disallow. Every URL path of the workload begins with one of these, or with `/`.
pub(crate) const SECTIONS: [&str; 3] = ["/a/", "/b/", "/c/"];

/// The groups. A page that belongs to one has it in its path, as in `/a/page-x12`.
pub(crate) const GROUPS: [&str; 3] = ["x", "y", "z"];

/// The group that a page belongs to.
pub(crate) fn group_of(path: &str) -> Option<&'static str> {
    let name = path.rsplit_once('-')?.1;
    GROUPS.into_iter().find(|group| name.starts_with(group))
}

/// What a site does during a part of the run.
struct Era {
    from: Duration,
    world: World,
    /// The sections that its robots.txt disallows.
    disallows: Vec<&'static str>,
}

/// A site over the whole run.
pub(crate) struct SimulatedSite {
    eras: Vec<Era>,
    /// What its robots.txt asks for, at all times.
    pub(crate) crawl_delay: Duration,
}

impl SimulatedSite {
    fn era(&self, at: Duration) -> Option<&Era> {
        self.eras.iter().rev().find(|era| era.from <= at)
    }
}

/// All sites.
pub(crate) struct Internet {
    pub(crate) sites: BTreeMap<String, SimulatedSite>,
}

pub(crate) fn site_name(number: usize) -> String {
    format!("s{number}.test")
}

impl Internet {
    pub(crate) fn of(scenario: &Scenario) -> Internet {
        let site = |number| {
            let name = site_name(number);
            let site = site_of(scenario, &name);
            (name, site)
        };
        Internet { sites: (0..scenario.sites).map(site).collect() }
    }
}

/// The life of a site: some eras with faults, and one without at the end.
fn site_of(scenario: &Scenario, name: &str) -> SimulatedSite {
    let mut dice = Dice::new(scenario.seed, name);
    let has_crawl_delay = dice.happens(0.5) && scenario.has(Feature::CrawlDelays);
    let crawl_delay = dice.seconds(2, 5) * u32::from(has_crawl_delay);
    let troubled_ms = usize::try_from(scenario.troubled_for.as_millis()).unwrap_or(usize::MAX);
    let mut eras = Vec::new();
    let mut from = Duration::ZERO;
    let mut pages = Pages::of(scenario, name, &mut dice);
    while from < scenario.troubled_for {
        let lasts = dice.ms(troubled_ms / 6, troubled_ms / 2).max(Duration::from_secs(1));
        let until = (from + lasts).min(scenario.troubled_for);
        let script = troubled(scenario, name, from..until, &mut dice);
        let disallows = disallowed(scenario, &mut dice);
        eras.push(era(from, pages.on(script), disallows, crawl_delay, &mut dice, scenario));
        from = until;
    }
    pages.are_whole = true;
    let disallows = disallowed(scenario, &mut dice);
    let script = pages.on(SiteScript::new(name));
    let healthy = robots(script, &disallows, crawl_delay);
    eras.push(Era { from, world: world(healthy), disallows });
    SimulatedSite { eras, crawl_delay }
}

fn era(
    from: Duration,
    script: SiteScript,
    disallows: Vec<&'static str>,
    crawl_delay: Duration,
    dice: &mut Dice,
    scenario: &Scenario,
) -> Era {
    let script = robots(script, &disallows, crawl_delay);
    let fails = dice.happens(0.5) && scenario.has(Feature::RobotsFail);
    let script = if fails { script.robots_status(503) } else { script };
    Era { from, world: world(script), disallows }
}

fn world(script: SiteScript) -> World {
    World::new([script.page_bytes(PAGE_BYTES)])
}

fn disallowed(scenario: &Scenario, dice: &mut Dice) -> Vec<&'static str> {
    let may_change = scenario.has(Feature::ChangingRobots);
    SECTIONS.into_iter().filter(|_| dice.happens(0.3) && may_change).collect()
}

fn robots(script: SiteScript, disallows: &[&str], crawl_delay: Duration) -> SiteScript {
    if disallows.is_empty() && crawl_delay.is_zero() {
        return script;
    }
    let mut text = "User-agent: *\n".to_owned();
    if !crawl_delay.is_zero() {
        text.push_str(&format!("Crawl-delay: {}\n", crawl_delay.as_secs()));
    }
    for section in disallows {
        text.push_str(&format!("Disallow: {section}\n"));
    }
    script.robots(&text)
}

fn troubled(
    scenario: &Scenario,
    name: &str,
    during: std::ops::Range<Duration>,
    dice: &mut Dice,
) -> SiteScript {
    let script = SiteScript::new(name);
    let (latency, trickle) = (dice.ms(100, 8_000), dice.ms(0, 3_000));
    let is_slow = dice.happens(0.5) && scenario.has(Feature::SlowSites);
    let script = if is_slow { script.slow(latency).trickling(trickle) } else { script };
    let retry_after = dice.seconds(1, 120);
    let failure = match dice.below(4) {
        0 => OutageKind::Refuse,
        1 => OutageKind::Stall,
        2 => OutageKind::Status503 { retry_after: Some(retry_after) },
        _ => OutageKind::Status503 { retry_after: None },
    };
    let half_ms = (during.end - during.start).as_millis() / 2;
    let outage_from = during.start + dice.ms(0, usize::try_from(half_ms).unwrap_or(0));
    let (up, down) = (dice.seconds(1, 30), dice.seconds(1, 30));
    if dice.happens(0.5) && scenario.has(Feature::Outages) {
        script.outage(outage_from..during.end, failure)
    } else if dice.happens(0.5) && scenario.has(Feature::Flapping) {
        script.flapping(up, down, failure)
    } else {
        script
    }
}

/// What the pages of a site do. A page of the workload ends in the name of what it does, such as `/a/12-busy`.
struct Pages {
    busy_for: Duration,
    redirects_to: String,
    has: Vec<Feature>,
    /// Pages that are broken for a while are whole now.
    are_whole: bool,
}

impl Pages {
    fn of(scenario: &Scenario, name: &str, dice: &mut Dice) -> Pages {
        let busy_for = dice.seconds(1, 90);
        let other = site_name(dice.below(scenario.sites));
        let redirects_to =
            if other == name { "/a/target".to_owned() } else { format!("http://{other}/b/target") };
        let has = scenario.features.iter().copied().collect();
        Pages { busy_for, redirects_to, has, are_whole: false }
    }

    fn on(&self, mut script: SiteScript) -> SiteScript {
        let has = |feature| self.has.contains(&feature);
        for section in SECTIONS {
            let path = |kind: &str| format!("{section}{kind}-*");
            if has(Feature::Redirects) {
                script = script.redirect(&path("redirect"), &self.redirects_to);
                script = script.redirect(&path("loop"), &format!("{section}loop-again"));
            }
            if has(Feature::FailingPages) {
                script = script.status(&path("gone"), 404).status(&path("fails"), 500);
                script = script.fails_first(&path("first"), 2, 500);
            }
            if has(Feature::RetryAfter) && !self.are_whole {
                script = script.busy(&path("busy"), 429, self.busy_for);
                script = script.busy(&path("away"), 503, self.busy_for);
                script = script.status(&path("limited"), 429);
            }
            if has(Feature::BrokenPages) && !self.are_whole {
                script = script.manner(&path("cut"), Truncation::CutMidBody { after_bytes: 20 });
                script = script.manner(&path("silent"), Truncation::Stall);
            }
        }
        script
    }
}

/// The kinds of pages that a scenario has, as in [`Pages`].
pub(crate) fn page_kinds(scenario: &Scenario) -> Vec<&'static str> {
    let mut kinds = vec!["page", "page", "page"];
    for (feature, its) in [
        (Feature::Redirects, &["redirect", "loop"][..]),
        (Feature::FailingPages, &["gone", "fails", "first"]),
        (Feature::RetryAfter, &["busy", "away", "limited"]),
        (Feature::BrokenPages, &["cut", "silent"]),
    ] {
        if scenario.has(feature) {
            kinds.extend(its);
        }
    }
    kinds
}

/// What a request is for, as its site sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadKind {
    Page,
    Robots,
    /// A `HEAD` request, which only probes send.
    Probe,
}

/// A request head, as it arrives at its site. Heads arrive at once.
#[derive(Clone, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) site: &'a str,
    pub(crate) path: &'a str,
    pub(crate) kind: HeadKind,
    /// The sections that the site's robots.txt disallows now.
    pub(crate) disallows: &'a [&'static str],
}

/// The connections of one process to the web.
pub(crate) struct Connections {
    sim: Arc<Sim>,
    process: Arc<Process>,
    dice: Mutex<Dice>,
}

impl Connections {
    pub(crate) fn new(sim: Arc<Sim>, process: Arc<Process>, dice: Dice) -> Connections {
        Connections { sim, process, dice: Mutex::new(dice) }
    }

    /// The delay between the permission and the first byte on the wire.
    fn held_up(&self) -> Duration {
        let mut dice = self.dice.lock();
        let (held_up, is_late) = (dice.ms(1, 150), dice.happens(0.2));
        let may_be_late = self.sim.has(Feature::LateHeads) && self.sim.is_troubled();
        if is_late && may_be_late { held_up } else { Duration::ZERO }
    }

    /// Records the head at its site, and returns the site's answer.
    fn send(&self, request: &Request) -> Option<SimResponse> {
        let at = self.sim.elapsed();
        let name = request.url.site();
        let site = self.sim.web.sites.get(name.as_str())?;
        let era = site.era(at)?;
        let path = request.url.path_and_query();
        let kind = match (&request.method, path) {
            (&Method::HEAD, _) => HeadKind::Probe,
            (_, "/robots.txt") => HeadKind::Robots,
            _ => HeadKind::Page,
        };
        let head = Head { site: name.as_str(), path, kind, disallows: &era.disallows };
        self.sim.on_head(&self.process, &head);
        let answer = era.world.answer(
            at,
            SimRequest {
                host: name.as_str(),
                method: &request.method,
                path_and_query: path,
                user_agent: PRODUCT_TOKEN,
                if_none_match: "",
            },
        );
        // Otherwise, the world would keep a record of all hits.
        drop(era.world.take_hits());
        if kind == HeadKind::Robots {
            self.sim.on_robots_served(&head, answer.visible_status());
        }
        Some(answer)
    }
}

/// Ends a request when it is dropped, even if its process crashes.
struct InFlight<'a> {
    connections: &'a Connections,
    site: String,
    is_probe: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Connections { sim, process, .. } = self.connections;
        sim.on_request_over(process, &self.site, self.is_probe);
    }
}

#[async_trait]
impl Web for Connections {
    async fn exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        let connecting = self.dice.lock().ms(0, 3) * u32::from(self.sim.has(Feature::SlowSites));
        sleep(connecting).await;
        self.process.runs().await;
        if !send_permit.to_write().await && !self.sim.has_plant(Plant::NoPermission) {
            return Exchange::NotSent;
        }
        let held_up = self.held_up();
        if !held_up.is_zero() {
            sleep(held_up).await;
        }
        self.process.runs().await;
        let given = send_permit.given();
        if given.is_some_and(|given| given.at.elapsed() > given.in_time) {
            return Exchange::NotSent; // `engine::http` does not write such a head either.
        }
        let Some(answer) = self.send(request) else {
            return Exchange::Failed(FetchOutcome::Network(NetworkFault::Reset));
        };
        let is_probe = request.method == Method::HEAD;
        let site = request.url.site().as_str().to_owned();
        let _in_flight = InFlight { connections: self, site, is_probe };
        if given.is_some_and(|given| given.at.elapsed() + given.decided_before > ON_TIME) {
            send_permit.left_late();
        }
        if self.sim.has_plant(Plant::EndlessRequest) {
            std::future::pending::<()>().await;
        }
        let wait = wait_of(&answer);
        let exchange = receive(answer, phases).await;
        self.process.runs().await;
        if let (Exchange::Answered(_), Some(wait)) = (&exchange, wait) {
            self.sim.on_told_to_wait(&self.process, request.url.site().as_str(), wait);
        }
        exchange
    }
}

/// The wait that a site asks for.
fn wait_of(answer: &SimResponse) -> Option<Duration> {
    let seconds = answer.header("retry-after")?.parse().ok()?;
    matches!(answer.status, 429 | 503).then(|| Duration::from_secs(seconds))
}

async fn receive(answer: SimResponse, phases: &mut Phases) -> Exchange {
    let written = Instant::now();
    match answer.manner {
        Truncation::Stall => {
            sleep(SILENCE).await;
            return Exchange::Failed(FetchOutcome::TimedOut(Phase::Read));
        }
        Truncation::CutConnection | Truncation::CutAfterHead | Truncation::CutMidBody { .. } => {
            return Exchange::Failed(FetchOutcome::Network(NetworkFault::Reset));
        }
        Truncation::Complete => {}
    }
    sleep(answer.first_byte_after.max(Duration::from_millis(1))).await;
    phases.first_byte = written.elapsed();
    if !answer.body_over.is_zero() {
        sleep(answer.body_over).await;
        phases.body = answer.body_over;
    }
    let mut headers = http::HeaderMap::new();
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) =
            (name.parse::<http::HeaderName>(), value.parse::<http::HeaderValue>())
        {
            headers.insert(name, value);
        }
    }
    let SimResponse { status, body, .. } = answer;
    Exchange::Answered(Answer { status, headers, body, share: Share::none(), wire: Box::default() })
}
