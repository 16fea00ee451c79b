//! `fetchwell explain`: shows what would happen to a URL, and why. It fetches robots.txt at most, never a page.

pub(crate) mod args;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::gate::{Gate, RobotsView};
use fetchwell_engine::internal_fetch::{RobotsFetch, RobotsStep};
use fetchwell_engine::memory::MemoryQueue;
use fetchwell_engine::pipeline::{self, Door};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settlement, Sink};
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::politeness::RobotsRecord;
use fetchwell_engine::web::Outcome;
use fetchwell_policy::breaker::State;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::robots::{Robots, product_token};
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{UrlFault, WebUrl};
use fetchwell_service::sites::OrderRow;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use serde::Serialize;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::commands::explain::args::ExplainArgs;
use crate::commands::fetch::with_own_defaults;
use crate::console::exit::Exit;
use crate::console::output::{Running, print_either};
use crate::console::signals::stop_on_signal;
use crate::console::terminal::printable;
use crate::console::url_lists::assume_https;
use crate::wiring::{Parts, offline_gate, user_agent};

/// The explanation, with the fields of the contract.
#[derive(Debug, Serialize)]
struct Explanation {
    url: String,
    site: String,
    allowed: bool,
    robots: RobotsPart,
    pace: PacePart,
    breaker: BreakerPart,
    /// Set if an operator has paused the site.
    paused: Option<OrderRow>,
    /// What the next page of the site waits for, as `sites show` names it.
    held_up_by: Option<&'static str>,
    /// `None` while the site is paused.
    next_slot_in_seconds: Option<f64>,
    addresses: Vec<String>,
    refused_because: Option<String>,
}

