//! Sites: the state of each, the source of its pace, and orders for it.

mod list;
mod one;
mod ordering;
pub(super) mod trouble;

use std::time::Duration;

use super::words;
use crate::sites::SiteRow;

pub(super) use list::page;
pub(super) use one::page as site;
pub(super) use ordering::order;

/// The label and the color class for the state of a site.
fn standing(row: &SiteRow) -> (&'static str, &'static str) {
    match (row.held_up_by, row.breaker.state) {
        (Some("paused"), _) => ("paused", "warn"),
        (_, "half_open") => ("being probed", "warn"),
        (Some("breaker"), _) => ("down", "bad"),
        (Some("penalty"), _) => ("resting", "warn"),
        (Some("robots"), _) => ("waiting for robots.txt", "warn"),
        (Some(_), _) => ("paced", "good"),
        (None, _) => ("free", ""),
    }
}

/// `every 2.0 s`
fn interval(seconds: &f64) -> String {
    if *seconds == 0.0 {
        return "no pacing".to_owned();
    }
    format!("every {}", in_seconds(seconds))
}

fn in_seconds(seconds: &f64) -> String {
    words::span(Duration::try_from_secs_f64(*seconds).unwrap_or_default())
}

pub(super) fn maybe_seconds(seconds: &Option<f64>) -> String {
    seconds.as_ref().map_or("–".to_owned(), in_seconds)
}

/// When an unreachable robots.txt is requested again.
fn next_try(seconds: &Option<f64>) -> String {
    match seconds {
        Some(seconds) if *seconds > 0.0 => format!("next try in {}", in_seconds(seconds)),
        _ => "read before the next page".to_owned(),
    }
}

/// The age of the most recently read robots.txt of a site.
fn robots_age(row: &SiteRow) -> String {
    let ages = row.robots.iter().map(|robots| robots.age_seconds);
    ages.reduce(f64::min).as_ref().map_or("–".to_owned(), in_seconds)
}
