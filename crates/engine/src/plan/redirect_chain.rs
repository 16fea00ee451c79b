//! Follows one URL: through redirects to an answer, and through retries to an end.
//!
//! Doors that fetch single pages build their plans on this. It does no I/O.

use std::time::Duration;

use fetchwell_policy::outcome::{AnswerFault, Blame, FetchOutcome, WaitAskedBy};
use fetchwell_policy::retry::{History, Next, RetryRule};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{UrlFault, WebUrl};

use crate::ports::inbox::details::Redirect;
use crate::ports::plan::Moment;
use crate::web::{Answer, Outcome, Phases, Request, Timeouts, Why};

/// A URL in progress.
#[derive(Debug)]
pub struct RedirectChain {
    at: WebUrl,
    headers: Vec<(&'static str, String)>,
    timeouts: Timeouts,
    redirects: Vec<Redirect>,
    max_redirects: u32,
    rule: RetryRule,
    history: History,
    /// How long to wait for a failing site; `None`: no limit.
    patience: Option<Patience>,
}

/// How long to wait for a site that fails, or asks for a wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time counts from the site's first failure or from this, whichever is later.
    pub since: Time,
    pub lasts: Duration,
}

/// What to do next.
#[derive(Debug)]
pub enum Stage {
    /// Send this request.
    Fetch(Request),
    /// Try again from the start, later.
    Retry {
        at: Time,
        /// Including the last failure.
        history: History,
    },
    Over(Box<FetchEnd>),
}

/// The end of a redirect chain.
#[derive(Debug)]
pub struct FetchEnd {
    /// The last URL.
    pub final_url: WebUrl,
    /// The redirects that led there, in order.
    pub redirects: Vec<Redirect>,
    pub happened: FetchOutcome,
    pub answer: Option<Answer>,
    /// Whether the last request was sent, or at least tried.
    pub was_sent: bool,
    /// The number of attempts, including the first. Failed probes count if the site's failures do.
    pub attempts: u32,
    /// What the gate's decision was based on.
    pub why: Why,
    /// How long each phase of the last request took.
    pub phases: Phases,
}

impl RedirectChain {
    /// Starts at `url`.
    pub fn new(
        url: WebUrl,
        rule: RetryRule,
        max_redirects: u32,
        history: History,
    ) -> RedirectChain {
        RedirectChain {
            at: url,
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            redirects: Vec::new(),
            max_redirects,
            rule,
            history,
            patience: None,
        }
    }

    /// Limits how long to wait for a failing site.
    pub fn with_patience(mut self, patience: Patience) -> RedirectChain {
        self.patience = Some(patience);
        self
    }