#[derive(Debug, Serialize)]
struct RobotsPart {
    /// The status of the last response for robots.txt.
    status: Option<u16>,
    /// The meaning of that status.
    state: String,
    line: Option<u32>,
    rule: Option<String>,
    crawl_delay_seconds: Option<f64>,
    age_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PacePart {
    interval_seconds: f64,
    source: &'static str,
}

#[derive(Debug, Serialize)]
struct BreakerPart {
    state: &'static str,
    next_probe_in_seconds: Option<f64>,
}

pub(crate) fn run<'a>(settings: &'a Settings, args: &'a ExplainArgs, json: bool) -> Running<'a> {
    Box::pin(async move {
        let given = assume_https(&args.url);
        let url = match read(&given)? {
            Ok(url) => url,
            Err(fault) => {
                let text = format!("{}\n  may be fetched  no: {fault}\n", printable(&given));
                print_either(json, refused(&given, &fault), text)?;
                return Ok(Exit::Refused);
            }
        };
        let settings = with_own_defaults(settings);
        let mut explanation = match &args.robots {
            Some(path) => offline(&settings, &url, path)?,
            None => {
                let parts = Parts::open(&settings).await?;
                let gate = parts.gate(&settings, None);
                online(&settings, &parts, &gate, &url, stop_on_signal()).await?
            }
        };
        explanation.url = given;
        print_either(json, &explanation, in_words(&explanation))?;
        let goes = explanation.allowed && explanation.refused_because.is_none();
        Ok(if goes { Exit::Ok } else { Exit::Refused })
    })
}

/// Explains a URL with the state of a running process, in the format of `--json`. `stop` cancels the request for
/// robots.txt.
pub(crate) async fn explain_url(
    settings: &Settings,
    parts: &Parts,
    gate: &Gate,
    url: &str,
    stop: CancellationToken,
) -> Result<Json, Exit> {
    let given = assume_https(url);
    let url = match read(&given)? {
        Ok(url) => url,
        Err(fault) => return Ok(refused(&given, &fault)),
    };
    let mut explanation = online(settings, parts, gate, &url, stop).await?;
    explanation.url = given;
    Ok(json!(explanation))
}

/// Reads a URL; the inner error if it is never fetched.
fn read(given: &str) -> Result<Result<WebUrl, UrlFault>, Exit> {
    match WebUrl::parse(given) {
        Ok(url) => Ok(Ok(url)),
        Err(
            fault
            @ (UrlFault::UnsupportedScheme(_) | UrlFault::UserInfo | UrlFault::BlockedPort(_)),
        ) => Ok(Err(fault)),
        Err(fault) => Err(Exit::Usage(format!("cannot explain {given}: {fault}"))),
    }
}

/// A URL that is never fetched: there is nothing to explain about its site.
fn refused(url: &str, fault: &UrlFault) -> Json {
    json!({
        "url": url, "site": null, "allowed": false, "robots": null, "pace": null, "breaker": null,
        "paused": null, "held_up_by": null, "next_slot_in_seconds": null, "addresses": [],
        "refused_because": fault.to_string(),
    })
}

/// Explains by the stored state and the site's current robots.txt.
async fn online(
    settings: &Settings,
    parts: &Parts,
    gate: &Gate,
    url: &WebUrl,
    stop: CancellationToken,
) -> Result<Explanation, Exit> {
    let (record, view) = learn(settings, parts, gate, url, stop).await?;
    let (state, store_now) = parts.politeness.look(&url.site()).await?;
    let site = (state.unwrap_or_default(), store_now);
    let now = parts.clock.now();
    let mut explanation = explain(url, gate, record.as_ref(), &view, site, now);
    match parts.client.addresses(url).await {
        Ok(found) => {
            explanation.addresses = found.iter().map(|at| at.ip().to_string()).collect();
        }
        Err(happened) => explanation.refused_because = Some(happened.to_string()),
    }
    Ok(explanation)
}

/// Explains by a local robots.txt: no request is made and no store is opened.
fn offline(settings: &Settings, url: &WebUrl, path: &Path) -> Result<Explanation, Exit> {
    let body = std::fs::read(path).map_err(|error| {
        Exit::Usage(format!("could not read the robots.txt {}: {error}", path.display()))
    })?;
    let robots = Robots::parse(&body, product_token(&user_agent(settings)));
    let robots = Arc::new(robots);
    let view = RobotsView::Known {
        robots,
        until: Time::FAR_FUTURE,
        unread_as_of: None,
        robots_forgotten: None,
    };
    let gate = offline_gate(settings);
    let site = (SiteState::default(), Time::EPOCH);
    Ok(explain(url, &gate, None, &view, site, Time::EPOCH))
}

/// What is known about the URL's robots.txt; it is fetched if needed.
async fn learn(
    settings: &Settings,
    parts: &Parts,
    gate: &Gate,
    url: &WebUrl,
    stop: CancellationToken,
) -> Result<(Option<RobotsRecord>, RobotsView), Exit> {
    let origin = url.origin();
    let known = parts.politeness.robots(&origin).await?;
    let state = parts.politeness.look(&url.site()).await?.0.unwrap_or_default();
    let known = known.filter(|record| !record.is_forgotten(state.orders.robots_forgotten));
    // No request goes to a site that is paused or down.
    if state.orders.paused.is_some() || state.breaker.blocked_until().is_some() {
        let view = gate.view(known.as_ref(), None);
        return Ok((known, view));
    }
    let view = gate.view(known.as_ref(), Some(&state));
    if !matches!(view, RobotsView::Fetch) || parts.client.addresses(url).await.is_err() {
        return Ok((known, view));
    }
    let mut robots_fetch = RobotsFetch::new(origin.clone(), known.clone());
    robots_fetch.note_site(state.health.recoveries, state.orders.robots_forgotten);
    // `None`: it could not be requested, so nothing new is known.
    let Some(record) = fetch_robots(settings, parts, robots_fetch, stop).await? else {
        return Ok((known, view));
    };
    parts.politeness.keep_robots(&origin, &record).await?;
    let view = gate.view(Some(&record), None);
    Ok((Some(record), view))
}

/// Fetches robots.txt through the engine's flow, in a slot of its site like every request.
async fn fetch_robots(
    settings: &Settings,
    parts: &Parts,
    robots_fetch: RobotsFetch,
    stop: CancellationToken,
) -> Result<Option<RobotsRecord>, Exit> {
    let origin = robots_fetch.origin.clone();
    let queue = MemoryQueue::new(parts.clock.clone(), Duration::from_secs(60), true);
    let url = origin.robots_url().as_str().to_owned();
    let job = Job {
        url,
        site: Some(origin.site()),
        lane: Lane::default(),
        payload: Vec::new(),
        deadline: None,
    };
    queue.enqueue(vec![NewJob::now(job)]);
    let instance = Arc::new(queue.instance());
    let learnt = Arc::new(parking_lot::Mutex::new(None));
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(move |_| Box::new(RobotsPlan(robots_fetch.clone()))),
        finish: Arc::new(SinkThenSettle { sink: Keep(learnt.clone()), source: instance }),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    // Do not wait for a site whose breaker is open.
    let gate = parts.gate(settings, Some(Duration::ZERO));
    let runtime = parts.runtime(settings, gate, DoorName::Errand, Arc::new(|_| {}));
    pipeline::run(door, runtime, stop).await?;
    Ok(learnt.lock().take())
}

struct RobotsPlan(RobotsFetch);

impl Plan<RobotsRecord> for RobotsPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<RobotsRecord> {
        let Some(outcome) = last else { return Step::Fetch(vec![self.0.request()]) };
        if matches!(outcome.happened, FetchOutcome::SiteStayedDown { .. }) {
            return Step::Finish(Vec::new(), Settlement::Skipped); // It was not requested.
        }
        match self.0.step(&outcome, moment.now) {
            RobotsStep::Fetch(request) => Step::Fetch(vec![request]),
            RobotsStep::Learnt(record) => Step::Finish(vec![record], Settlement::Done),
            RobotsStep::Refused(_) => Step::Finish(Vec::new(), Settlement::Skipped),
        }
    }
}

