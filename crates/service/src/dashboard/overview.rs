//! The overview: throughput, outcomes, durations and sites in trouble.

use std::time::Duration;

use askama::Template;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::time::Time;
use fetchwell_telemetry::metrics::MetricsSnapshot;

use super::access::Visitor;
use super::charts::{self, Bar};
use super::fault::PageResult;
use super::history::{Came, Look};
use super::layout::{self, Section};
use super::sites::trouble::{self, Trouble};
use super::words;

/// The period over which the current figures are computed.
const LATELY: Duration = Duration::from_secs(60);
/// Samples per minute, and so per row of the table.
const LOOKS_A_ROW: usize = 12;

/// The period that charts cover. It is short for a new process, whose chart would otherwise be almost empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    minutes: usize,
    /// The number of samples per column of the outcomes chart, and per point of the durations chart.
    looks_a_column: usize,
    looks_a_point: usize,
}

impl Scale {
    const ALL: [Scale; 3] = [
        Scale { minutes: 2, looks_a_column: 1, looks_a_point: 1 },
        Scale { minutes: 5, looks_a_column: 1, looks_a_point: 2 },
        Scale { minutes: 15, looks_a_column: 2, looks_a_point: 6 },
    ];

    fn of(looks: &[Look]) -> Scale {
        let all = looks.len().saturating_sub(1);
        let [.., last] = Scale::ALL;
        Scale::ALL.into_iter().find(|scale| scale.minutes * LOOKS_A_ROW >= all).unwrap_or(last)
    }

    fn reaches(self) -> Duration {
        Duration::from_secs(60 * self.minutes as u64)
    }

    /// Pairs of samples that are `apart` samples apart, aligned to the last one; `None` before the first sample.
    fn stretches(self, looks: &[Look], apart: usize) -> Vec<Option<(&Look, &Look)>> {
        let stretch = |back: usize| {
            let later = looks.len().checked_sub(1 + back * apart)?;
            let earlier = later.checked_sub(apart)?;
            Some((looks.get(earlier)?, looks.get(later)?))
        };
        (0..self.minutes * LOOKS_A_ROW / apart).rev().map(stretch).collect()
    }
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    /// Whether nothing was fetched so far, and nothing waits.
    is_new: bool,
    has_messages: bool,
    now: Now,
    ledger: Option<Ledger>,
    outcomes: Outcomes,
    durations: Durations,
    minutes: Vec<Minute>,
    trouble: Vec<Trouble>,
    scale: Scale,
    began: String,
    ends: String,
}

/// The figures at the top.
struct Now {
    fetches_per_second: f64,
    p50: Option<Duration>,
    p95: Option<Duration>,
    oldest: Option<Duration>,
    politeness_p95: Option<Duration>,
    worker_p95: Option<Duration>,
    leases: usize,
    in_flight: usize,
    sites: Option<usize>,
    breakers_open: usize,
    breaker_longest: Duration,
    rate_breaches: u64,
    store_faults: u64,
    up_for: Duration,
}

struct Outcomes {
    bars: Vec<Bar>,
    top: f64,
}

struct Durations {
    p50: Vec<String>,
    p95: Vec<String>,
    top: f64,
}

/// A row of the table with the data of the charts.
struct Minute {
    until: Time,
    came: [u64; Came::ALL.len()],
    p50: Option<Duration>,
    p95: Option<Duration>,
}

pub(super) async fn page(visitor: Visitor) -> PageResult {
    let subject = &visitor.dashboard.subject;
    let snapshot = subject.process_metrics.snapshot();
    let mut looks = subject.history.looks();
    looks.push(Look::of(&snapshot, subject.clock.wall()));
    let end = looks.last().map_or(Time::EPOCH, |look| look.at);
    let scale = Scale::of(&looks);
    let ledger = sum_of_ledgers(&snapshot);
    let is_new = ledger.is_none_or(|ledger| ledger.accepted == 0)
        && looks.last().is_none_or(|look| look.requests() == 0);
    let content = Overview {
        is_new,
        has_messages: subject.oversight.is_some(),
        now: Now::of(&snapshot, &looks),
        ledger,
        outcomes: Outcomes::of(&looks, scale),
        durations: Durations::of(&looks, scale),
        minutes: minutes(&looks, scale),
        trouble: trouble::of(subject).await?,
        scale,
        began: words::time_of_day(end - scale.reaches()),
        ends: words::time_of_day(end),
    };
    layout::page(&visitor, (Section::Overview, "Overview"), &content).await
}

impl Now {
    fn of(snapshot: &MetricsSnapshot, looks: &[Look]) -> Now {
        let last = looks.last().cloned().unwrap_or_default();
        let from = looks.iter().find(|look| last.at.since(look.at) <= LATELY).cloned();
        let from = from.unwrap_or_default();
        let seconds = last.at.since(from.at).as_secs_f64();
        let requests = last.requests().saturating_sub(from.requests()) as f64;
        let took = last.request.since(&from.request);
        let doors = || snapshot.doors.values();
        Now {
            fetches_per_second: if seconds > 0.0 { requests / seconds } else { 0.0 },
            p50: took.quantile(0.5),
            p95: took.quantile(0.95),
            oldest: doors().filter_map(|door| door.window.oldest).max(),
            politeness_p95: last.politeness_wait.since(&from.politeness_wait).quantile(0.95),
            worker_p95: last.worker_wait.since(&from.worker_wait).quantile(0.95),
            leases: doors().map(|door| door.window.leases).sum(),
            in_flight: doors().map(|door| door.window.in_flight).sum(),
            sites: sites_held(snapshot),
            breakers_open: doors().map(|door| door.circuits.count).sum(),
            breaker_longest: doors().map(|door| door.circuits.longest).max().unwrap_or_default(),
            rate_breaches: doors().map(|door| door.rate_breaches).sum(),
            store_faults: doors().flat_map(|door| door.store_faults.values()).sum(),
            up_for: snapshot.up_for,
        }
    }
}