    /// Sets headers, which are not carried to another origin.
    pub fn with_headers(mut self, headers: Vec<(&'static str, String)>) -> RedirectChain {
        self.headers = headers;
        self
    }

    pub fn with_max_redirects(mut self, most: u32) -> RedirectChain {
        self.max_redirects = most;
        self
    }

    pub fn with_timeouts(mut self, timeouts: Timeouts) -> RedirectChain {
        self.timeouts = timeouts;
        self
    }

    /// The current URL.
    pub fn at(&self) -> &WebUrl {
        &self.at
    }

    /// The next request to send.
    pub fn request(&self) -> Request {
        let mut request = Request::page(self.at.clone());
        request.headers.clone_from(&self.headers);
        request.timeouts = self.timeouts;
        request
    }

    /// Takes the outcome of that request, and decides what to do next.
    pub fn step(&mut self, mut outcome: Outcome, moment: Moment) -> Stage {
        if let Some(answer) = &outcome.answer {
            match self.redirect(answer) {
                None => {}
                Some(Ok(next)) => return Stage::Fetch(next),
                Some(Err(happened)) => outcome.happened = happened,
            }
        }
        if let Next::Again { at, history } = moment.next(&self.rule, self.history, &outcome) {
            let gives_up_at = self.gives_up_at(&outcome.happened, &history);
            match self.wait_too_long(outcome.retry_after) {
                Some(happened) => outcome.happened = happened,
                None if moment.now < gives_up_at => {
                    return Stage::Retry { at: at.min(gives_up_at), history };
                }
                None => {}
            }
        }
        let last_ones =
            outcome.happened.failed_probes().saturating_add(u32::from(outcome.was_sent));
        Stage::Over(Box::new(FetchEnd {
            final_url: self.at.clone(),
            redirects: std::mem::take(&mut self.redirects),
            happened: outcome.happened,
            answer: outcome.answer,
            was_sent: outcome.was_sent,
            attempts: self.history.failures().saturating_add(last_ones),
            why: outcome.why,
            phases: outcome.phases,
        }))
    }

    fn wait_too_long(&self, retry_after: Option<Duration>) -> Option<FetchOutcome> {
        let most = self.patience?.lasts;
        let wait = retry_after.filter(|wait| *wait > most)?;
        Some(FetchOutcome::WaitTooLong { asked_by: WaitAskedBy::RetryAfter, wait, most })
    }

    fn gives_up_at(&self, happened: &FetchOutcome, history: &History) -> Time {
        match (self.patience, history.first_site_failure) {
            (Some(patience), Some(failing_since)) if happened.blame() == Blame::Site => {
                failing_since.max(patience.since) + patience.lasts
            }
            _ => Time::FAR_FUTURE,
        }
    }

    /// Follows a redirect. An error if it cannot be followed, `None` if the answer is not a redirect.
    fn redirect(&mut self, answer: &Answer) -> Option<Result<Request, FetchOutcome>> {
        if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let Some(location) = answer.redirect() else {
            return Some(Err(FetchOutcome::BadAnswer(AnswerFault::BadRedirect)));
        };
        if self.redirects.len() >= self.max_redirects as usize {
            return Some(Err(FetchOutcome::BadAnswer(AnswerFault::TooManyRedirects)));
        }
        Some(match self.at.join(location) {
            Ok(next) => {
                let url = self.at.as_str().to_owned();
                self.redirects.push(Redirect { url, status: answer.status });
                if next.origin_key() != self.at.origin_key() {
                    self.headers.clear();
                }
                self.at = next;
                Ok(self.request())
            }
            Err(UrlFault::Unparsable(_) | UrlFault::EmptyHost | UrlFault::TooLong { .. }) => {
                Err(FetchOutcome::BadAnswer(AnswerFault::BadRedirect))
            }
            Err(fault) => Err(FetchOutcome::Refused(format!("a redirect leads to {fault}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::SiteFault;

    use super::*;
    use crate::budget::Share;

    const NOW: Time = Time::from_secs(1_000);

    fn moment(secs: i64) -> Moment {
        let now = NOW + Duration::from_secs(secs.unsigned_abs());
        Moment { now, wall: now, chance: 0.5 }
    }

    fn chain(rule: RetryRule) -> RedirectChain {
        let url = WebUrl::parse("https://a.test/start").unwrap();
        RedirectChain::new(url, rule, 2, History::default())
            .with_headers(vec![("authorization", "secret".to_owned())])
    }

    fn answered(status: u16, location: Option<&str>) -> Outcome {
        let mut headers = http::HeaderMap::new();
        if let Some(location) = location {
            headers.insert("location", location.parse().unwrap());
        }
        let answer = Answer {
            status,
            headers,
            body: "x".into(),
            share: Share::none(),
            wire: Box::default(),
        };
        Outcome {
            was_sent: true,
            answer: Some(answer),
            ..Outcome::unsent(FetchOutcome::Answered(status), Why::default())
        }
    }

    fn over(stage: Stage) -> FetchEnd {
        match stage {
            Stage::Over(fetch_end) => *fetch_end,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn redirects_are_followed_up_to_the_limit_and_secrets_stay_at_home() {
        let mut chain = chain(RetryRule::FETCH);
        let Stage::Fetch(next) = chain.step(answered(302, Some("/next")), moment(0)) else {
            panic!()
        };
        assert_eq!((next.url.as_str(), next.headers.len()), ("https://a.test/next", 1));
        let Stage::Fetch(next) = chain.step(answered(301, Some("//b.test/")), moment(0)) else {
            panic!()
        };
        assert_eq!((next.url.as_str(), next.headers.len()), ("https://b.test/", 0));
        let end = over(chain.step(answered(307, Some("/too/far")), moment(0)));
        assert_eq!(end.happened, FetchOutcome::BadAnswer(AnswerFault::TooManyRedirects));
        let way: Vec<_> = end.redirects.iter().map(|hop| (hop.url.as_str(), hop.status)).collect();
        assert_eq!(way, [("https://a.test/start", 302), ("https://a.test/next", 301)]);
        assert_eq!(end.final_url.as_str(), "https://b.test/");
    }

    #[test]
    fn headers_stay_with_their_origin_to_the_letter() {
        for (location, carried) in [
            ("https://a.test:443/x", true),
            ("https://A.test./x", true),
            ("http://a.test/x", false),
            ("https://a.test:8443/x", false),
            ("https://www.a.test/x", false),
            ("https://a.test.evil.test/x", false),
        ] {
            let mut chain = chain(RetryRule::FETCH);
            let Stage::Fetch(next) = chain.step(answered(307, Some(location)), moment(0)) else {
                panic!("{location}")
            };
            assert_eq!(next.headers.len(), usize::from(carried), "{location}");
            let home = answered(307, Some("https://a.test/home"));
            let Stage::Fetch(back) = chain.step(home, moment(0)) else { panic!("{location}") };
            assert_eq!(back.headers.len(), usize::from(carried), "back home from {location}");
        }
    }

    #[test]
    fn a_redirect_that_leads_nowhere_ends_the_chain() {
        for (location, refused) in [
            (None, false),
            (Some("http://["), false),
            (Some("ftp://b.test/"), true),
            (Some("http://user@b.test/"), true),
            (Some("http://b.test:22/"), true),
        ] {
            let end = over(chain(RetryRule::FETCH).step(answered(302, location), moment(0)));
            let is_refused = matches!(end.happened, FetchOutcome::Refused(_));
            assert_eq!(is_refused, refused, "{location:?}: {:?}", end.happened);
            assert_ne!(end.happened, FetchOutcome::Answered(302), "{location:?}");
        }
    }

    #[test]
    fn patience_with_a_site_ends_and_the_last_cause_is_told() {
        let patience = Patience { since: NOW, lasts: Duration::from_secs(60) };
        let mut history = History::default();
        for secs in [0, 10, 59] {
            let mut again = chain(RetryRule::FETCH).with_patience(patience);
            again.history = history;
            match again.step(answered(503, None), moment(secs)) {
                Stage::Retry { at, history: later } => {
                    assert!(at <= NOW + Duration::from_secs(60), "{secs}: {at}");
                    history = later;
                }
                other => panic!("{secs}: {other:?}"),
            }
        }
        let mut last = chain(RetryRule::FETCH).with_patience(patience);
        last.history = history;
        let end = over(last.step(answered(503, None), moment(60)));
        assert_eq!((end.happened, end.attempts), (FetchOutcome::Answered(503), 4));
    }

    #[test]
    fn failed_probes_are_attempts_and_so_is_a_request_that_a_deadline_cut_off() {
        let down = FetchOutcome::ProbesFailed { count: 2, last: SiteFault::Network };
        let mut again = chain(RetryRule::RETRIEVER);
        again.history.site_failures = 1;
        let end = over(again.step(Outcome::unsent(down, Why::default()), moment(0)));
        assert_eq!((end.attempts, end.was_sent), (3, false));
        let late = Outcome::unsent(FetchOutcome::DeadlinePassed, Why::default());
        let cut_off = Outcome { was_sent: true, ..late };
        let end = over(chain(RetryRule::RETRIEVER).step(cut_off, moment(0)));
        assert_eq!((end.attempts, end.was_sent), (1, true));
    }

    #[test]
    fn a_retry_after_beyond_our_patience_ends_it_at_once() {
        let patience = Patience { since: NOW, lasts: Duration::from_secs(60) };
        for (status, asked_s, ends) in [
            (429, 61, true),
            (503, 3_600, true),
            (429, 60, false),
            (503, 60, false),
            (404, 61, true),
        ] {
            let mut outcome = answered(status, None);
            outcome.retry_after = Some(Duration::from_secs(asked_s));
            let stage = chain(RetryRule::FETCH).with_patience(patience).step(outcome, moment(0));
            let is_over = matches!(stage, Stage::Over(_));
            assert_eq!(is_over, ends, "{status} {asked_s}: {stage:?}");
            if let (Stage::Over(fetch_end), true) = (stage, status != 404) {
                let reason = fetch_end.happened.to_string();
                assert!(reason.contains("Retry-After"), "{reason}");
                assert_eq!(
                    (fetch_end.attempts, fetch_end.answer.map(|a| a.status)),
                    (1, Some(status))
                );
            }
        }
        let mut outcome = answered(429, None);
        outcome.retry_after = Some(Duration::from_secs(86_400));
        let stage = chain(RetryRule::FETCH).step(outcome, moment(0));
        assert!(
            matches!(stage, Stage::Retry { .. }),
            "without patience it is waited for: {stage:?}"
        );
    }

    #[test]
    fn what_was_never_sent_is_no_attempt() {
        let unsent = Outcome::unsent(FetchOutcome::RobotsDisallow, Why::default());
        assert_eq!(over(chain(RetryRule::FETCH).step(unsent, moment(0))).attempts, 0);
    }
}
