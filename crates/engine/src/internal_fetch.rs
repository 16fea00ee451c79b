//! Internal fetches: requests that the engine sends for itself, through the same pipeline as every page.

use std::time::Duration;

use fetchwell_policy::outcome::{AnswerFault, FetchOutcome};
use fetchwell_policy::retry::Backoff;
use fetchwell_policy::robots::MAX_ROBOTS_BYTES;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, WebUrl};

use crate::ports::politeness::{RobotsRecord, Unreachable};
use crate::web::{Method, Outcome, Request};

/// The maximum number of redirects of a robots.txt.
const MAX_ROBOTS_REDIRECTS: u32 = 5;

/// The delay before an unreachable robots.txt is requested again.
const TRY_AGAIN: Backoff =
    Backoff { base: Duration::from_secs(5), factor: 2.0, cap: Duration::from_secs(300) };

/// The request of a probe.
pub fn probe(url: WebUrl) -> Request {
    Request::ungoverned(url).by(Method::HEAD)
}

/// Reads a robots.txt through its redirects. The rules apply to the origin that was requested first.
#[derive(Clone, Debug)]
pub struct RobotsFetch {
    /// The origin to which the rules apply.
    pub origin: Origin,
    /// How many times the site of `origin` had recovered when the file was last requested.
    recoveries: u32,
    /// When an operator had last ordered a re-read of the file, as known at its first request.
    robots_forgotten: Option<Time>,
    /// The previous record, if there is one.
    known: Option<RobotsRecord>,
    at: WebUrl,
    redirects: u32,
}

/// What to do next about a robots.txt.
#[derive(Debug)]
pub enum RobotsStep {
    /// Send this request.
    Fetch(Request),
    /// The file was read, or counts as missing or unreachable.
    Learnt(RobotsRecord),
    /// The origin itself must not be connected to, or does not exist, so its pages cannot be fetched either.
    Refused(FetchOutcome),
}

impl RobotsFetch {
    /// Starts for an origin, with its previous record.
    pub fn new(origin: Origin, known: Option<RobotsRecord>) -> RobotsFetch {
        let at = origin.robots_url();
        let failure = known.as_ref().and_then(|known| known.unreachable.as_ref());
        let recoveries = failure.map_or(0, |failure| failure.recoveries);
        let robots_forgotten = known.as_ref().and_then(|known| known.robots_forgotten);
        RobotsFetch { origin, recoveries, robots_forgotten, known, at, redirects: 0 }
    }

    /// Notes how often the site of the origin has recovered, and when an operator last ordered to read the file again,
    /// as of a request to that site. What was known before the order is dropped. A redirect belongs to the reading that
    /// it was found in.
    pub fn note_site(&mut self, recoveries: u32, robots_forgotten: Option<Time>) {
        self.recoveries = recoveries;
        if self.redirects == 0 {
            self.robots_forgotten = robots_forgotten;
            self.known.take_if(|known| known.is_forgotten(robots_forgotten));
        }
    }

    /// The previous failure to reach the file.
    pub fn last_failure(&self) -> Option<&Unreachable> {
        self.known.as_ref()?.unreachable.as_ref()
    }

    /// An older copy of the file.
    pub fn copy(&self) -> Option<&[u8]> {
        self.known.as_ref()?.body.as_deref()
    }

    /// The next request to send.
    pub fn request(&self) -> Request {
        // One byte over the limit, so that a truncated last line can be detected.
        Request::ungoverned(self.at.clone()).with_enough(MAX_ROBOTS_BYTES + 1)
    }

    /// Whether the origin itself is requested, and has never answered as far as is known.
    pub fn is_first_contact(&self) -> bool {
        let has_answered = |known: &RobotsRecord| known.body.is_some();
        self.redirects == 0 && !self.known.as_ref().is_some_and(has_answered)
    }

