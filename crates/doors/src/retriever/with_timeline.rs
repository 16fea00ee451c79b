//! A plan that records its attempts: each is stored with the result, or beside the retry.

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::inbox::{AttemptRecord, FetchResult};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::Outcome;

use super::plan::{failed, status};

/// Wraps the plan of a message and keeps what its last request returned.
pub(super) struct WithTimeline<P> {
    plan: P,
    last: Option<FetchResult>,
}

impl<P> WithTimeline<P> {
    pub(super) fn new(plan: P) -> WithTimeline<P> {
        WithTimeline { plan, last: None }
    }
}

impl<P: Plan<FetchResult>> Plan<FetchResult> for WithTimeline<P> {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<FetchResult> {
        if let Some(outcome) = &last {
            self.last = Some(told(outcome, moment));
        }
        match self.plan.step(last, moment) {
            Step::Finish(mut records, settlement) => {
                let attempt = self.last.as_ref().and_then(|last| last.attempt.clone());
                match (records.first_mut(), &settlement) {
                    (Some(result), _) => result.attempt = attempt,
                    (None, Settlement::Retry { .. }) => records.extend(self.last.take()),
                    (None, _) => {}
                }
                Step::Finish(records, settlement)
            }
            step => step,
        }
    }

    fn has_results_in_hand(&self) -> bool {
        self.plan.has_results_in_hand()
    }

    fn working_bytes(&self, body: &[u8]) -> usize {
        self.plan.working_bytes(body)
    }

    fn held_bytes(&self) -> Option<usize> {
        self.plan.held_bytes()
    }
}

/// The result that the message would have if this attempt were its last.
fn told(outcome: &Outcome, moment: Moment) -> FetchResult {
    let happened = &outcome.happened;
    FetchResult {
        http_status: happened.status(),
        attempt: Some(AttemptRecord::of(outcome, moment.wall)),
        ..failed(status(happened), happened.to_string(), 0)
    }
}
