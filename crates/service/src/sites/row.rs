//! The state of a site as operators see it, for commands, the API and the dashboard.

use std::time::Duration;

use fetchwell_engine::gate::{BY_ORDER, CRAWL_DELAY, GateRules};
use fetchwell_engine::ports::politeness::{RobotsRecord, Unreachable};
use fetchwell_engine::ports::sites::KnownSite;
use fetchwell_policy::breaker::State;
use fetchwell_policy::orders::OrderStamp;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::Robots;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Origin;
use serde::Serialize;
use utoipa::ToSchema;

/// The state of a site, from the store and the settings of this process. Times are in seconds from now, in the future
/// or in the past.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Site)]
pub struct SiteRow {
    /// The host, with its port unless that is 80 or 443.
    pub site: String,
    /// What the next page waits for: `paused`, `breaker`, `penalty`, `robots` (its robots.txt cannot be
    /// read) or `pace`.
    pub held_up_by: Option<&'static str>,
    /// Its pace, and the source of that pace.
    pub pace: PaceRow,
    /// Seconds until the next page can be requested; null while the site is paused.
    pub next_slot_in_seconds: Option<f64>,
    /// Seconds for which the site still asks us to wait (429, or 503 with Retry-After).
    pub rests_for_seconds: Option<f64>,
    /// Its breaker.
    pub breaker: BreakerRow,
    /// Responses with status 429 in the last hour.
    pub limited_last_hour: u32,
    /// Failures in the last hour: 5xx, failed connections.
    pub failed_last_hour: u32,
    /// Seconds since the last request.
    pub last_request_seconds_ago: Option<f64>,
    /// Seconds since it last served a page after a failure.
    pub last_served_seconds_ago: Option<f64>,
    /// Its robots.txt, one per origin.
    pub robots: Vec<RobotsRow>,
    /// The order that paused it; null unless it is paused.
    pub paused: Option<OrderRow>,
    /// How many URLs wait for it in the store; counting stops at a limit.
    pub waiting: u64,
}

/// The pace of a site.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = SitePace)]
pub struct PaceRow {
    /// Seconds between two requests; 0 means no pacing.
    pub interval_seconds: f64,
    /// `operator`, `site setting`, `Crawl-delay`, `concurrency` or `default rate`.
    pub source: &'static str,
    /// Details of the source: the line of robots.txt, or the operator.
    pub detail: Option<String>,
    /// The override by an operator, even if a Crawl-delay is longer.
    pub ordered: Option<OrderRow>,
    /// The interval of that override.
    pub ordered_interval_seconds: Option<f64>,
}

/// The breaker of a site.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = SiteBreaker)]
pub struct BreakerRow {
    /// `closed`, `open` or `half_open`.
    pub state: &'static str,
    /// Consecutive failures.
    pub consecutive_failures: u32,
    /// Seconds since the site began to fail.
    pub failing_for_seconds: Option<f64>,
    /// Seconds until the next probe.
    pub next_probe_in_seconds: Option<f64>,
}

/// A cached robots.txt.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = SiteRobots)]
pub struct RobotsRow {
    /// Its origin.
    pub origin: String,
    /// The HTTP status of the last response.
    pub status: Option<u16>,
    /// Seconds since it was read, by the clock of this process.
    pub age_seconds: f64,
    /// Why it is unreachable.
    pub unreachable: Option<String>,
    /// Seconds until an unreachable file is requested again; 0 means before the next page.
    pub next_try_in_seconds: Option<f64>,
    /// Its Crawl-delay.
    pub crawl_delay_seconds: Option<f64>,
    /// The line of that Crawl-delay.
    pub crawl_delay_line: Option<u32>,
}

/// An order of an operator that is in effect.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = SiteOrder)]
pub struct OrderRow {
    /// The operator who gave it.
    pub by: String,
    /// Seconds for which it has been in effect.
    pub for_seconds: f64,
}

