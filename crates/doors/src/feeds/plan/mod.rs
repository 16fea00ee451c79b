//! The plans of this door: read a feed, or resolve a link that redirects elsewhere.

use std::time::Duration;

use fetchwell_engine::pipeline::{GiveUp, INTERNAL};
use fetchwell_engine::plan::immediate::{ImmediatePlan, decode_payload};
use fetchwell_engine::plan::redirect_chain::{FetchEnd, RedirectChain, Stage};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lease, NewJob};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Outcome, Request};
use fetchwell_feed::{Feed, Home, clean, leads_elsewhere, must_be_asked};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::{History, Next, RetryRule};
use fetchwell_policy::retry_after::retry_after;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};

/// Most redirects between sites that are followed for one link.
const MAX_HOPS: u32 = 5;
/// Only the headers of such a response matter, so reading stops after this many bytes of its body.
const ENOUGH_BYTES: usize = 1_024;

/// The payload of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum FeedJob {
    /// Read a feed, unless it is unchanged.
    Feed(Validators),
    /// Find out where a link of a feed leads.
    Link {
        feed: String,
        /// The sites whose pages belong to the feed and need no resolving.
        home: Home,
    },
}

/// The validators for a conditional request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

impl Validators {
    fn of(answer: &Answer) -> Validators {
        let header = |name| answer.header(name).map(str::to_owned);
        Validators { etag: header("etag"), last_modified: header("last-modified") }
    }

    /// The headers of a conditional request.
    fn headers(self) -> Vec<(&'static str, String)> {
        let etag = self.etag.map(|etag| ("if-none-match", etag));
        let since = self.last_modified.map(|time| ("if-modified-since", time));
        etag.into_iter().chain(since).collect()
    }
}

/// The result of a job.
#[derive(Clone, Debug)]
pub(super) enum FeedRecord {
    Feed {
        url: String,
        reading: FeedReading,
    },
    Link {
        /// The URL of the feed.
        feed: String,
        link: String,
        /// The page that it leads to; `None` if that is unknown.
        page: Option<WebUrl>,
    },
}

/// The result of reading a feed.
#[derive(Clone, Debug)]
pub enum FeedReading {
    Read {
        feed: Feed,
        /// For the next conditional request.
        validators: Validators,
        /// Its new URL, if all redirects were permanent.
        moved_to: Option<WebUrl>,
    },
    /// The feed has not changed.
    Unchanged,
    Disallowed,
    /// The server answered 410.
    Gone,
    Failed {
        problem: String,
        /// The Retry-After of the response.
        retry_after: Option<Duration>,
    },
    /// The request was not made in time, or the program stopped: nothing is known about the feed.
    NotReached {
        why: String,
    },
}

pub(super) fn job(url: &str, feed_job: &FeedJob, deadline: Time) -> NewJob {
    let payload = serde_json::to_vec(feed_job).unwrap_or_default();
    NewJob::now(Job { deadline: Some(deadline), ..Job::new(url.to_owned(), payload) })
}

pub(super) fn plan(lease: &Lease, max_redirects: u32) -> Box<dyn Plan<FeedRecord>> {
    decode_payload(lease, |feed_job: FeedJob| {
        let url = lease.job.url.clone();
        match (WebUrl::parse(&url), feed_job) {
            (Err(fault), feed_job) => {
                let problem = format!("its URL is invalid: {fault}");
                let mut end = Some(unread(url, feed_job, problem));
                Box::new(ImmediatePlan(move |_| {
                    (end.take().into_iter().collect(), Settlement::Done)
                }))
            }
            (Ok(at), FeedJob::Feed(validators)) => {
                let chain = RedirectChain::new(at, RetryRule::FEEDS, max_redirects, lease.history)
                    .with_headers(validators.headers());
                Box::new(FeedPlan { url, chain, hops: Hops::None, deadline: lease.job.deadline })
            }
            (Ok(at), FeedJob::Link { feed, home }) => {
                let history = lease.history;
                let deadline = lease.job.deadline;
                Box::new(LinkPlan { feed, home, link: url, at, hops: 0, history, deadline })
            }
        }
    })
}

/// What is recorded of a job that was given up. By an internal error a feed has not failed: it was not reached.
pub(super) fn give_up_record(lease: &Lease, cause: GiveUp, reason: &str) -> Vec<FeedRecord> {
    let url = lease.job.url.clone();
    let Ok(feed_job) = serde_json::from_slice::<FeedJob>(&lease.job.payload) else {
        return Vec::new();
    };
    let found = match (cause, feed_job) {
        (GiveUp::Internal, FeedJob::Feed(_)) => {
            let why = format!("{INTERNAL}: {reason}");
            FeedRecord::Feed { url, reading: FeedReading::NotReached { why } }
        }
        (_, feed_job) => unread(url, feed_job, reason.to_owned()),
    };
    vec![found]
}

fn unread(url: String, feed_job: FeedJob, problem: String) -> FeedRecord {
    match feed_job {
        FeedJob::Feed(_) => {
            FeedRecord::Feed { url, reading: FeedReading::Failed { problem, retry_after: None } }
        }
        FeedJob::Link { feed, .. } => FeedRecord::Link { feed, link: url, page: None },
    }
}

/// The redirects between a feed's URL and the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hops {
    None,
    /// Only permanent redirects.
    ForGood,
    /// At least one temporary redirect.
    ForNow,
}

/// Whether an attempt at `at` is before the deadline. Retries after our own faults are due at once and always in time.
fn is_in_time(at: Time, now: Time, deadline: Option<Time>) -> bool {
    at <= now || deadline.is_none_or(|deadline| at < deadline)
}

struct FeedPlan {
    url: String,
    chain: RedirectChain,
    hops: Hops,
    deadline: Option<Time>,
}