    /// Takes the outcome of that request, and decides what to do next.
    pub fn step(&mut self, outcome: &Outcome, now: Time) -> RobotsStep {
        let Some(answer) = &outcome.answer else {
            return match &outcome.happened {
                happened @ (FetchOutcome::Refused(_) | FetchOutcome::NoSuchHost)
                    if self.redirects == 0 =>
                {
                    RobotsStep::Refused(happened.clone())
                }
                _ => RobotsStep::Learnt(self.without_answer(outcome, now)),
            };
        };
        if let Some(location) = answer.redirect() {
            return self.follow(location, now);
        }
        RobotsStep::Learnt(match answer.status {
            200..=299 => self.found(Some(answer.status), answer.body.to_vec(), now),
            429 | 500..=599 => self.unreachable(outcome, now),
            status => self.found(Some(status), Vec::new(), now),
        })
    }

    /// Bad redirects mean that there is no file. Any other failure, including a file over a limit, counts as
    /// unreachable: only a missing file allows everything.
    fn without_answer(&self, outcome: &Outcome, now: Time) -> RobotsRecord {
        match &outcome.happened {
            FetchOutcome::BadAnswer(AnswerFault::TooManyRedirects | AnswerFault::BadRedirect) => {
                self.found(None, Vec::new(), now)
            }
            _ => self.unreachable(outcome, now),
        }
    }

    /// RFC 9309: after five redirects, or when one leads nowhere, the file counts as unavailable.
    fn follow(&mut self, location: &str, now: Time) -> RobotsStep {
        self.redirects += 1;
        match self.at.join(location) {
            Ok(next) if self.redirects <= MAX_ROBOTS_REDIRECTS => {
                self.at = next;
                RobotsStep::Fetch(self.request())
            }
            _ => RobotsStep::Learnt(self.found(None, Vec::new(), now)),
        }
    }

    fn unreachable(&self, outcome: &Outcome, now: Time) -> RobotsRecord {
        let before = self.last_failure();
        let tries = before.map_or(0, |before| before.tries).saturating_add(1);
        let own = TRY_AGAIN.ceiling(tries);
        let asked = outcome.retry_after.unwrap_or_default();
        RobotsRecord {
            body: self.known.as_ref().and_then(|known| known.body.clone()),
            status: outcome.happened.status(),
            fetched_at: self.known.as_ref().map_or(now, |known| known.fetched_at),
            unreachable: Some(Unreachable {
                since: before.map_or(now, |before| before.since),
                tries,
                retry_at: now + own.max(asked),
                is_asked_for: asked > own,
                reason: outcome.happened.to_string(),
                recoveries: self.recoveries,
            }),
            robots_forgotten: self.robots_forgotten,
        }
    }

