//! Prints sites, as tables or JSON.

use fetchwell_policy::orders::Order;
use fetchwell_policy::units::quantity;
use fetchwell_service::sites::{Obeyed, PaceRow, RobotsRow, SiteRow};
use serde_json::json;

use crate::console::output::json_line;
use crate::console::table::{plain, table};

/// A list of sites, one line each.
pub(super) fn list(rows: &[SiteRow], next: Option<&str>, as_json: bool) -> String {
    if as_json {
        return rows.iter().map(|row| json_line(json!(row))).collect();
    }
    let more = next.map_or(String::new(), |name| {
        format!("there are more; use --after {} to show them\n", plain(name))
    });
    if rows.is_empty() {
        return format!("no matching sites\n{more}");
    }
    let cells = |row: &SiteRow| {
        [
            row.site.clone(),
            pace(&row.pace),
            now(row),
            row.waiting.to_string(),
            row.limited_last_hour.to_string(),
            row.failed_last_hour.to_string(),
            row.robots.first().map_or_else(|| "-".to_owned(), |robots| span(robots.age_seconds)),
        ]
    };
    let head = ["site", "pace", "now", "waiting", "429/h", "failed/h", "robots"];
    table(head, &rows.iter().map(cells).collect::<Vec<_>>()) + &more
}

/// All details of a site.
pub(super) fn in_full(row: &SiteRow, as_json: bool) -> String {
    if as_json {
        return json_line(json!(row));
    }
    let mut text = format!("{}\n", row.site);
    let mut line = |name: &str, value: &str| {
        text.push_str(&format!("  {name:<14} {}\n", value.escape_debug()));
    };
    let detail = row.pace.detail.as_ref().map_or_else(String::new, |detail| format!(", {detail}"));
    line("pace", &(pace(&row.pace) + &detail));
    if let (Some(order), Some(seconds)) = (&row.pace.ordered, row.pace.ordered_interval_seconds) {
        let since = span(order.for_seconds);
        line("rate override", &format!("{seconds} s, by {}, {since} ago", order.by));
    }
    line("now", &now(row));
    line("next slot", &row.next_slot_in_seconds.map_or("none".to_owned(), when));
    line("waiting", &quantity(row.waiting, "URL", "URLs"));
    line("breaker", &breaker(row));
    let limited = quantity(row.limited_last_hour, "response", "responses");
    let failed = quantity(row.failed_last_hour, "failure", "failures");
    line("last hour", &format!("{limited} with 429, {failed}"));
    line(
        "last request",
        &row.last_request_seconds_ago.map_or("never".to_owned(), |s| span(s) + " ago"),
    );
    for robots in &row.robots {
        line("robots.txt", &robots_line(robots));
    }
    text
}

/// The result of an order.
pub(super) fn obeyed(order: Order, obeyed: &Obeyed, as_json: bool) -> String {
    let Obeyed { changed, row } = obeyed;
    if as_json {
        return json_line(json!({"order": order.as_str(), "changed": changed, "site": row}));
    }
    let site = &row.site;
    if !changed {
        return format!("nothing to do: {site} is {}, at {}\n", now(row), pace(&row.pace));
    }
    match order {
        Order::Pause => format!("{site} is paused: its URLs wait until it is resumed\n"),
        Order::Resume => format!("{site} is resumed, at {}\n", pace(&row.pace)),
        Order::SetInterval(_) | Order::ClearInterval => {
            format!("{site} now has the pace {}\n", pace(&row.pace))
        }
        Order::ResetBreaker => {
            let unread = row.robots.iter().any(|robots| robots.unreachable.is_some());
            let first = if unread { "; its robots.txt is read before its next page" } else { "" };
            format!("the breaker of {site} is closed{first}\n")
        }
        Order::ForgetRobots => {
            format!("the robots.txt of {site} is read again before its next page\n")
        }
    }
}

fn pace(pace: &PaceRow) -> String {
    match pace.interval_seconds {
        0.0 => format!("no pacing ({})", pace.source),
        seconds => format!("{seconds} s ({})", pace.source),
    }
}

/// What the site is waiting for now.
fn now(row: &SiteRow) -> String {
    match (row.held_up_by, &row.paused) {
        (Some("paused"), Some(paused)) => {
            format!("paused for {} by {}", span(paused.for_seconds), plain(&paused.by))
        }
        (Some("breaker"), _) => format!("down, {}", breaker(row)),
        (Some("penalty"), _) => {
            format!("resting for {}", span(row.rests_for_seconds.unwrap_or_default()))
        }
        (Some("robots"), _) => {
            format!(
                "waiting for robots.txt, next try {}",
                when(row.next_slot_in_seconds.unwrap_or_default())
            )
        }
        (Some(_), _) => "paced".to_owned(),
        (None, _) => "free".to_owned(),
    }
}

fn breaker(row: &SiteRow) -> String {
    let breaker = &row.breaker;
    match (breaker.state, breaker.next_probe_in_seconds) {
        ("closed", _) if breaker.consecutive_failures > 0 => {
            let failures = quantity(breaker.consecutive_failures, "failure", "failures");
            format!("closed, after {failures} in a row")
        }
        ("closed", _) => "closed".to_owned(),
        (_, Some(left)) => format!("open, next probe {}", when(left)),
        (_, None) => "half open, probe in flight".to_owned(),
    }
}

fn robots_line(robots: &RobotsRow) -> String {
    let RobotsRow { origin, status, age_seconds, unreachable, .. } = robots;
    let status = status.map_or("no answer".to_owned(), |status| status.to_string());
    let next_try = match robots.next_try_in_seconds {
        Some(seconds) if seconds > 0.0 => format!("; next try in {}", span(seconds)),
        _ => "; read before the next page".to_owned(),
    };
    let reason =
        unreachable.as_ref().map_or(String::new(), |why| format!(", unreachable: {why}{next_try}"));
    let delay = match (robots.crawl_delay_seconds, robots.crawl_delay_line) {
        (Some(seconds), Some(line)) => format!(", Crawl-delay {seconds} s in line {line}"),
        _ => String::new(),
    };
    format!("{origin}: {status}, {} old{delay}{reason}", span(*age_seconds))
}

fn when(seconds: f64) -> String {
    if seconds > 0.0 { format!("in {}", span(seconds)) } else { "now".to_owned() }
}

/// A duration in a suitable unit.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}
