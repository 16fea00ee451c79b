//! The journey of one URL: through redirects to an answer, and over failures to an end.
//!
//! Doors that fetch pages one by one build their plans on this; it is pure.

use fetchwell_policy::outcome::{AnswerFault, Happened};
use fetchwell_policy::retry::{Attempt, History, Next, RetryRule};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{UrlFault, WebUrl};

use crate::ports::Moment;
use crate::web::{Answer, Outcome, Phases, Request, Why};

/// One URL under way.
#[derive(Debug)]
pub struct Journey {
    at: WebUrl,
    headers: Vec<(&'static str, String)>,
    redirects: u32,
    max_redirects: u32,
    rule: RetryRule,
    history: History,
}

/// What follows on a journey.
#[derive(Debug)]
pub enum Stage {
    /// This request.
    Fetch(Request),
    /// Another attempt from the start, later.
    Retry {
        /// When.
        at: Time,
        /// What it has been through by now.
        history: History,
    },
    /// The end.
    Over(Box<Arrival>),
}

/// The end of a journey.
#[derive(Debug)]
pub struct Arrival {
    /// Where it ended.
    pub final_url: WebUrl,
    /// What happened in the end.
    pub happened: Happened,
    /// The answer, when there was one.
    pub answer: Option<Answer>,
    /// Attempts, the first one included.
    pub attempts: u32,
    /// What the gate went by.
    pub why: Why,
    /// Where the time of the last request went.
    pub phases: Phases,
}

impl Journey {
    /// Starts at `url`.
    pub fn new(url: WebUrl, rule: RetryRule, max_redirects: u32, history: History) -> Journey {
        Journey { at: url, headers: Vec::new(), redirects: 0, max_redirects, rule, history }
    }

    /// With headers of its own, which are not carried to another origin.
    pub fn with_headers(mut self, headers: Vec<(&'static str, String)>) -> Journey {
        self.headers = headers;
        self
    }

    /// The request to make now.
    pub fn request(&self) -> Request {
        let mut request = Request::page(self.at.clone());
        request.headers.clone_from(&self.headers);
        request
    }

    /// Takes the outcome of that request.
    pub fn step(&mut self, mut outcome: Outcome, moment: Moment) -> Stage {
        if let Some(answer) = &outcome.answer {
            match self.redirect(answer) {
                None => {}
                Some(Ok(next)) => return Stage::Fetch(next),
                Some(Err(happened)) => outcome.happened = happened,
            }
        }
        let attempt = Attempt {
            happened: &outcome.happened,
            retry_after: outcome.retry_after,
            site_last_served: outcome.why.site_last_served,
        };
        match self.rule.next(&attempt, self.history, moment.now, moment.chance) {
            Next::Again { at, history } => Stage::Retry { at, history },
            Next::Finish => Stage::Over(Box::new(Arrival {
                final_url: self.at.clone(),
                happened: outcome.happened,
                answer: outcome.answer,
                attempts: self.history.failures().saturating_add(1),
                why: outcome.why,
                phases: outcome.phases,
            })),
        }
    }

    /// Follows a redirect, or says why it can't be followed.
    fn redirect(&mut self, answer: &Answer) -> Option<Result<Request, Happened>> {
        if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let Some(location) = answer.redirect() else {
            return Some(Err(Happened::BadAnswer(AnswerFault::BadRedirect)));
        };
        if self.redirects >= self.max_redirects {
            return Some(Err(Happened::BadAnswer(AnswerFault::TooManyRedirects)));
        }
        Some(match self.at.join(location) {
            Ok(next) => {
                self.redirects += 1;
                if next.origin() != self.at.origin() {
                    self.headers.clear();
                }
                self.at = next;
                Ok(self.request())
            }
            Err(UrlFault::Unparsable(_) | UrlFault::EmptyHost | UrlFault::TooLong { .. }) => {
                Err(Happened::BadAnswer(AnswerFault::BadRedirect))
            }
            Err(fault) => Err(Happened::Refused(format!("a redirect leads to {fault}"))),
        })
    }
}
