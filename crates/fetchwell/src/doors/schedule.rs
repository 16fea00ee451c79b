//! `fetchwell schedule`: entries of a plan put URLs on the pages' list, each at its interval.
//!
//! An entry's rounds lie on a grid of their own, so that a late round does not move those after it,
//! and a URL of a round that comes twice (after a crash) has the same key.

use std::time::Duration;

use fetchwell_engine::journey::Arrival;
use fetchwell_engine::ports::{Lease, Moment, Plan, Settlement};
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::foregone::{Foregone, by_payload, dead};
use super::one_page::OnePage;

/// A sitemap has no more URLs than this, by its own standard.
const MAX_SITEMAP_URLS: usize = 50_000;

/// What a job of this door carries besides its URL.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanEntry {
    /// What the URL is.
    pub kind: EntryKind,
    /// How often it is due.
    pub interval_s: u64,
    /// When its first round was due.
    pub starting_at: Time,
}

/// What an entry's URL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A page.
    Url,
    /// A list of pages.
    Sitemap,
}

/// A URL to put on the pages' list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueue {
    /// The URL.
    pub url: String,
    /// The same for the same URL in the same round: it goes in once.
    pub key: [u8; 16],
}

/// Makes the plan of a round.
pub fn plan(lease: &Lease) -> Box<dyn Plan<Enqueue>> {
    by_payload(lease, |entry: PlanEntry| {
        let queued = lease.job.url.clone();
        let url = match WebUrl::parse(&queued) {
            Ok(url) => url,
            Err(fault) => return dead(format!("the entry's URL can't be used: {fault}")),
        };
        match entry.kind {
            EntryKind::Url => Box::new(Foregone(move |moment: Moment| {
                let round = entry.round(moment.now);
                (vec![round.enqueue(&queued)], round.next())
            })),
            EntryKind::Sitemap => {
                Box::new(OnePage::new(lease, url, RetryRule::ARCHIVE, move |arrival, moment| {
                    let round = entry.round(moment.now);
                    let urls = listed(&arrival);
                    (urls.iter().map(|url| round.enqueue(url)).collect(), round.next())
                }))
            }
        }
    })
}

impl PlanEntry {
    fn round(&self, now: Time) -> Round {
        let interval = Duration::from_secs(self.interval_s.max(1));
        let passed = now.since(self.starting_at).as_micros() / interval.as_micros();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        Round { due: self.starting_at + interval.saturating_mul(passed), interval }
    }
}

/// One point of an entry's grid.
struct Round {
    due: Time,
    interval: Duration,
}

impl Round {
    fn next(&self) -> Settlement {
        Settlement::recur(self.due + self.interval)
    }

    fn enqueue(&self, url: &str) -> Enqueue {
        let digest = Sha256::new().chain_update(self.due.as_micros().to_be_bytes());
        let digest = digest.chain_update(url).finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Enqueue { url: url.to_owned(), key }
    }
}

/// The pages that a sitemap lists; one that can't be read lists none, until its next round.
fn listed(arrival: &Arrival) -> Vec<String> {
    let (Happened::Answered(200..=299), Some(answer)) = (&arrival.happened, &arrival.answer) else {
        return Vec::new();
    };
    let text = fetchwell_extract::decode(&answer.body, answer.header("content-type")).text;
    let places = text.split("<loc>").skip(1).filter_map(|rest| rest.split_once("</loc>"));
    let urls = places.map(|(url, _)| url.trim().replace("&amp;", "&"));
    urls.filter(|url| WebUrl::parse(url).is_ok()).take(MAX_SITEMAP_URLS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::samples::{NOW, end_of, end_with, lease, outcome};

    fn entry(kind: &str, starting_at: Time) -> Lease {
        let starts = starting_at.as_micros();
        let entry = format!(r#"{{"kind":"{kind}","interval_s":60,"starting_at":{starts}}}"#);
        lease("http://a.test/x", &entry)
    }

    #[test]
    fn a_late_round_does_not_move_the_next_and_missed_ones_are_one() {
        for (late_s, next_in_s) in [(0, 60), (1, 59), (59, 1), (60, 60), (601, 59)] {
            let late = entry("url", NOW - Duration::from_secs(late_s));
            let (records, settlement) = end_of(plan(&late), Happened::Answered(200));
            assert_eq!(records[0].url, "http://a.test/x");
            let at = NOW + Duration::from_secs(next_in_s);
            assert_eq!(settlement, Settlement::recur(at), "{late_s} s late");
        }
    }

    #[test]
    fn a_url_has_one_key_a_round() {
        let every_minute = PlanEntry { kind: EntryKind::Url, interval_s: 60, starting_at: NOW };
        let key = |url: &str, after_s| {
            every_minute.round(NOW + Duration::from_secs(after_s)).enqueue(url).key
        };
        assert_eq!(key("http://a.test/", 0), key("http://a.test/", 59));
        assert_ne!(key("http://a.test/", 0), key("http://a.test/", 60));
        assert_ne!(key("http://a.test/", 0), key("http://b.test/", 0));
    }

    #[test]
    fn a_sitemap_lists_its_pages_and_a_bad_one_none() {
        let xml = "<urlset><url><loc> http://a.test/1?x=1&amp;y=2 </loc></url>
            <url><loc>nonsense</loc></url><url><loc>http://a.test/2</url></urlset>";
        let sitemap = outcome(Happened::Answered(200), xml);
        let (records, _) = end_with(plan(&entry("sitemap", NOW)), sitemap);
        let urls: Vec<_> = records.iter().map(|record| record.url.as_str()).collect();
        assert_eq!(urls, ["http://a.test/1?x=1&y=2"]);
        let (records, settlement) = end_of(plan(&entry("sitemap", NOW)), Happened::Answered(404));
        assert!(records.is_empty());
        assert_eq!(settlement, Settlement::recur(NOW + Duration::from_secs(60)));
    }
}
