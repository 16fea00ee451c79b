//! Orders to a site.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::Response;
use fetchwell_engine::sites::SiteRow;
use fetchwell_policy::orders::{MAX_ORDERED_INTERVAL, Order as SiteOrder};
use fetchwell_policy::pace::Rate;
use url::form_urlencoded;

use super::one::named;
use crate::dashboard::Dashboard;
use crate::dashboard::access::{Form, Order};
use crate::dashboard::fault::Fault;
use crate::dashboard::offer::{Mood, Offer, Question};

/// What can be ordered of a site.
pub(super) fn offers(row: &SiteRow) -> Vec<Offer> {
    let site = &row.site;
    let path: String = form_urlencoded::byte_serialize(site.as_bytes()).collect();
    let offer = |word: &str, label: &str, about, mood| Offer {
        action: format!("/dashboard/sites/{path}/{word}"),
        label: label.to_owned(),
        about,
        command: format!("fetchwell sites {word} {site}"),
        mood,
        fields: Vec::new(),
        asks: None,
    };
    let first = if row.paused.is_some() {
        offer("resume", "Resume", "Requests go again, at its pace.", Mood::First)
    } else {
        let about = "Nothing goes there until it is resumed; its URLs wait unharmed.";
        offer("pause", "Pause", about, Mood::First)
    };
    let every = row.pace.interval_seconds;
    let proposal = if every > 0.0 { format!("{:.3}", 1.0 / every) } else { "1".to_owned() };
    let about = "Instead of the settings’ own pace; a Crawl-delay is never undercut.";
    let rate = Offer {
        command: format!("fetchwell sites set-rate {site} {proposal}"),
        asks: Some(Question { label: "Requests per second", name: "rate", proposal }),
        ..offer("set-rate", "Set rate", about, Mood::Plain)
    };
    let clear = row.pace.ordered.is_some().then(|| Offer {
        command: format!("fetchwell sites set-rate {site} --clear"),
        ..offer("clear-rate", "Clear rate", "The pace of the settings holds again.", Mood::Plain)
    });
    let reset = "It counts as sound, and is met at its pace.";
    let robots = "What is known of it is forgotten, and read before the next page.";
    let mut offers = vec![first, rate];
    offers.extend(clear);
    offers.push(offer("reset-breaker", "Reset breaker", reset, Mood::Plain));
    offers.push(offer("refetch-robots", "Read robots.txt again", robots, Mood::Plain));
    offers
}

/// Gives one.
pub(in super::super) async fn order(
    State(dashboard): State<Arc<Dashboard>>,
    Path((name, word)): Path<(String, String)>,
    order: Order,
) -> Result<Response, Fault> {
    let Some(sites) = &dashboard.subject.sites else {
        return Err(Fault::NotFound("this process knows no sites"));
    };
    let site = named(&name)?;
    let (wanted, said) = match word.as_str() {
        "pause" => (SiteOrder::Pause, "is paused: its URLs wait unharmed"),
        "resume" => (SiteOrder::Resume, "goes on"),
        "set-rate" => match interval(&order.form, dashboard.subject.settings.values.i_own_these_sites) {
            Ok(interval) => (SiteOrder::SetInterval(interval), "has its new pace"),
            Err(why) => return Ok(order.not_done(&dashboard, why.to_owned())),
        },
        "clear-rate" => (SiteOrder::ClearInterval, "has the pace of the settings again"),
        "reset-breaker" => (SiteOrder::ResetBreaker, "counts as sound"),
        "refetch-robots" => (SiteOrder::ForgetRobots, "has its robots.txt read again before the next page"),
        _ => return Err(Fault::NotFound("there is no such order")),
    };
    if !sites.order(&site, wanted, order.by()).await? {
        return Ok(order.not_done(&dashboard, format!("{site} was so already; nothing was changed.")));
    }
    let detail = match wanted {
        SiteOrder::SetInterval(interval) => format!("{site} to one request every {interval:?}"),
        _ => site.to_string(),
    };
    let action = format!("site_{}", wanted.as_str().replace('-', "_"));
    order.done(&dashboard, (&action, detail), format!("{site} {said}.")).await
}

/// The interval of a rate that was typed.
fn interval(form: &Form, owns_sites: bool) -> Result<Duration, &'static str> {
    let rate = form.text("rate").and_then(|text| text.parse::<f64>().ok());
    match rate.filter(|rate| rate.is_finite() && *rate >= 0.0) {
        None => Err("A rate is a number of requests per second, such as 0.5."),
        Some(0.0) if !owns_sites => {
            Err("A rate of 0 is no pacing at all, which needs --i-own-these-sites. To stop a site, pause it.")
        }
        Some(rate) => match Rate::per_second(rate, 1).interval {
            interval if interval <= MAX_ORDERED_INTERVAL => Ok(interval),
            _ => Err("That is less than one request a day. To stop a site, pause it."),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_within_bounds() {
        let of = |text: &str, owns| interval(&Form::of(format!("rate={text}").as_bytes()), owns).ok();
        assert_eq!(of("0.5", false), Some(Duration::from_secs(2)));
        assert_eq!(of("0", true), Some(Duration::ZERO));
        for wrong in ["", "x", "-1", "NaN", "inf", "0", "0.00001"] {
            assert_eq!(of(wrong, false), None, "{wrong}");
        }
    }
}
