//! One request, in its own task.

use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry_after::retry_after;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::sync::mpsc::UnboundedSender;

use super::jobs::SharedPlan;
use super::{AnswerFacts, LeaseTag, Purpose, Requested};
use crate::budget::Share;
use crate::clock::Clock;
use crate::gate::GatePermit;
use crate::ports::plan::{Moment, Step};
use crate::ports::politeness::SiteReport;
use crate::web::{Answer, Exchange, Outcome, PermitTime, Phases, Request, SendPermit, Web, Why};
use crate::workbench::{FlightNumber, QueuedRequest};

/// The result of a request.
pub(super) struct FlightEnd<R> {
    /// The event to emit; `None` if nothing was sent.
    pub(super) told: Option<Box<Requested>>,
    /// The resource that this process lacks, if the request failed for that.
    pub(super) lack: Option<String>,
    pub(super) end: End<R>,
}

/// How a request ended.
pub(super) enum End<R> {
    /// It was not permitted, or this process lacks a resource: the item is queued again.
    NotSent(QueuedRequest),
    /// The site answered, but this process could not process the answer.
    Interrupted(String),
    /// For a request of the engine itself: the outcome.
    InternalFetch(Outcome),
    /// For a lease: the step that its plan took.
    Stepped {
        step: Step<R>,
        happened: FetchOutcome,
        retry_after: Option<Duration>,
        phases: Phases,
        share: Share,
    },
}

/// What a flight reports about its request head.
pub(super) enum HeadEvent {
    /// The head is written. Only then is the site's next slot requested.
    Written(Site, FlightNumber),
    /// The head left later than permitted.
    Late(SiteReport),
    /// The head leaves this much sooner after the previous one than the pace allows.
    Early(Site, Duration),
    /// Nothing more of this group may be sent before then.
    GroupRests(String, Time),
}

/// A send permit that reports to the scheduler what becomes of the head.
pub(super) struct Announced {
    pub(super) send_permit: GatePermit,
    pub(super) number: FlightNumber,
    pub(super) site: Site,
    pub(super) group: Option<String>,
    /// Whether the site's next slot waits for this head.
    pub(super) is_waited_for: bool,
    pub(super) heads: UnboundedSender<HeadEvent>,
}

#[async_trait]
impl SendPermit for Announced {
    async fn to_write(&mut self) -> bool {
        let given = self.send_permit.to_write().await;
        if let (Some(group), Some(until)) = (&self.group, self.send_permit.group_rests_until) {
            self.tell(HeadEvent::GroupRests(group.clone(), until));
        }
        if let Some(early_by) = self.send_permit.early_by {
            self.tell(HeadEvent::Early(self.site.clone(), early_by));
        }
        if given && self.is_waited_for {
            self.tell(HeadEvent::Written(self.site.clone(), self.number));
        }
        given
    }

    fn given(&self) -> Option<PermitTime> {
        self.send_permit.given()
    }

    fn left_late(&mut self) {
        if let Some(report) = self.send_permit.late_report() {
            self.tell(HeadEvent::Late(report));
        }
    }
}

impl Announced {
    fn tell(&self, event: HeadEvent) {
        drop(self.heads.send(event)); // The scheduler may have ended.
    }
}

/// One request, from its send permit to its outcome, in its own task.
pub(super) struct Fetch<R> {
    pub(super) web: Arc<dyn Web>,
    pub(super) clock: Clock,
    pub(super) chance: f64,
    pub(super) item: QueuedRequest,
    pub(super) send_permit: Announced,
    pub(super) plan: Option<SharedPlan<R>>,
    pub(super) phases: Phases,
    pub(super) why: Why,
    pub(super) purpose: Purpose,
    pub(super) lease: Option<LeaseTag>,
}

impl<R> Fetch<R> {
    pub(super) async fn run(mut self) -> FlightEnd<R> {
        let exchange =
            self.web.exchange(&self.item.request, &mut self.send_permit, &mut self.phases).await;
        let (happened, mut answer) = match exchange {
            Exchange::NotSent => {
                return FlightEnd { told: None, lack: None, end: End::NotSent(self.item) };
            }
            Exchange::Answered(answer) => (FetchOutcome::Answered(answer.status), Some(answer)),
            Exchange::Failed(happened) => (happened, None),
        };
        let wall = self.clock.wall();
        let told = Some(Box::new(self.told(&happened, answer.as_ref(), wall)));
        if let FetchOutcome::OurFault(what) = happened {
            // This counts as an interruption, so that a site that answers is not asked for the same page forever.
            let has_answered = self.phases.first_byte > Duration::ZERO;
            let end = match has_answered {
                true => End::Interrupted(what.clone()),
                false => End::NotSent(self.item),
            };
            return FlightEnd { told, lack: Some(what), end };
        }
        let retry_after = answer.as_ref().and_then(|answer| asked_wait(answer, wall));
        // The records may hold the body, so its share of the budget outlives the step.
        let mut share = answer.as_mut().map(|answer| take(&mut answer.share)).unwrap_or_default();
        let summary = happened.clone();
        let phases = self.phases;
        let why = self.why;
        let was_sent = !matches!(happened, FetchOutcome::Refused(_));
        let outcome = Outcome { was_sent, happened, answer, retry_after, why, phases };
        let end = match self.plan {
            None => End::InternalFetch(outcome),
            Some(plan) => {
                let body_bytes = share.bytes();
                let body = outcome.answer.as_ref().map_or(&[][..], |answer| &answer.body[..]);
                let working_bytes = plan.lock().working_bytes(body);
                share.change_to(body_bytes.saturating_add(working_bytes)).await;
                let moment = Moment { now: self.clock.now(), wall, chance: self.chance };
                // A panic of an earlier step ended this job; a later outcome finds it gone.
                let step = plan.lock().step(Some(outcome), moment);
                // A lease holds no budget between requests. Only active requests and records about to be stored do, so
                // every wait ends.
                let held_bytes = match &step {
                    Step::Finish(..) => plan.lock().held_bytes().unwrap_or(body_bytes),
                    Step::Fetch(_) | Step::Halt(_) => 0,
                };
                share.change_to(held_bytes).await;
                End::Stepped { step, happened: summary, retry_after, phases, share }
            }
        };
        FlightEnd { told, lack: None, end }
    }

    fn told(&self, happened: &FetchOutcome, answer: Option<&Answer>, ended_at: Time) -> Requested {
        let Request { url, method, .. } = &self.item.request;
        let facts = |answer: &Answer| AnswerFacts {
            body_bytes: answer.body.len(),
            version: answer.wire.version,
            peer: answer.wire.peer,
        };
        Requested {
            purpose: self.purpose,
            lease: self.lease,
            url: url.clone(),
            method: method.clone(),
            happened: happened.clone(),
            phases: self.phases,
            answer: answer.map(facts),
            ended_at,
        }
    }
}

fn asked_wait(answer: &Answer, wall: Time) -> Option<Duration> {
    retry_after(answer.header("retry-after")?, wall)
}
