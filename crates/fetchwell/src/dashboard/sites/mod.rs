//! Sites: how each stands, where its pace comes from, and orders to it.

mod list;
mod one;
mod ordering;
pub(super) mod trouble;

use std::time::Duration;

use askama::Template;
use fetchwell_engine::ports::StoreFault;
use fetchwell_engine::sites::{KnownSite, SiteRow};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::subject::Subject;
use super::words;
use crate::plant::gate_rules;

pub(super) use list::page;
pub(super) use one::page as site;
pub(super) use ordering::order;

/// URLs that are counted for a site; there may be more.
const MOST_WAITING: u64 = 10_000;

#[derive(Template)]
#[template(path = "absent_sites.html")]
struct Absent;

/// What is to be said of these sites.
async fn rows(
    subject: &Subject,
    known: &[KnownSite],
    store_now: Time,
) -> Result<Vec<SiteRow>, StoreFault> {
    let rules = gate_rules(&subject.settings, None);
    let names: Vec<Site> = known.iter().map(|known| known.site.clone()).collect();
    let waiting = match &subject.waiting {
        Some(queue) => queue.waiting(&names, MOST_WAITING).await?.into_iter().map(Some).collect(),
        None => vec![None; known.len()],
    };
    let now = (store_now, subject.clock.now());
    let row = |(known, waiting)| SiteRow::of(known, waiting, &rules, now);
    Ok(known.iter().zip(waiting).map(row).collect())
}

/// How a site stands, in a word, and how that is coloured.
fn standing(row: &SiteRow) -> (&'static str, &'static str) {
    match (row.held_up_by, row.breaker.state) {
        (Some("paused"), _) => ("paused", "warn"),
        (_, "half_open") => ("being probed", "warn"),
        (Some("breaker"), _) => ("down", "bad"),
        (Some("penalty"), _) => ("resting", "warn"),
        (Some(_), _) => ("at its pace", "good"),
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

fn waiting(count: &Option<u64>) -> String {
    match count {
        None => "–".to_owned(),
        Some(count) if *count >= MOST_WAITING => format!("{}+", words::count::<u64>(count)),
        Some(count) => words::count::<u64>(count),
    }
}

/// How old the youngest knowledge of a site's robots.txt is.
fn robots_age(row: &SiteRow) -> String {
    let ages = row.robots.iter().map(|robots| robots.age_seconds);
    ages.reduce(f64::min).as_ref().map_or("–".to_owned(), in_seconds)
}
