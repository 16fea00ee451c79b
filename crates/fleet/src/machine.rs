//! Machines: each runs one process after another, which crash, are suspended, lose their network, and start again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::fetch::{self, FetchRow, FetchRules, OutputFormat};
use fetchwell_doors::pages::{self, PageDoorRules, PageRules};
use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules, RobotsRules};
use fetchwell_engine::pipeline::{self, EventSink, RunEnd, RunLimits, Runtime};
use fetchwell_engine::plan::redirect_chain::Patience;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Finish;
use fetchwell_engine::ports::source::Source;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::retry::{Backoff, RetryRule};
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::time::Time;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::network::Link;
use crate::politeness::RemotePoliteness;
use crate::queue::{QueueServer, RemoteInstance};
use crate::scenario::Feature;
use crate::sim::{BEGINS_AT, INTERVAL, STOPPED, Sim};
use crate::sinks::{RemoteCache, RemoteLog, Rows, RowsWithSettlement};
use crate::web::{Connections, PRODUCT_TOKEN};

/// How long `fetch` waits for a site; longer than any run.
const PATIENCE: Duration = Duration::from_hours(10_000);
/// The interval of a group, over all its sites.
pub(crate) const GROUP_INTERVAL: Duration = Duration::from_secs(2);

/// What may happen to a machine from outside.
pub(crate) struct Machine {
    pub(crate) name: String,
    door: DoorKind,
    clock: Clock,
    state: Mutex<MachineState>,
}

#[derive(Default)]
struct MachineState {
    suspended_until: Option<Instant>,
    cut_off_until: Option<Instant>,
    process: Option<Arc<Process>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorKind {
    Fetch,
    Pages,
}

impl Machine {
    pub(crate) fn new(sim: &Arc<Sim>, number: usize, door: DoorKind) -> Machine {
        let name = format!("m{number}");
        let clock = clock_of(sim, &name);
        Machine { name, door, clock, state: Mutex::default() }
    }

    pub(crate) fn suspend(&self, lasts: Duration) {
        self.state.lock().suspended_until = Some(Instant::now() + lasts);
    }

    pub(crate) fn cut_off(&self, lasts: Duration) {
        self.state.lock().cut_off_until = Some(Instant::now() + lasts);
    }

    pub(crate) fn repair(&self) {
        let mut state = self.state.lock();
        state.suspended_until = None;
        state.cut_off_until = None;
    }

    /// Kills its process, if one runs.
    pub(crate) fn crash(&self) {
        if let Some(process) = &self.state.lock().process {
            process.kill();
        }
    }

    /// Stops its process gracefully, if one runs.
    pub(crate) fn stop(&self) {
        if let Some(process) = &self.state.lock().process {
            process.stop.cancel();
        }
    }
}

/// The clock of a machine: with [`Feature::Clocks`], it is off by up to a minute, and up to 200 ppm fast or slow.
fn clock_of(sim: &Arc<Sim>, name: &str) -> Clock {
    let mut dice = Dice::new(sim.scenario.seed, &format!("clock of {name}"));
    let ahead_us = i64::try_from(dice.ms(0, 120_000).as_micros()).unwrap_or(0) - 60_000_000;
    let drift_ppm = i64::try_from(dice.below(401)).unwrap_or(0) - 200;
    let is_off = sim.has(Feature::Clocks);
    let sim = sim.clone();
    Clock::new(move || {
        let now = sim.clock.now();
        sim.on_clock_read(now);
        if !is_off {
            return now;
        }
        let passed_us = now.as_micros() - BEGINS_AT.as_micros();
        Time::from_micros(now.as_micros() + ahead_us + passed_us * drift_ppm / 1_000_000)
    })
}

/// A process on a machine.
pub(crate) struct Process {
    /// The machine, and the number of the process on it.
    pub(crate) name: String,
    machine: Arc<Machine>,
    dead: CancellationToken,
    stop: CancellationToken,
}

impl Process {
    pub(crate) fn kill(&self) {
        self.dead.cancel();
    }