impl FeedPlan {
    fn end(&self, reading: FeedReading) -> Step<FeedRecord> {
        let found = FeedRecord::Feed { url: self.url.clone(), reading };
        Step::Finish(vec![found], Settlement::Done)
    }
}

impl Plan<FeedRecord> for FeedPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<FeedRecord> {
        let Some(outcome) = last else { return Step::Fetch(vec![self.chain.request()]) };
        self.hops = match (outcome.answer.as_ref().map(|answer| answer.status), self.hops) {
            (Some(301 | 308), Hops::None | Hops::ForGood) => Hops::ForGood,
            (Some(301..=308), _) if !matches!(outcome.happened, FetchOutcome::Answered(304)) => {
                Hops::ForNow
            }
            (_, hops) => hops,
        };
        let failure = failed(&outcome.happened, outcome.answer.as_ref(), moment.wall);
        match self.chain.step(outcome, moment) {
            Stage::Fetch(request) => Step::Fetch(vec![request]),
            Stage::Retry { at, history } if is_in_time(at, moment.now, self.deadline) => {
                Step::Finish(Vec::new(), Settlement::retry(at, history))
            }
            // The next attempt would come after the deadline, so this one was the last.
            Stage::Retry { .. } => self.end(failure),
            Stage::Over(fetch_end) => self.end(reading(&fetch_end, self.hops, moment.wall)),
        }
    }
}

fn reading(fetch_end: &FetchEnd, hops: Hops, wall: Time) -> FeedReading {
    match (&fetch_end.happened, &fetch_end.answer) {
        (FetchOutcome::Answered(200..=299), Some(answer)) => {
            let content_type = answer.header("content-type");
            match fetchwell_feed::read(&answer.body, content_type, &fetch_end.final_url) {
                Ok(feed) => FeedReading::Read {
                    feed,
                    validators: Validators::of(answer),
                    moved_to: (hops == Hops::ForGood).then(|| fetch_end.final_url.clone()),
                },
                Err(no_feed) => {
                    FeedReading::Failed { problem: no_feed.to_string(), retry_after: None }
                }
            }
        }
        (FetchOutcome::Answered(304), _) => FeedReading::Unchanged,
        (FetchOutcome::Answered(410), _) => FeedReading::Gone,
        (FetchOutcome::RobotsDisallow, _) => FeedReading::Disallowed,
        // A request that our own deadline cut off is not a failure of the feed.
        (FetchOutcome::DeadlinePassed, _) if fetch_end.attempts > u32::from(fetch_end.was_sent) => {
            FeedReading::Failed {
                problem: format!(
                    "failed attempts: {}; no time left for another",
                    fetch_end.attempts - u32::from(fetch_end.was_sent)
                ),
                retry_after: None,
            }
        }
        (happened @ (FetchOutcome::DeadlinePassed | FetchOutcome::OurFault(_)), _) => {
            FeedReading::NotReached { why: happened.to_string() }
        }
        (happened, answer) => failed(happened, answer.as_ref(), wall),
    }
}

fn failed(happened: &FetchOutcome, answer: Option<&Answer>, wall: Time) -> FeedReading {
    let asked_wait = answer.and_then(|answer| answer.header("retry-after"));
    FeedReading::Failed {
        problem: happened.to_string(),
        retry_after: asked_wait.and_then(|value| retry_after(value, wall)),
    }
}

/// Follows redirects from site to site until a link leads to the feed's own site or to a page that does not redirect.
struct LinkPlan {
    feed: String,
    home: Home,
    link: String,
    at: WebUrl,
    hops: u32,
    history: History,
    deadline: Option<Time>,
}

impl LinkPlan {
    fn request(&self) -> Step<FeedRecord> {
        Step::Fetch(vec![Request::page(self.at.clone()).with_enough(ENOUGH_BYTES)])
    }

    fn follow(&mut self, location: &str) -> Step<FeedRecord> {
        let Ok(next) = self.at.join(location) else { return self.end_unanswered() };
        let next = clean(&next);
        if !must_be_asked(&next, &self.home) {
            return self.end(Some(next));
        }
        self.hops += 1;
        if self.hops == MAX_HOPS {
            return self.end_unanswered();
        }
        self.at = next;
        self.request()
    }

    /// The link cannot be followed any further. An ordinary page is added as it is, and `articles` follows its
    /// redirects later. The target of a redirect service is unknown, so its link is resolved again next time.
    fn end_unanswered(&self) -> Step<FeedRecord> {
        let is_page = !leads_elsewhere(&self.at);
        self.end(is_page.then(|| self.at.clone()))
    }

    fn end(&self, page: Option<WebUrl>) -> Step<FeedRecord> {
        let feed = self.feed.clone();
        let link = self.link.clone();
        Step::Finish(vec![FeedRecord::Link { feed, link, page }], Settlement::Done)
    }
}

impl Plan<FeedRecord> for LinkPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<FeedRecord> {
        let Some(outcome) = last else { return self.request() };
        if let Some(location) = outcome.answer.as_ref().and_then(Answer::redirect) {
            return self.follow(location);
        }
        if let Next::Again { at, history } = moment.next(&RetryRule::FEEDS, self.history, &outcome)
            && is_in_time(at, moment.now, self.deadline)
        {
            return Step::Finish(Vec::new(), Settlement::retry(at, history));
        }
        match outcome.happened {
            FetchOutcome::Answered(200..=299) => self.end(Some(self.at.clone())),
            // The request was not made in time: nothing is known about the link.
            FetchOutcome::DeadlinePassed if self.hops == 0 => self.end(None),
            _ => self.end_unanswered(),
        }
    }
}

#[cfg(test)]
mod tests;
