//! Webhooks: delivers results to the callers that asked for it, signed as Standard Webhooks specifies.
//!
//! Its records are the attempts, for the log of deliveries that callers can read.

mod signing;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::plan::immediate::{ImmediatePlan, decode_payload};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::inbox::{DeliveryAttempt, DeliveryRecord, DeliveryStatus};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Method, Outcome, Request};
use fetchwell_policy::digest::unix_seconds;
use fetchwell_policy::outcome::{Blame, FetchOutcome};
use fetchwell_policy::retry::{Backoff, History};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};

pub use signing::{WebhookSecret, WebhookSecrets};

/// The number of attempts, including the first. The back-off spreads them over about 21 hours on average and 41 at
/// most; `Retry-After` and the receiver's breaker can extend this.
const MAX_ATTEMPTS: u32 = 10;
const BACKOFF: Backoff =
    Backoff { base: Duration::from_secs(5), factor: 5.0, cap: Duration::from_secs(12 * 3_600) };

/// The delay of a delivery that could not be prepared.
const NOT_READY: Duration = Duration::from_secs(5);

/// What to do with a job of this door. The payload in the queue is only the message ID.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    Post(Letter),
    /// The message cannot be read now; try again later.
    Later,
    /// It cannot be delivered any more.
    Dead {
        /// The `webhook-id`.
        id: String,
        reason: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Letter {
    /// The `webhook-id`: the same for each attempt, so that the receiver can recognize a repetition.
    pub id: String,
    /// The caller whose secret signs it.
    pub caller: String,
    /// The JSON text to deliver.
    pub body: String,
}

/// Signs `id.timestamp.body` with a caller's secret: `v1,` and the Base64 of its HMAC-SHA256. While a rotation lasts,
/// there are two signatures, separated by a space. Returns `None` if the caller was revoked.
pub type Sign = Arc<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

pub fn plan(sign: &Sign, lease: &Lease) -> Box<dyn Plan<DeliveryRecord>> {
    let log = Log::of(lease);
    decode_payload(lease, |delivery: Delivery| {
        let letter = match delivery {
            Delivery::Post(letter) => letter,
            Delivery::Dead { id, reason } => return log.dead(id, reason),
            Delivery::Later => {
                let later = |moment: Moment| {
                    (Vec::new(), Settlement::HandBack { at: moment.now + NOT_READY })
                };
                return Box::new(ImmediatePlan(later));
            }
        };
        match WebUrl::parse(&lease.job.url) {
            Ok(url) => {
                let sign = sign.clone();
                Box::new(DeliveryPlan { url, letter, sign, history: lease.history, log })
            }
            Err(fault) => log.dead(letter.id, format!("the callback URL cannot be used: {fault}")),
        }
    })
}

/// The record of a delivery that the pipeline gave up.
pub fn give_up_record(lease: &Lease, reason: &str, wall: Time) -> Option<DeliveryRecord> {
    let id = match serde_json::from_slice(&lease.job.payload) {
        Ok(Delivery::Post(Letter { id, .. }) | Delivery::Dead { id, .. }) => id,
        Ok(Delivery::Later) => return None,
        // The payload as it is in the queue.
        Err(_) => String::from_utf8(lease.job.payload.clone()).ok()?,
    };
    let attempt = DeliveryAttempt::new(wall, None, Some(reason));
    Some(Log::of(lease).record(id, DeliveryStatus::Failed, attempt))
}

/// What all records of a delivery have in common.
#[derive(Clone)]
struct Log {
    caller: String,
    url: String,
}

impl Log {
    fn of(lease: &Lease) -> Log {
        let caller = lease.job.lane.party.clone().unwrap_or_default();
        Log { caller, url: lease.job.url.clone() }
    }

    fn record(
        &self,
        webhook: String,
        status: DeliveryStatus,
        attempt: DeliveryAttempt,
    ) -> DeliveryRecord {
        let Log { caller, url } = self.clone();
        DeliveryRecord { webhook, caller, url, status, attempt }
    }

    /// A plan that gives up its lease without a request.
    fn dead(self, id: String, reason: String) -> Box<dyn Plan<DeliveryRecord>> {
        Box::new(ImmediatePlan(move |moment: Moment| {
            let attempt = DeliveryAttempt::new(moment.wall, None, Some(&reason));
            let record = self.record(id.clone(), DeliveryStatus::Failed, attempt);
            (vec![record], Settlement::Dead { reason: reason.clone() })
        }))
    }
}

struct DeliveryPlan {
    url: WebUrl,
    letter: Letter,
    sign: Sign,
    history: History,
    log: Log,
}

impl Plan<DeliveryRecord> for DeliveryPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<DeliveryRecord> {
        match last {
            None => match self.request(moment) {
                Some(request) => Step::Fetch(vec![request]),
                None => {
                    let reason = "the caller was revoked".to_owned();
                    let attempt = DeliveryAttempt::new(moment.wall, None, Some(&reason));
                    let record = self.record(DeliveryStatus::Failed, attempt);
                    Step::Finish(vec![record], Settlement::Dead { reason })
                }
            },
            Some(outcome) => {
                let settlement = self.settlement(&outcome, moment);
                Step::Finish(self.records(&outcome, &settlement, moment), settlement)
            }
        }
    }
}

