//! Jobs in the form that the scripts use.

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lane, Lease, LeaseId, NewJob};
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};
use serde::{Deserialize, Serialize};

use crate::StoreClock;
use crate::shared::moment::ServerTime;

/// A job to insert.
#[derive(Serialize)]
pub(super) struct Entry<'a> {
    url: &'a str,
    site: &'a str,
    due: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<String>,
}

impl<'a> Entry<'a> {
    pub(super) fn of(new: &'a NewJob, clock: &StoreClock) -> Entry<'a> {
        let NewJob { job, key, due } = new;
        let fits_a_list = job.lane == Lane::default() && job.payload.is_empty();
        Entry {
            url: &job.url,
            site: job.site.as_ref().map_or("", Site::as_str),
            due: due.map_or(0, |due| clock.span_us(due)),
            deadline: job.deadline.map(|deadline| clock.span_us(deadline)),
            key: key.map(|key| format!("{:032x}", u128::from_be_bytes(key))),
            extras: (!fits_a_list).then(|| Extras::text(&job.lane, &job.payload)).flatten(),
        }
    }
}

/// The fields that a list entry cannot hold. Scripts store them unchanged.
#[derive(Default, Serialize, Deserialize)]
struct Extras {
    group: Option<String>,
    party: Option<String>,
    #[serde(with = "fetchwell_engine::ports::readable")]
    payload: Option<Vec<u8>>,
}

impl Extras {
    fn text(lane: &Lane, payload: &[u8]) -> Option<String> {
        let Lane { group, party } = lane.clone();
        serde_json::to_string(&Extras { group, party, payload: Some(payload.to_vec()) }).ok()
    }
}

/// A lease, and how it ends.
#[derive(Serialize)]
pub(super) struct Ending<'a> {
    id: String,
    #[serde(flatten)]
    how: How<'a>,
}

#[derive(Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
enum How<'a> {
    Done,
    Skipped,
    Retry {
        at: i64,
        history: Past,
        #[serde(skip_serializing_if = "Option::is_none")]
        extras: Option<String>,
    },
    Dead {
        reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a str>,
    },
    HandBack {
        at: i64,
    },
}

/// A [`History`] with durations instead of times.
#[derive(Serialize)]
struct Past {
    url_failures: u32,
    site_failures: u32,
    paced: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_site_failure: Option<i64>,
}

impl<'a> Ending<'a> {
    pub(super) fn of(
        lease: &Lease,
        settlement: &'a Settlement,
        details: Option<&'a str>,
        clock: &StoreClock,
    ) -> Ending<'a> {
        let how = match settlement {
            Settlement::Done => How::Done,
            Settlement::Skipped => How::Skipped,
            Settlement::Retry { at, history, payload } => How::Retry {
                at: clock.span_us(*at),
                history: Past::of(history, clock),
                extras: payload.as_ref().and_then(|new| Extras::text(&lease.job.lane, new)),
            },
            Settlement::Dead { reason } => How::Dead { reason, details },
            Settlement::HandBack { at } => How::HandBack { at: clock.span_us(*at) },
        };
        Ending { id: lease.id.to_string(), how }
    }
}

impl Past {
    fn of(history: &History, clock: &StoreClock) -> Past {
        let History { url_failures, site_failures, paced, first_site_failure } = *history;
        let first_site_failure = first_site_failure.map(|since| clock.span_us(since));
        Past { url_failures, site_failures, paced, first_site_failure }
    }
}

/// A job as returned by a take, with times by the server's clock: id, URL, site, time of acceptance, interruptions,
/// deadline, extras, history.
pub(super) type Row =
    (LeaseId, Vec<u8>, String, i64, u32, Option<i64>, Option<String>, (u32, u32, u32, Option<i64>));

/// Converts a row to a lease, with times by the engine's clock.
pub(super) fn lease_of(row: Row, moment: ServerTime) -> Lease {
    let (id, url, site, accepted_us, interruptions, deadline_us, extras, past) = row;
    let (url_failures, site_failures, paced, first_us) = past;
    let local = |us| moment.to_local(Time::from_micros(us));
    let extras = extras.and_then(|text| serde_json::from_str(&text).ok());
    let Extras { group, party, payload } = extras.unwrap_or_default();
    Lease {
        id,
        job: Job {
            url: url_of(&url),
            site: Site::parse(&site).ok(),
            lane: Lane { group, party },
            deadline: deadline_us.map(local),
            payload: payload.unwrap_or_default(),
        },
        history: History {
            url_failures,
            site_failures,
            paced,
            first_site_failure: first_us.map(local),
        },
        interruptions,
        accepted_at: local(accepted_us),
    }
}

/// An entry of the list as text. Bytes that are not UTF-8 are not a URL, and must not become one: they are shown in a
/// form that does not parse as a URL. Redis keeps the original bytes.
pub(super) fn url_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(url) => url.to_owned(),
        Err(_) => format!("no UTF-8: {}", bytes.escape_ascii()),
    }
}

/// The site of an entry of the list; empty if it is not a valid URL.
pub(super) fn site_of(url: &[u8]) -> String {
    let url = std::str::from_utf8(url).ok().and_then(|url| WebUrl::parse(url).ok());
    url.map_or_else(String::new, |url| url.site().as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_shown_and_never_a_url() {
        let cases: [&[u8]; 4] =
            [b"http://a.test/\xff", b"http://\xff@a.test/", b"\xffhttp://a.test/", b"\xe4.test"];
        for bytes in cases {
            let shown = url_of(bytes);
            assert!(WebUrl::parse(&shown).is_err(), "{shown}");
            assert!(shown.contains("\\x"), "{shown}");
        }
        assert_eq!(url_of("http://ä.test/".as_bytes()), "http://ä.test/");
    }
}
