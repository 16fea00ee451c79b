//! Helpers for the tests of plans.

use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lane, Lease};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Outcome, Phases, Why};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

pub const NOW: Time = Time::from_secs(1_700_000_000);
pub const MOMENT: Moment = Moment { now: NOW, wall: NOW, chance: 0.5 };

pub fn lease(url: &str, payload: &str) -> Lease {
    let site = WebUrl::parse(url).ok().map(|url| url.site());
    let job = Job {
        url: url.to_owned(),
        site,
        lane: Lane::default(),
        payload: payload.into(),
        deadline: None,
    };
    Lease { id: 1, job, history: Default::default(), interruptions: 0, accepted_at: NOW }
}

/// An outcome; if it has a response, that has this body.
pub fn outcome(happened: FetchOutcome, body: &str) -> Outcome {
    let answer = happened.status().map(|status| Answer {
        status,
        headers: Default::default(),
        body: Bytes::from(body.to_owned()),
        share: Share::none(),
        wire: Box::default(),
    });
    let phases = Phases { first_byte: Duration::from_millis(1), ..Phases::default() };
    let why = Why::default();
    Outcome { was_sent: true, happened, answer, retry_after: None, why, phases }
}

/// The end of a plan whose first request has this outcome.
pub fn end_of<R>(plan: Box<dyn Plan<R>>, happened: FetchOutcome) -> (Vec<R>, Settlement) {
    end_with(plan, outcome(happened, "<html><p>Some words.</p></html>"))
}

/// The same for a given outcome.
pub fn end_with<R>(mut plan: Box<dyn Plan<R>>, outcome: Outcome) -> (Vec<R>, Settlement) {
    let step = match plan.step(None, MOMENT) {
        Step::Fetch(_) => plan.step(Some(outcome), MOMENT),
        finish => finish,
    };
    match step {
        Step::Finish(records, settlement) => (records, settlement),
        Step::Fetch(requests) => panic!("it goes on: {requests:?}"),
        Step::Halt(reason) => panic!("it halts: {reason}"),
    }
}