impl DeliveryPlan {
    fn record(&self, status: DeliveryStatus, attempt: DeliveryAttempt) -> DeliveryRecord {
        self.log.record(self.letter.id.clone(), status, attempt)
    }

    /// The record of an attempt; none if our own fault prevented it.
    fn records(
        &self,
        outcome: &Outcome,
        settlement: &Settlement,
        moment: Moment,
    ) -> Vec<DeliveryRecord> {
        let status = match settlement {
            Settlement::Done | Settlement::Skipped => DeliveryStatus::Delivered,
            Settlement::Retry { .. } => DeliveryStatus::Pending,
            Settlement::Dead { .. } => DeliveryStatus::Failed,
            Settlement::HandBack { .. } => return Vec::new(),
        };
        let error = outcome.happened.to_string();
        let error = (status != DeliveryStatus::Delivered).then_some(error.as_str());
        let attempt = DeliveryAttempt::new(moment.wall, outcome.happened.status(), error);
        vec![self.record(status, attempt)]
    }

    fn request(&self, moment: Moment) -> Option<Request> {
        let Letter { id, caller, body } = &self.letter;
        let timestamp = unix_seconds(moment.wall);
        let signature = (self.sign)(caller, &format!("{id}.{timestamp}.{body}"))?;
        let request = Request::ungoverned(self.url.clone())
            .by(Method::POST)
            .with_body(body.clone())
            .with_header("content-type", "application/json")
            .with_header("webhook-id", id)
            .with_header("webhook-timestamp", timestamp.to_string())
            .with_header("webhook-signature", signature);
        Some(request)
    }

