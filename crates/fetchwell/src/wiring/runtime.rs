//! Builds the parts of the engine from the settings.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::descriptors::{Connections, Descriptors};
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules, RobotsRules};
use fetchwell_engine::http::{self, DnsSettings, HttpLimits, HttpSettings, OwnListeners};
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::pipeline::{EventSink, RunLimits, Runtime};
use fetchwell_engine::ports::sites::Sites;
use fetchwell_engine::seed::random_seed;
use fetchwell_engine::store_health::StoreHealth;
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::product_token;
use fetchwell_policy::url::Site;
use fetchwell_settings::{Settings, Values};
use fetchwell_telemetry::metrics::{DoorName, Metrics};
use fetchwell_telemetry::traces::Tracer;

use crate::console::exit::Exit;
use crate::wiring::{open_politeness, store_clock};

/// The number of lookups, over about 5 s, before a name counts as nonexistent.
const ABSENCE_LOOKUPS: u32 = 3;

/// The parts that every door shares. So do clones.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) politeness: Arc<dyn Sites>,
    pub(crate) client: Arc<http::Client>,
    /// The addresses that this process listens on: the client never connects to them.
    pub(crate) own_listeners: OwnListeners,
    /// The metrics of this process.
    pub(crate) process_metrics: Arc<Metrics>,
    /// Which store calls fail.
    pub(crate) health: Arc<StoreHealth>,
    /// Traces events, if an OTLP endpoint is set.
    tracer: Option<Arc<Tracer>>,
}

/// What outlives a single cycle: the metrics, and the address that serves them.
#[derive(Clone, Default)]
pub(crate) struct MetricsTarget {
    pub(crate) process_metrics: Arc<Metrics>,
    pub(crate) at: Option<SocketAddr>,
}

impl Parts {
    /// Opens the stores and creates the client.
    pub(crate) async fn open(settings: &Settings) -> Result<Parts, Exit> {
        Parts::in_memory(settings)?.on_stores(settings).await
    }

    /// The same for a door whose URLs fail when their host does not exist: a missing name is looked up several times.
    pub(crate) async fn open_for_fetch(settings: &Settings) -> Result<Parts, Exit> {
        Parts::new(settings, ABSENCE_LOOKUPS)?.on_stores(settings).await
    }

    async fn on_stores(self, settings: &Settings) -> Result<Parts, Exit> {
        let politeness = open_politeness(settings).await?;
        Ok(Parts { politeness, clock: store_clock(settings).await?, ..self })
    }

    /// The same for one of several cycles, which share their metrics.
    pub(crate) async fn open_for_cycle(
        settings: &Settings,
        told: &MetricsTarget,
    ) -> Result<Parts, Exit> {
        let parts = Parts::open(settings).await?;
        if let Some(address) = told.at {
            parts.own_listeners.register(address);
        }
        Ok(Parts { process_metrics: told.process_metrics.clone(), ..parts })
    }

    /// The same without shared state: no store is opened.
    pub(crate) fn in_memory(settings: &Settings) -> Result<Parts, Exit> {
        Parts::new(settings, 1)
    }

    fn new(settings: &Settings, absence_lookups: u32) -> Result<Parts, Exit> {
        let clock = Clock::since_boot(Clock::booted_at());
        let own_listeners = OwnListeners::default();
        let http = http_settings(settings, absence_lookups, own_listeners.clone());
        Ok(Parts {
            politeness: own_politeness(settings, &clock),
            clock,
            client: Arc::new(http::Client::new(http)?),
            own_listeners,
            process_metrics: Arc::default(),
            health: Arc::default(),
            tracer: Tracer::from_environment()?,
        })
    }

    /// The same with politeness in memory, not shared with other processes.
    pub(crate) fn with_own_politeness(mut self, settings: &Settings) -> Parts {
        self.politeness = own_politeness(settings, &self.clock);
        self
    }

    /// The same with room for response bodies that may be larger than a page, within the byte budget.
    pub(crate) fn with_room_for_bodies(mut self, settings: &Settings, bytes: u64) -> Parts {
        let bytes = bytes.max(settings.values.http_max_body);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.client = Arc::new(self.client.with_max_body(bytes));
        self
    }

    /// The same with other metrics.
    pub(crate) fn counted_by(mut self, process_metrics: &Arc<Metrics>) -> Parts {
        self.process_metrics = process_metrics.clone();
        self
    }

    /// A gate with the rules of these settings.
    pub(crate) fn gate(&self, settings: &Settings, give_up_after: Option<Duration>) -> Gate {
        self.gate_by(gate_rules(settings, give_up_after))
    }

    /// A gate with these rules.
    pub(crate) fn gate_by(&self, rules: GateRules) -> Gate {
        Gate::new(self.politeness.clone(), rules, self.clock.clone())
    }

    /// The runtime for the pipeline of a door.
    pub(crate) fn runtime(
        &self,
        settings: &Settings,
        gate: Gate,
        door: DoorName,
        event_sink: EventSink,
    ) -> Runtime {
        let values = &settings.values;
        let limits = RunLimits {
            max_in_flight: fitting_in_flight(values.max_in_flight),
            window: values.window,
            shutdown_grace: values.shutdown_grace,
            heartbeat: values.lease_heartbeat,
            ..RunLimits::default()
        };
        Runtime {
            gate: gate.recording(self.health.beside()),
            web: self.client.clone(),
            limits,
            clock: self.clock.clone(),
            seed: random_seed(),
            event_sink: self.event_sink(door, event_sink),
        }
    }

