//! Sites: how each stands, where its pace comes from, and orders to it.

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

/// How a site stands, in a word, and how that is coloured.
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

fn maybe_seconds(seconds: &Option<f64>) -> String {
    seconds.as_ref().map_or("–".to_owned(), in_seconds)
}

/// When a robots.txt that can't be reached is tried again.
fn next_try(seconds: &Option<f64>) -> String {
    match seconds {
        Some(seconds) if *seconds > 0.0 => format!("next try in {}", in_seconds(seconds)),
        _ => "read before the next page".to_owned(),
    }
}

/// How old the youngest knowledge of a site's robots.txt is.
fn robots_age(row: &SiteRow) -> String {
    let ages = row.robots.iter().map(|robots| robots.age_seconds);
    ages.reduce(f64::min).as_ref().map_or("–".to_owned(), in_seconds)
}