    /// A delivery is not a fetch: anything but a 2xx is retried, unless the receiver answers 410 or the address guard
    /// refuses the address. Redirects are not followed.
    fn settlement(&self, outcome: &Outcome, moment: Moment) -> Settlement {
        let reason = outcome.happened.to_string();
        let mut history = self.history;
        match (&outcome.happened, outcome.happened.blame()) {
            (FetchOutcome::Answered(200..=299), _) => return Settlement::Done,
            (FetchOutcome::Answered(410), _) | (_, Blame::Caller) => {
                return Settlement::Dead { reason };
            }
            (_, Blame::Us) => return Settlement::HandBack { at: moment.now },
            _ => history.url_failures = history.url_failures.saturating_add(1),
        }
        if history.url_failures >= MAX_ATTEMPTS {
            return Settlement::Dead { reason };
        }
        let own = BACKOFF.delay(history.url_failures, moment.chance);
        let wait = own.max(outcome.retry_after.unwrap_or_default());
        Settlement::retry(moment.now + wait, history)
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::{NameFault, NetworkFault};
    use fetchwell_testkit::samples::{MOMENT, end_of, lease};

    use super::*;

    const HOOK: &str = "http://caller.test/hook";

    fn delivery(failures: u32) -> Box<dyn Plan<DeliveryRecord>> {
        let mut lease =
            lease("http://caller.test/hook", r#"{"post":{"id":"m1","caller":"me","body":"{}"}}"#);
        lease.history.url_failures = failures;
        let sign: Sign = Arc::new(|caller, content| Some(format!("v1,{caller}<{content}>")));
        plan(&sign, &lease)
    }

    #[test]
    fn a_delivery_is_signed() {
        let Step::Fetch(requests) = delivery(0).step(None, MOMENT) else { panic!("it posts") };
        assert_eq!(requests[0].method, Method::POST);
        assert_eq!(requests[0].body, "{}");
        assert_eq!(
            requests[0].headers,
            [
                ("content-type", "application/json".to_owned()),
                ("webhook-id", "m1".to_owned()),
                ("webhook-timestamp", "1700000000".to_owned()),
                ("webhook-signature", "v1,me<m1.1700000000.{}>".to_owned()),
            ]
        );
    }

    #[test]
    fn what_cannot_be_delivered_now_or_ever_makes_no_request() {
        let end = |payload| {
            let sign: Sign = Arc::new(|_, _| None);
            let lease = lease("http://caller.test/hook", payload);
            end_of(plan(&sign, &lease), FetchOutcome::Answered(200)).1
        };
        assert!(matches!(end(r#""later""#), Settlement::HandBack { .. }));
        assert!(
            matches!(end(r#"{"dead":{"id":"m1","reason":"gone"}}"#), Settlement::Dead { reason } if reason == "gone")
        );
        let unsigned = end(r#"{"post":{"id":"m1","caller":"me","body":"{}"}}"#);
        assert!(matches!(unsigned, Settlement::Dead { reason } if reason.contains("revoked")));
    }

    #[test]
    fn every_attempt_is_recorded_and_so_is_its_end() {
        let record = |failures, happened| end_of(delivery(failures), happened).0.remove(0);
        let delivered = record(0, FetchOutcome::Answered(204));
        assert_eq!((delivered.webhook.as_str(), delivered.url.as_str()), ("m1", HOOK));
        assert_eq!(delivered.status, DeliveryStatus::Delivered);
        assert_eq!((delivered.attempt.http_status, delivered.attempt.error), (Some(204), None));
        let first = record(0, FetchOutcome::Answered(500));
        assert_eq!(first.status, DeliveryStatus::Pending);
        assert_eq!(first.attempt.error.as_deref(), Some("the server answered 500"));
        let last = record(MAX_ATTEMPTS - 1, FetchOutcome::Answered(500));
        assert_eq!(last.status, DeliveryStatus::Failed);
        let ours = end_of(delivery(0), FetchOutcome::OurFault("no memory".into()));
        assert!(ours.0.is_empty(), "{ours:?}");
    }

    #[test]
    fn a_delivery_that_is_given_up_says_so_whatever_its_payload_is() {
        let wall = MOMENT.wall;
        for payload in ["m1", r#"{"dead":{"id":"m1","reason":"x"}}"#] {
            let record = give_up_record(&lease(HOOK, payload), "why", wall).unwrap();
            assert_eq!((record.webhook.as_str(), record.status), ("m1", DeliveryStatus::Failed));
        }
        assert_eq!(give_up_record(&lease(HOOK, r#""later""#), "why", wall), None);
    }

    #[test]
    fn what_is_not_taken_is_delivered_again_for_a_while() {
        assert_eq!(end_of(delivery(0), FetchOutcome::Answered(204)).1, Settlement::Done);
        let passing = [
            FetchOutcome::Answered(301),
            FetchOutcome::Answered(404),
            FetchOutcome::Answered(429),
            FetchOutcome::Answered(500),
            FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName)),
        ];
        for happened in passing {
            let first = end_of(delivery(0), happened.clone()).1;
            // `MOMENT.chance` is 0.5, so the delay is half of the first back-off.
            let soon = MOMENT.now + Duration::from_millis(2_500);
            assert!(
                matches!(first, Settlement::Retry { at, .. } if at == soon),
                "{happened:?}: {first:?}"
            );
            let last = end_of(delivery(MAX_ATTEMPTS - 1), happened.clone()).1;
            assert!(matches!(last, Settlement::Dead { .. }), "{happened:?}");
        }
        for happened in [FetchOutcome::Answered(410), FetchOutcome::Refused("private".into())] {
            let first = end_of(delivery(0), happened.clone()).1;
            assert!(matches!(first, Settlement::Dead { .. }), "{happened:?}");
        }
    }
}