struct Keep(Arc<parking_lot::Mutex<Option<RobotsRecord>>>);

#[async_trait]
impl Sink<RobotsRecord> for Keep {
    async fn write(&self, records: &[&RobotsRecord]) -> Result<(), StoreError> {
        if let Some(record) = records.first() {
            *self.0.lock() = Some((*record).clone());
        }
        Ok(())
    }
}

fn explain(
    url: &WebUrl,
    gate: &Gate,
    record: Option<&RobotsRecord>,
    view: &RobotsView,
    (state, store_now): (SiteState, Time),
    now: Time,
) -> Explanation {
    let site = url.site();
    let robots = view.robots();
    let verdict = robots.map(|robots| robots.verdict(url.path_and_query()));
    let crawl_delay = robots.and_then(Robots::crawl_delay);
    let rules = &gate.rules;
    let (rate, source) = rules.ordered(&state, rules.rate(&site, crawl_delay));
    let outlook = rules.outlook(&state, rate, record, (store_now, now));
    let (breaker, probe_at) = match state.breaker.state {
        State::Closed => ("closed", None),
        State::Open { probe_at, .. } => ("open", Some(probe_at)),
        State::HalfOpen { .. } => ("half_open", None),
    };
    Explanation {
        url: url.as_str().to_owned(),
        site: site.to_string(),
        allowed: verdict.as_ref().is_some_and(|verdict| verdict.allowed),
        robots: RobotsPart {
            status: record.and_then(|record| record.status),
            state: state_of(record, view),
            line: verdict.as_ref().and_then(|verdict| verdict.line),
            rule: verdict.and_then(|verdict| verdict.rule),
            crawl_delay_seconds: crawl_delay.map(|delay| delay.as_secs_f64()),
            age_seconds: record
                .filter(|record| record.body.is_some())
                .map(|record| now.since(record.fetched_at).as_secs_f64()),
        },
        pace: PacePart { interval_seconds: rate.interval.as_secs_f64(), source },
        breaker: BreakerPart {
            state: breaker,
            next_probe_in_seconds: probe_at.map(|at| at.since(store_now).as_secs_f64()),
        },
        paused: state.orders.paused.as_ref().map(|given| OrderRow {
            by: given.by.clone(),
            for_seconds: store_now.since(given.at).as_secs_f64(),
        }),
        held_up_by: outlook.held_up_by,
        next_slot_in_seconds: outlook.next_slot_in.map(|wait| wait.as_secs_f64()),
        addresses: Vec::new(),
        refused_because: match view {
            RobotsView::Known { robots, .. } => gate.crawl_delay_refusal(robots),
            RobotsView::Refused(happened) => Some(happened.to_string()),
            RobotsView::Fetch | RobotsView::Blocked { .. } => {
                Some(unread_because(view, probe_at.map(|at| at.since(store_now)), now))
            }
        },
    }
}