/// The number of sites that jobs wait for. `None` if two doors have such sites, since some may be the same.
fn sites_held(snapshot: &MetricsSnapshot) -> Option<usize> {
    let mut sites =
        snapshot.doors.values().map(|door| door.window.sites).filter(|sites| *sites > 0);
    let first = sites.next().unwrap_or_default();
    sites.next().is_none().then_some(first)
}

/// The sum of the last known ledgers of all doors.
pub(super) fn sum_of_ledgers(snapshot: &MetricsSnapshot) -> Option<Ledger> {
    let ledgers = snapshot.doors.values().filter_map(|door| door.ledger);
    ledgers.reduce(|a, b| Ledger {
        accepted: a.accepted + b.accepted,
        done: a.done + b.done,
        skipped: a.skipped + b.skipped,
        queued: a.queued + b.queued,
        in_flight: a.in_flight + b.in_flight,
        delayed: a.delayed + b.delayed,
        dead: a.dead + b.dead,
    })
}

impl Outcomes {
    fn of(looks: &[Look], scale: Scale) -> Outcomes {
        let columns: Vec<[f64; Came::ALL.len()]> = scale
            .stretches(looks, scale.looks_a_column)
            .into_iter()
            .map(|stretch| {
                let Some((earlier, later)) = stretch else { return Default::default() };
                let seconds = later.at.since(earlier.at).as_secs_f64().max(0.1);
                later.came_since(earlier).map(|count| count as f64 / seconds)
            })
            .collect();
        let most = columns.iter().map(|parts| parts.iter().sum()).fold(0.0, f64::max);
        let top = charts::round_up(most);
        Outcomes { bars: charts::stacked(&columns, top), top }
    }

    fn class(&self, part: &usize) -> &'static str {
        Came::ALL.get(*part).map_or("", |(_, class, _)| *class)
    }
}

impl Durations {
    fn of(looks: &[Look], scale: Scale) -> Durations {
        let quantile = |share: f64| -> Vec<Option<f64>> {
            let of = |(earlier, later): (&Look, &Look)| {
                Some(later.request.since(&earlier.request).quantile(share)?.as_secs_f64())
            };
            scale
                .stretches(looks, scale.looks_a_point)
                .into_iter()
                .map(|stretch| stretch.and_then(of))
                .collect()
        };
        let p50 = quantile(0.5);
        let p95 = quantile(0.95);
        let most = p50.iter().chain(&p95).flatten().copied().fold(0.0, f64::max);
        let top = charts::round_up(most);
        Durations { p50: charts::line(&p50, top), p95: charts::line(&p95, top), top }
    }

    /// The axis label at this share of the height.
    fn label(&self, share: f64) -> String {
        words::span(Duration::from_secs_f64(self.top * share))
    }
}

/// The rows of the table, latest first.
fn minutes(looks: &[Look], scale: Scale) -> Vec<Minute> {
    let minute = |(earlier, later): (&Look, &Look)| {
        let took = later.request.since(&earlier.request);
        let p50 = took.quantile(0.5);
        let p95 = took.quantile(0.95);
        Minute { until: later.at, came: later.came_since(earlier), p50, p95 }
    };
    scale.stretches(looks, LOOKS_A_ROW).into_iter().rev().flatten().map(minute).collect()
}

/// A duration, or a dash.
fn known(span: &Option<Duration>) -> String {
    span.map_or("–".to_owned(), words::span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(second: i64, answered: u64) -> Look {
        let mut look = Look { at: Time::from_secs(second), ..Look::default() };
        look.came[0] = answered;
        look
    }

    #[test]
    fn stretches_are_counted_from_the_last_look() {
        let looks: Vec<Look> = (0..6).map(|n| look(5 * n, 10 * n as u64)).collect();
        let scale = Scale::of(&looks);
        let pairs = scale.stretches(&looks, 2);
        let found: Vec<_> = pairs.iter().flatten().map(|(a, b)| (a.at, b.at)).collect();
        let at = |n| Time::from_secs(n);
        assert_eq!(found, [(at(5), at(15)), (at(15), at(25))]);
        assert_eq!(pairs.len(), 12, "two minutes of them");
    }

    #[test]
    fn charts_reach_back_as_far_as_there_is_something() {
        for (looks, minutes) in [(1, 2), (25, 2), (26, 5), (61, 5), (62, 15), (181, 15), (182, 15)]
        {
            let looks: Vec<Look> = (0..looks).map(|n| look(5 * n, 0)).collect();
            assert_eq!(Scale::of(&looks).minutes, minutes, "{}", looks.len());
        }
    }

    #[test]
    fn a_column_is_a_rate() {
        let looks: Vec<Look> = (0..3).map(|n| look(5 * n, 10 * n as u64)).collect();
        let outcomes = Outcomes::of(&looks, Scale::of(&looks));
        assert!((outcomes.top - 2.0).abs() < 1e-9, "10 in 5 s");
        assert_eq!((outcomes.bars.len(), outcomes.class(&outcomes.bars[0].part)), (2, "done"));
    }
}
