//! Orders for a site.

use axum::extract::Path;
use fetchwell_policy::orders::Order as SiteOrder;
use url::form_urlencoded;

use super::one::named;
use crate::dashboard::access::Order;
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::offer::{Mood, Offer, Question};
use crate::sites::SiteRow;

/// The orders that can be given for a site.
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
        offer("resume", "Resume", "Requests resume at the normal pace.", Mood::First)
    } else {
        let about = "Nothing is sent to the site until it is resumed; its URLs wait.";
        offer("pause", "Pause", about, Mood::First)
    };
    let every = row.pace.interval_seconds;
    let proposal = if every > 0.0 { format!("{:.3}", 1.0 / every) } else { "1".to_owned() };
    let about = "Overrides the settings; never faster than a Crawl-delay.";
    let rate = Offer {
        command: format!("fetchwell sites set-rate {site} {proposal}"),
        asks: Some(Question { label: "Requests per second", name: "rate", proposal }),
        ..offer("set-rate", "Set rate", about, Mood::Plain)
    };
    let clear = row.pace.ordered.is_some().then(|| Offer {
        command: format!("fetchwell sites set-rate {site} --clear"),
        ..offer("clear-rate", "Clear rate", "The settings apply again.", Mood::Plain)
    });
    let reset = "The breaker closes; requests resume at the normal pace.";
    let robots = "Discards the cached file, which is read again before the next page.";
    let mut offers = vec![first, rate];
    offers.extend(clear);
    offers.push(offer("reset-breaker", "Reset breaker", reset, Mood::Plain));
    offers.push(offer("refetch-robots", "Read robots.txt again", robots, Mood::Plain));
    offers
}

/// Carries out an order.
pub(in super::super) async fn order(
    Path((name, word)): Path<(String, String)>,
    order: Order,
) -> PageResult {
    let service = &order.by.dashboard.subject.sites;
    let site = named(&name)?;
    let (wanted, said) = match word.as_str() {
        "pause" => (SiteOrder::Pause, "is paused: its URLs wait until it is resumed"),
        "resume" => (SiteOrder::Resume, "is resumed"),
        "set-rate" => {
            let rate = order.form.text("rate").and_then(|text| text.parse().ok());
            match service.order_of_rate(rate.unwrap_or(f64::NAN)) {
                Ok(wanted) => (wanted, "has a new rate"),
                Err(why) => {
                    return Ok(order.not_done(format!("Requests per second: {why}.")));
                }
            }
        }
        "clear-rate" => (SiteOrder::ClearInterval, "uses the settings again"),
        "reset-breaker" => (SiteOrder::ResetBreaker, "has its breaker closed"),
        "refetch-robots" => {
            (SiteOrder::ForgetRobots, "has its robots.txt read again before the next page")
        }
        _ => return Err(PageError::NotFound("unknown action")),
    };
    let obeyed = service.order(&site, wanted, &order.operator()).await?;
    if !obeyed.changed {
        let text = format!("{site} is already in this state; nothing was changed.");
        return Ok(order.not_done(text));
    }
    Ok(order.told(format!("{site} {said}.")))
}