    fn found(&self, status: Option<u16>, body: Vec<u8>, now: Time) -> RobotsRecord {
        RobotsRecord {
            body: Some(body),
            status,
            fetched_at: now,
            unreachable: None,
            robots_forgotten: self.robots_forgotten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Share;
    use crate::web::{Answer, Why};

    const NOW: Time = Time::from_secs(1_000);
    const EARLIER: Time = Time::from_secs(5);

    fn internal_fetch(known: Option<RobotsRecord>) -> RobotsFetch {
        RobotsFetch::new(Origin::parse("https://example.com").unwrap(), known)
    }

    fn answered(status: u16, body: &str, location: Option<&str>) -> Outcome {
        let mut headers = http::HeaderMap::new();
        if let Some(location) = location {
            headers.insert("location", location.parse().unwrap());
        }
        let body = body.to_owned().into();
        let answer = Answer { status, headers, body, share: Share::none(), wire: Box::default() };
        let mut outcome = Outcome::unsent(FetchOutcome::Answered(status), Why::default());
        outcome.answer = Some(answer);
        outcome
    }

    fn learnt(step: RobotsStep) -> RobotsRecord {
        match step {
            RobotsStep::Learnt(record) => record,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn statuses_mean_what_the_rfc_says() {
        let body_of = |status| learnt(internal_fetch(None).step(&answered(status, "x", None), NOW));
        assert_eq!(body_of(200).body.as_deref(), Some(&b"x"[..]));
        assert_eq!(body_of(404).body.as_deref(), Some(&b""[..]));
        assert_eq!(body_of(403).body.as_deref(), Some(&b""[..]));
        for status in [429, 500, 503] {
            let record = body_of(status);
            assert_eq!((record.body, record.unreachable.is_some()), (None, true), "{status}");
        }
    }

    #[test]
    fn an_origin_that_may_not_be_connected_to_is_refused_and_a_redirect_there_is_unreachable() {
        let guard = Outcome::unsent(FetchOutcome::Refused("private".into()), Why::default());
        let mut direct = internal_fetch(None);
        assert!(matches!(direct.step(&guard, NOW), RobotsStep::Refused(_)));
        let mut redirected = internal_fetch(None);
        redirected.step(&answered(301, "", Some("http://10.0.0.1/")), NOW);
        assert!(learnt(redirected.step(&guard, NOW)).unreachable.is_some());
    }

    #[test]
    fn five_redirects_are_followed_and_the_sixth_is_not() {
        let mut internal_fetch = internal_fetch(None);
        for hop in 1..=5 {
            let location = format!("/r{hop}");
            let RobotsStep::Fetch(next) =
                internal_fetch.step(&answered(301, "", Some(&location)), NOW)
            else {
                panic!("hop {hop}")
            };
            assert_eq!(next.url.as_str(), format!("https://example.com/r{hop}"));
            assert!(!next.obeys_robots);
        }
        let record = learnt(internal_fetch.step(&answered(301, "", Some("/r6")), NOW));
        assert_eq!((record.body, record.unreachable), (Some(Vec::new()), None));
    }

    #[test]
    fn rules_that_are_found_elsewhere_are_those_of_the_origin_that_was_asked_first() {
        let mut internal_fetch = internal_fetch(None);
        let asked_first = internal_fetch.origin.clone();
        for elsewhere in ["http://example.com/", "https://cdn.example.net/robots.txt"] {
            let step = internal_fetch.step(&answered(302, "", Some(elsewhere)), NOW);
            let RobotsStep::Fetch(next) = step else { panic!("{step:?}") };
            assert_eq!(next.url.as_str(), elsewhere);
        }
        let record = learnt(internal_fetch.step(&answered(200, "Disallow: /", None), NOW));
        assert_eq!(record.body.as_deref(), Some(&b"Disallow: /"[..]));
        assert_eq!(internal_fetch.origin, asked_first);
    }

    #[test]
    fn what_was_known_stays_while_it_is_unreachable_and_tries_grow_apart() {
        let known = internal_fetch(None).found(Some(200), b"Disallow: /x".to_vec(), EARLIER);
        let mut record = Some(known.clone());
        let mut waits = Vec::new();
        for _ in 0..4 {
            let later = learnt(internal_fetch(record.take()).step(&answered(503, "", None), NOW));
            assert_eq!((&later.body, later.fetched_at), (&known.body, known.fetched_at));
            waits.push(later.unreachable.as_ref().unwrap().retry_at.since(NOW).as_secs());
            record = Some(later);
        }
        assert_eq!(waits, [5, 10, 20, 40]);
    }

    #[test]
    fn what_was_known_before_an_order_to_read_it_again_replaces_nothing() {
        let known = internal_fetch(None).found(Some(200), b"Disallow: /x".to_vec(), EARLIER);
        let ordered = Some(Time::from_secs(900));
        for (noted, body) in [(None, known.body.clone()), (ordered, None)] {
            let mut again = internal_fetch(Some(known.clone()));
            again.note_site(0, noted);
            let record = learnt(again.step(&answered(503, "", None), NOW));
            assert_eq!((record.body, record.robots_forgotten), (body, noted));
        }
    }

    /// The file may have changed after its site sent the redirect.
    #[test]
    fn an_order_between_a_redirect_and_its_target_finds_the_file_being_read() {
        let mut internal_fetch = internal_fetch(None);
        internal_fetch.note_site(0, None);
        internal_fetch.step(&answered(301, "", Some("/moved.txt")), NOW);
        let ordered = Some(Time::from_secs(900));
        internal_fetch.note_site(0, ordered);
        let record = learnt(internal_fetch.step(&answered(200, "", None), NOW));
        assert!(record.is_forgotten(ordered), "{record:?}");
    }
}