    /// Whether it has no connection to the stores.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.machine.state.lock().cut_off_until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits until the process runs; forever if it is dead.
    pub(crate) async fn runs(&self) {
        loop {
            if self.dead.is_cancelled() {
                return std::future::pending().await;
            }
            let until = self.machine.state.lock().suspended_until;
            match until {
                Some(until) if Instant::now() < until => sleep_until(until).await,
                _ => return,
            }
        }
    }
}

/// Runs processes on a machine until `is_over`.
pub(crate) async fn live(sim: Arc<Sim>, machine: Arc<Machine>, is_over: CancellationToken) {
    let mut dice = Dice::new(sim.scenario.seed, &machine.name);
    for number in 1.. {
        let process = Arc::new(Process {
            name: format!("{}.{number}", machine.name),
            machine: machine.clone(),
            dead: CancellationToken::new(),
            stop: is_over.child_token(),
        });
        machine.state.lock().process = Some(process.clone());
        sim.note(&process.name, "start", format_args!("{:?}", machine.door));
        let mut running = tokio::spawn(run(sim.clone(), process.clone(), dice.clone()));
        let ended = tokio::select! {
            biased;
            ended = &mut running => Some(ended),
            () = process.dead.cancelled() => None,
        };
        machine.state.lock().process = None;
        match ended {
            None => {
                sim.on_process_over(&process, "dead");
                running.abort();
                drop(running.await);
            }
            Some(Ok(Ok(RunEnd::Stopped))) => {
                sim.on_process_over(&process, STOPPED);
            }
            Some(other) => {
                sim.fail("processes", &format!("{} ended with {other:?}", process.name));
            }
        }
        if is_over.is_cancelled() {
            return;
        }
        dice.seed(); // The next process makes other choices.
        sleep(dice.ms(10, 45_000)).await;
    }
}

async fn run(sim: Arc<Sim>, process: Arc<Process>, mut dice: Dice) -> Result<RunEnd, StoreError> {
    let clock = process.machine.clock.clone();
    let mut dice_for = |subject: &str| Dice::new(dice.seed(), subject);
    let link = Arc::new(Link::new(sim.clone(), process.clone(), dice_for("link")));
    let web = Arc::new(Connections::new(sim.clone(), process.clone(), dice_for("web")));
    let rules = gate_rules(&sim);
    let seed = dice_for("runtime").seed();
    let event_sink: EventSink = {
        let sim = sim.clone();
        let process = process.clone();
        Arc::new(move |event| sim.on_event(&process, &event))
    };
    let runtime = |rules| Runtime {
        gate: Gate::new(
            Arc::new(RemotePoliteness::new(link.clone(), clock.clone())),
            rules,
            clock.clone(),
        ),
        web,
        limits: RunLimits {
            max_in_flight: sim.limits.max_in_flight,
            window: sim.limits.window,
            max_per_site: sim.limits.max_per_site,
            ..RunLimits::default()
        },
        clock: clock.clone(),
        seed,
        event_sink,
    };
    let instance = |server: &Arc<QueueServer>| {
        Arc::new(RemoteInstance::new(server.clone(), link.clone(), clock.clone()))
    };
    let stop = process.stop.clone();
    match process.machine.door {
        DoorKind::Fetch => {
            let server = sim.fetch_queue.clone();
            let instance = instance(&server);
            let finish: Arc<dyn Finish<FetchRow>> = match server.delivers_first {
                true => Arc::new(SinkThenSettle {
                    sink: Rows { link: link.clone(), server },
                    source: instance.clone(),
                }),
                false => Arc::new(RowsWithSettlement { instance: instance.clone(), server }),
            };
            let source: Arc<dyn Source> = instance;
            let door = fetch::door(source.clone(), finish, fetch_rules(), clock.clone());
            let ended = pipeline::run(door, runtime(fetch::gate_rules(rules)), stop).await;
            source.leave().await.and(ended)
        }
        DoorKind::Pages => {
            let servers = sim.page_servers.clone();
            let server = sim.page_queue.clone();
            let instance = instance(&server);
            let cache = RemoteCache { link: link.clone(), servers: servers.clone() };
            let log = RemoteLog { link: link.clone(), servers, server };
            let door = pages::door(
                instance.clone(),
                Arc::new(cache),
                Arc::new(log),
                page_rules(),
                clock.clone(),
                Box::new(|_, _| {}),
            );
            let ended = pipeline::run(door, runtime(rules), stop).await;
            instance.leave().await.and(ended)
        }
    }
}

fn fetch_rules() -> FetchRules {
    FetchRules {
        format: OutputFormat::Html,
        links: false,
        // CPU time differs between runs.
        reading: ReadLimits { max_time: Duration::MAX, ..ReadLimits::default() },
        max_redirects: 5,
        patience: Patience { since: BEGINS_AT, lasts: PATIENCE },
    }
}

/// Like the rules of the command, but with short back-offs so that runs end soon.
fn page_rules() -> PageDoorRules {
    let cap = Duration::from_secs(60);
    let site_backoff = Backoff { cap, ..RetryRule::PAGES.site_backoff };
    let backoff = Backoff { cap, ..RetryRule::PAGES.backoff };
    let retry = RetryRule { backoff, site_backoff, ..RetryRule::PAGES };
    PageDoorRules {
        page: PageRules { retry, ..PageRules::default() },
        cache_ttl: Duration::from_hours(24),
        event_retention: Duration::from_hours(24),
    }
}

fn gate_rules(sim: &Sim) -> GateRules {
    let groups = match sim.has(Feature::Groups) {
        true => GroupPace { default: Some(Rate::every(GROUP_INTERVAL)), ..GroupPace::default() },
        false => GroupPace::default(),
    };
    GateRules {
        pace: PaceRules {
            default_interval: INTERVAL,
            sites: HashMap::new(),
            concurrency: HashMap::new(),
            groups,
        },
        robots: RobotsRules {
            product_token: PRODUCT_TOKEN.to_owned(),
            when_unreachable: WhenUnreachable::Defer,
            fresh_for: sim.limits.robots_fresh_for,
            stale_for: Duration::from_hours(30 * 24),
            max_crawl_delay: None,
            pages_fail_with_it: false,
        },
        give_up_after: None,
        site_attempts: None,
        missing_hosts_fail: false,
    }
}