    /// The event handlers of a door's pipeline: metrics, then traces, then its own.
    fn event_sink(&self, door: DoorName, own: EventSink) -> EventSink {
        let traced = match &self.tracer {
            Some(tracer) => tracer.listening(door, own),
            None => own,
        };
        self.process_metrics.listening(door, traced)
    }
}

fn own_politeness(settings: &Settings, clock: &Clock) -> Arc<dyn Sites> {
    Arc::new(MemoryPoliteness::new(clock.clone(), breaker_rule(settings), random_seed()))
}

/// The number of concurrent requests that the file descriptors allow. Logs if this is fewer than wanted.
pub(crate) fn fitting_in_flight(wanted: usize) -> usize {
    let descriptors = Descriptors::of_this_process();
    let idle = HttpLimits::default().max_idle_connections;
    let wanted = Connections { in_flight: wanted, idle };
    let fits = descriptors.fit(wanted);
    descriptors.say_what_fits(wanted, fits);
    fits.in_flight
}

/// A gate without a store.
pub(crate) fn offline_gate(settings: &Settings) -> Gate {
    let clock = Clock::system();
    let nothing = own_politeness(settings, &clock);
    Gate::new(nothing, gate_rules(settings, None), clock)
}

pub(crate) fn gate_rules(settings: &Settings, give_up_after: Option<Duration>) -> GateRules {
    let robots = robots_rules(settings);
    let pace = pace_rules(settings);
    GateRules { pace, robots, give_up_after, site_attempts: None, missing_hosts_fail: false }
}

/// The limits for reading a page, which several doors share.
pub(crate) fn read_limits(values: &Values) -> ReadLimits {
    let max_text_bytes = usize::try_from(values.extract_max_text).unwrap_or(usize::MAX);
    ReadLimits { max_text_bytes, max_time: values.extract_max_time, with_noscript: true }
}

pub(crate) fn user_agent(settings: &Settings) -> String {
    let values = &settings.values;
    values
        .user_agent
        .clone()
        .unwrap_or_else(|| format!("Fetchwell/{} (+{})", env!("CARGO_PKG_VERSION"), values.contact))
}

pub(crate) fn breaker_rule(settings: &Settings) -> BreakerRule {
    let values = &settings.values;
    BreakerRule {
        failure_threshold: values.breaker_failure_threshold,
        initial_backoff: values.breaker_initial_backoff,
        max_backoff: values.breaker_max_backoff,
        backoff_multiplier: values.breaker_backoff_multiplier,
        jitter_share: values.breaker_jitter,
        // A probe that takes longer than any request may is lost.
        probe_ttl: values.http_connect_timeout + values.http_request_timeout,
    }
}

fn pace_rules(settings: &Settings) -> PaceRules {
    let interval = |rate: f64| Rate::per_second(rate, 1).interval;
    let sites = settings
        .site_rates
        .iter()
        .filter_map(|(site, rate)| Some((Site::parse(site).ok()?, interval(*rate))))
        .collect();
    PaceRules {
        default_interval: interval(settings.values.rate),
        sites,
        concurrency: HashMap::new(),
        groups: GroupPace::default(),
    }
}

fn robots_rules(settings: &Settings) -> RobotsRules {
    let values = &settings.values;
    RobotsRules {
        product_token: product_token(&user_agent(settings)).to_owned(),
        when_unreachable: values.robots_unreachable,
        fresh_for: values.robots_cache_ttl,
        stale_for: values.robots_stale_ttl,
        max_crawl_delay: values.robots_max_crawl_delay,
        pages_fail_with_it: false,
    }
}

fn http_settings(
    settings: &Settings,
    absence_lookups: u32,
    own_listeners: OwnListeners,
) -> HttpSettings {
    let values = &settings.values;
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let idle = HttpLimits::default().max_idle_connections;
    let connections = Connections { in_flight: values.max_in_flight, idle };
    let fits = Descriptors::of_this_process().fit(connections);
    HttpSettings {
        user_agent: user_agent(settings),
        limits: HttpLimits {
            connect_timeout: values.http_connect_timeout,
            request_timeout: values.http_request_timeout,
            idle_read_timeout: values.http_idle_read_timeout,
            least_bytes_per_second: bytes(values.http_least_rate),
            max_body_bytes: bytes(values.http_max_body),
            max_ratio: usize::try_from(values.http_max_ratio).unwrap_or(usize::MAX),
            max_header_bytes: bytes(values.http_max_headers),
            max_frames: usize::try_from(values.http_max_frames).unwrap_or(usize::MAX),
            body_budget_bytes: bytes(values.http_body_budget),
            max_idle_connections: fits.idle,
        },
        guard: address_guard(settings),
        resolve: values.resolve.clone(),
        dns: DnsSettings {
            servers: values.dns_servers.clone(),
            timeout: values.dns_timeout,
            absence_lookups,
        },
        own_listeners,
        private_only: private_only(settings),
        extra_ca_file: values.http_extra_ca_file.clone(),
    }
}

pub(crate) fn address_guard(settings: &Settings) -> AddressGuard {
    AddressGuard::new(settings.values.allow_private.clone())
}

/// Sites without pacing must have private addresses, unless the user claims to own them.
fn private_only(settings: &Settings) -> Arc<dyn Fn(&Site) -> bool + Send + Sync> {
    if settings.values.i_own_these_sites {
        return Arc::new(|_| false);
    }
    let is_unpaced = |rate: f64| rate == 0.0;
    let by_default = is_unpaced(settings.values.rate);
    let sites = settings.site_rates.iter();
    let unpaced: HashMap<Site, bool> = sites
        .filter_map(|(site, rate)| Some((Site::parse(site).ok()?, is_unpaced(*rate))))
        .collect();
    Arc::new(move |site| unpaced.get(site).copied().unwrap_or(by_default))
}