impl SiteRow {
    /// `store_now` is the time of the store, `now` that of this process.
    pub fn of(
        known: &KnownSite,
        waiting: u64,
        rules: &GateRules,
        (store_now, now): (Time, Time),
    ) -> SiteRow {
        let KnownSite { site, state, robots } = known;
        let asked: Vec<Asked<'_>> =
            robots.iter().map(|(origin, record)| Asked::of(origin, record, rules)).collect();
        let longest = asked.iter().max_by_key(|asked| asked.robots.crawl_delay());
        let delay = longest.and_then(|asked| asked.robots.crawl_delay());
        let (rate, source) = rules.rate(site, delay);
        let pace = pace_of(state, rules.ordered(state, (rate, source)), longest, store_now);
        let ahead = |at: Time| Some(seconds(at.since(store_now))).filter(|left| *left > 0.0);
        let ago = |at: Time| (at > Time::EPOCH).then(|| seconds(store_now.since(at)));
        let records = robots.iter().map(|(_, record)| record);
        let outlook = rules.outlook(state, rate, records, (store_now, now));
        SiteRow {
            site: site.to_string(),
            held_up_by: outlook.held_up_by,
            pace,
            next_slot_in_seconds: outlook.next_slot_in.map(seconds),
            rests_for_seconds: ahead(state.penalty_until),
            breaker: breaker_of(state, store_now),
            limited_last_hour: state.limited.in_the_last_hour(store_now),
            failed_last_hour: state.failed.in_the_last_hour(store_now),
            last_request_seconds_ago: ago(state.pace.last_head()),
            last_served_seconds_ago: state.last_served.and_then(ago),
            robots: asked.iter().map(|asked| asked.row(state, now)).collect(),
            paused: state.orders.paused.as_ref().map(|given| order_of(given, store_now)),
            waiting,
        }
    }
}

/// A parsed robots.txt.
struct Asked<'a> {
    origin: &'a Origin,
    record: &'a RobotsRecord,
    robots: Robots,
}

impl<'a> Asked<'a> {
    fn of(origin: &'a Origin, record: &'a RobotsRecord, rules: &GateRules) -> Asked<'a> {
        let body = record.body.as_deref().unwrap_or_default();
        Asked { origin, record, robots: Robots::parse(body, &rules.robots.product_token) }
    }

    fn row(&self, state: &SiteState, now: Time) -> RobotsRow {
        let next_try = |gone: &Unreachable| match gone.comes_first(state) {
            true => 0.0,
            false => seconds(gone.retry_at.since(now)),
        };
        RobotsRow {
            origin: self.origin.to_string(),
            status: self.record.status,
            age_seconds: seconds(now.since(self.record.fetched_at)),
            unreachable: self.record.unreachable.as_ref().map(|gone| gone.reason.clone()),
            next_try_in_seconds: self.record.unreachable.as_ref().map(next_try),
            crawl_delay_seconds: self.robots.crawl_delay().map(seconds),
            crawl_delay_line: self.robots.crawl_delay_line(),
        }
    }
}

fn pace_of(
    state: &SiteState,
    (rate, source): (Rate, &'static str),
    longest: Option<&Asked<'_>>,
    now: Time,
) -> PaceRow {
    let ordered = state.orders.interval.as_ref();
    let detail = match source {
        CRAWL_DELAY => longest.and_then(|asked| {
            let line = asked.robots.crawl_delay_line()?;
            Some(format!("line {line} of {}", asked.origin.robots_url()))
        }),
        BY_ORDER => ordered.map(|ordered| format!("by {}", ordered.given.by)),
        _ => None,
    };
    PaceRow {
        interval_seconds: seconds(rate.interval),
        source,
        detail,
        ordered: ordered.map(|ordered| order_of(&ordered.given, now)),
        ordered_interval_seconds: ordered.map(|ordered| seconds(ordered.interval)),
    }
}

fn breaker_of(state: &SiteState, now: Time) -> BreakerRow {
    let breaker = &state.breaker;
    let (word, probe_at) = match breaker.state {
        State::Closed => ("closed", None),
        State::Open { probe_at, .. } => ("open", Some(probe_at)),
        State::HalfOpen { .. } => ("half_open", None),
    };
    BreakerRow {
        state: word,
        consecutive_failures: breaker.consecutive_failures,
        failing_for_seconds: breaker.failing_since.map(|since| seconds(now.since(since))),
        next_probe_in_seconds: probe_at.map(|at| seconds(at.since(now))),
    }
}

fn order_of(given: &OrderStamp, now: Time) -> OrderRow {
    OrderRow { by: given.by.clone(), for_seconds: seconds(now.since(given.at)) }
}

fn seconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000.0).round() / 1_000.0
}
