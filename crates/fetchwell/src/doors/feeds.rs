//! `fetchwell feeds`: subscriptions are read again and again, at their interval.
//!
//! What a feed says is not read here yet: the record carries its body as received, and reading it
//! (RSS, Atom, JSON Feed, and the links they yield) is the next step of this door.

use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::journey::Arrival;
use fetchwell_engine::ports::{Lease, Moment, Plan, Settlement};
use fetchwell_engine::web::Answer;
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::{Backoff, History, RetryRule};
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};

use super::foregone::{by_payload, dead};
use super::one_page::{End, OnePage};
use crate::timestamp::rfc3339;

/// A feed that keeps failing is asked at least this often.
const MAX_BACKOFF: Duration = Duration::from_secs(24 * 3_600);

/// What a job of this door carries besides its URL.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subscription {
    /// Where its links go.
    pub category: String,
    /// How often it is read.
    pub interval_s: u64,
    /// What the last answer had, so that an unchanged feed is not sent again.
    #[serde(default)]
    pub validators: Validators,
}

/// What tells an unchanged feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// The `ETag`.
    pub etag: Option<String>,
    /// The `Last-Modified`.
    pub last_modified: Option<String>,
}

/// A feed that was read, for the step that parses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRecord {
    /// The feed, as it was subscribed to.
    pub url: String,
    /// Where it was in the end: its relative links are meant from there.
    pub final_url: String,
    /// Where its links go.
    pub category: String,
    /// The answer's own word for it.
    pub content_type: Option<String>,
    /// The feed as received.
    pub body: Bytes,
    /// For the next round.
    pub validators: Validators,
    /// When it was read.
    pub fetched_at: String,
}

/// Makes the plan of a round.
pub fn plan(lease: &Lease) -> Box<dyn Plan<FeedRecord>> {
    by_payload(lease, |feed: Subscription| {
        let (queued, history) = (lease.job.url.clone(), lease.history);
        let url = match WebUrl::parse(&queued) {
            Ok(url) => url,
            Err(fault) => return dead(format!("the feed's URL can't be used: {fault}")),
        };
        let conditions = feed.validators.conditions();
        let journey = OnePage::new(lease, url, RetryRule::ARCHIVE, move |arrival, moment| {
            conclude(&queued, &feed, history, &arrival, moment)
        });
        Box::new(journey.with_headers(conditions))
    })
}

impl Validators {
    fn of(answer: &Answer) -> Validators {
        let header = |name| answer.header(name).map(str::to_owned);
        Validators { etag: header("etag"), last_modified: header("last-modified") }
    }

    /// The headers that ask for news only.
    fn conditions(&self) -> Vec<(&'static str, String)> {
        let etag = self.etag.clone().map(|etag| ("if-none-match", etag));
        let since = self.last_modified.clone().map(|time| ("if-modified-since", time));
        etag.into_iter().chain(since).collect()
    }
}

fn conclude(
    queued: &str,
    feed: &Subscription,
    history: History,
    arrival: &Arrival,
    moment: Moment,
) -> End<FeedRecord> {
    let interval = Duration::from_secs(feed.interval_s.max(1));
    let at = moment.now + interval;
    match (&arrival.happened, &arrival.answer) {
        (Happened::Answered(200..=299), Some(answer)) => {
            let validators = Validators::of(answer);
            let record = FeedRecord {
                url: queued.to_owned(),
                final_url: arrival.final_url.to_string(),
                category: feed.category.clone(),
                content_type: answer.header("content-type").map(str::to_owned),
                body: answer.body.clone(),
                validators: validators.clone(),
                fetched_at: rfc3339(moment.wall),
            };
            // The next round asks for news only.
            let payload = serde_json::to_vec(&Subscription { validators, ..feed.clone() }).ok();
            (vec![record], Settlement::Recur { at, payload })
        }
        (Happened::Answered(304) | Happened::RobotsDisallow, _) => {
            (Vec::new(), Settlement::recur(at))
        }
        _ => (Vec::new(), back_off(interval, history, moment)),
    }
}

/// A failed round is not a round: the history stays, and with it the back-off grows.
fn back_off(interval: Duration, mut history: History, moment: Moment) -> Settlement {
    history.url_failures = history.url_failures.saturating_add(1);
    let backoff = Backoff { base: interval, factor: 2.0, cap: MAX_BACKOFF.max(interval) };
    Settlement::retry(moment.now + backoff.ceiling(history.url_failures), history)
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::Step;

    use super::*;
    use crate::doors::samples::{MOMENT, NOW, end_of, lease};

    const HOURLY: &str = r#"{"category":"news","interval_s":3600,
        "validators":{"etag":"\"v1\"","last_modified":null}}"#;

    #[test]
    fn an_unchanged_or_disallowed_feed_comes_again_at_its_interval() {
        for happened in [Happened::Answered(200), Happened::Answered(304), Happened::RobotsDisallow]
        {
            let read = happened == Happened::Answered(200);
            let (records, settlement) = end_of(plan(&lease("http://a.test/rss", HOURLY)), happened);
            assert_eq!(records.len(), usize::from(read));
            let Settlement::Recur { at, payload } = settlement else { panic!("it recurs") };
            assert_eq!(at, NOW + Duration::from_secs(3_600));
            assert_eq!(payload.is_some(), read, "what was read has new validators");
        }
    }

    #[test]
    fn a_failing_feed_comes_ever_more_rarely_but_never_ends() {
        for (failures, hours) in [(0, 1), (1, 2), (3, 8), (30, 24)] {
            let mut failing = lease("http://a.test/rss", HOURLY);
            failing.history.url_failures = failures;
            let (_, settlement) = end_of(plan(&failing), Happened::Answered(404));
            let at = NOW + Duration::from_secs(hours * 3_600);
            assert!(matches!(settlement, Settlement::Retry { at: due, history, .. }
                if due == at && history.url_failures == failures + 1));
        }
    }

    #[test]
    fn it_asks_for_news_only() {
        let Step::Fetch(requests) = plan(&lease("http://a.test/rss", HOURLY)).step(None, MOMENT)
        else {
            panic!("it fetches")
        };
        assert_eq!(requests[0].headers, [("if-none-match", "\"v1\"".to_owned())]);
    }
}