/// Why a URL waits whose robots.txt has not been read.
fn unread_because(view: &RobotsView, probe_in: Option<Duration>, now: Time) -> String {
    match (probe_in, view) {
        (Some(wait), _) => format!(
            "the site is down, so the URL waits; the next probe is in {:.0} s, and robots.txt is read before the \
             first page",
            wait.as_secs_f64()
        ),
        (None, RobotsView::Blocked { until, .. }) => format!(
            "robots.txt is unreachable, so the URL waits; the next try is in {:.0} s",
            until.since(now).as_secs_f64()
        ),
        (None, _) => "robots.txt has not been read".to_owned(),
    }
}

fn state_of(record: Option<&RobotsRecord>, view: &RobotsView) -> String {
    match (record, view) {
        (Some(RobotsRecord { unreachable: Some(unreachable), body, .. }), _) => {
            let copy = if body.is_some() { "; using an older copy" } else { "" };
            format!("unreachable ({}){copy}", unreachable.reason)
        }
        (Some(RobotsRecord { status: Some(status @ 200..=299), .. }), _) => {
            format!("found ({status})")
        }
        (Some(RobotsRecord { status: Some(status), .. }), _) => {
            format!("absent ({status}), so everything is allowed")
        }
        (Some(_), _) => {
            "absent (its redirects cannot be followed), so everything is allowed".to_owned()
        }
        (None, RobotsView::Known { .. }) => "from the file given".to_owned(),
        (None, _) => "unknown".to_owned(),
    }
}

fn in_words(explanation: &Explanation) -> String {
    let Explanation { robots, pace, breaker, .. } = explanation;
    let mut text = format!("{}\n", printable(&explanation.url));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<14}  {value}\n"));
    let verdict = match (&explanation.refused_because, explanation.allowed) {
        (Some(why), _) => format!("no: {why}"),
        (None, true) => "yes".to_owned(),
        (None, false) => "no".to_owned(),
    };
    line("may be fetched", verdict);
    line("site", explanation.site.clone());
    let rule = match (robots.line, &robots.rule) {
        (Some(line), Some(rule)) => format!(", line {line}: {}", rule.escape_debug()),
        _ => String::new(),
    };
    let age = robots.age_seconds.map_or(String::new(), |age| format!(", {age:.0} s old"));
    line("robots.txt", format!("{}{rule}{age}", robots.state));
    let delay = robots.crawl_delay_seconds.map_or("none".into(), |delay| format!("{delay} s"));
    line("Crawl-delay", delay);
    line("pace", format!("one request every {} s ({})", pace.interval_seconds, pace.source));
    if let Some(OrderRow { by, for_seconds }) = &explanation.paused {
        line("paused", format!("by {}, {for_seconds:.0} s ago", by.escape_debug()));
    }
    let probe = breaker.next_probe_in_seconds;
    let probe = probe.map_or(String::new(), |probe| format!(", next probe in {probe:.0} s"));
    line("breaker", format!("{}{probe}", breaker.state));
    let because = match explanation.held_up_by {
        Some("breaker") => ", after a probe",
        Some("penalty") => ", the site asked us to wait",
        Some("robots") => ", when robots.txt is tried again",
        _ => "",
    };
    let slot = explanation.next_slot_in_seconds;
    line(
        "next slot",
        slot.map_or("none while it is paused".into(), |wait| format!("in {wait:.1} s{because}")),
    );
    let addresses = match explanation.addresses.as_slice() {
        [] => "not looked up".to_owned(),
        found => found.join(", "),
    };
    line("addresses", addresses);
    text
}
