//! The doors that the machines run, with their rules.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::fetch::{self, FetchRow, FetchRules, OutputFormat};
use fetchwell_doors::pages::{self, PageDoorRules, PageRules};
use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_doors::retriever::{self, BodyRules, MessageRules};
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules, RobotsRules};
use fetchwell_engine::pipeline::{self, EventSink, RunEnd, RunLimits, Runtime};
use fetchwell_engine::plan::redirect_chain::Patience;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Finish;
use fetchwell_engine::ports::retriever_store::Station;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::web::Timeouts;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::retry::{Backoff, RetryRule};
use fetchwell_policy::robots::WhenUnreachable;

use crate::dice::Dice;
use crate::inbox::OutboxWithSettlement;
use crate::machine::Process;
use crate::network::Link;
use crate::politeness::politeness;
use crate::queue::{QueueServer, RemoteInstance};
use crate::scenario::Feature;
use crate::sim::{BEGINS_AT, INTERVAL, Sim};
use crate::sinks::{RemoteCache, RemoteLog, Rows, RowsWithSettlement};
use crate::web::{Connections, PRODUCT_TOKEN};

/// How long `fetch` waits for a site; longer than any run.
const PATIENCE: Duration = Duration::from_hours(10_000);
/// The interval of a group, over all its sites.
pub(crate) const GROUP_INTERVAL: Duration = Duration::from_secs(2);

/// What a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorKind {
    Fetch,
    Pages,
    Serve,
}

/// Runs the pipeline of a process.
pub(crate) async fn run(
    sim: Arc<Sim>,
    process: Arc<Process>,
    door: DoorKind,
    mut dice: Dice,
) -> Result<RunEnd, StoreError> {
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
        gate: Gate::new(politeness(&link, &clock, seed), rules, clock.clone()),
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
    match door {
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
        DoorKind::Serve => {
            let inbox = sim.inbox.clone();
            let instance = instance(&inbox.queue);
            let finish =
                OutboxWithSettlement { instance: instance.clone(), link: link.clone(), inbox };
            let station = Station { source: instance.clone(), finish: Arc::new(finish) };
            let message_rules = message_rules(&rules);
            let rules = message_rules.gate_rules(rules);
            let door = retriever::messages(&station, message_rules, Arc::new(|_| {}));
            let ended = pipeline::run(door, runtime(rules), stop).await;
            instance.leave().await.and(ended)
        }
    }
}

/// Without a limit on CPU time, which differs between runs.
fn reading() -> ReadLimits {
    ReadLimits { max_time: Duration::MAX, ..ReadLimits::default() }
}

fn fetch_rules() -> FetchRules {
    FetchRules {
        format: OutputFormat::Html,
        links: false,
        reading: reading(),
        max_redirects: 5,
        patience: Patience { since: BEGINS_AT, lasts: PATIENCE },
    }
}

fn message_rules(gate: &GateRules) -> MessageRules {
    MessageRules {
        max_attempts: RetryRule::RETRIEVER.server_error_attempts,
        max_redirects: 5,
        reading: reading(),
        bodies: BodyRules { max_bytes: 0, keep: Duration::ZERO, quota_bytes: 0 },
        default_timeouts: Timeouts::default(),
        timeouts: HashMap::new(),
        pace: gate.pace.groups.clone(),
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
