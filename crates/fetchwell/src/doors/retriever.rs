//! `fetchwell serve`: inbox messages become outbox rows.

use fetchwell_engine::journey::Arrival;
use fetchwell_engine::ports::{Lease, Moment, Plan, Settlement};
use fetchwell_engine::web::Answer;
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};

use super::foregone::{Foregone, by_payload};
use super::one_page::{End, OnePage};
use crate::timestamp::rfc3339;

/// What a job of this door carries besides its URL; its group is the retailer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InboxMessage {
    /// The message's id.
    pub id: String,
    /// On whose behalf.
    pub retailer: String,
    /// The caller's own name for it.
    pub correlation_id: String,
}

/// A row of the outbox. The store gives it its id, in the order of commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutboxRow {
    /// The message that it answers.
    pub inbox_message_id: String,
    /// The exact string that was posted.
    pub url: String,
    /// On whose behalf.
    pub retailer: String,
    /// The caller's own name for it.
    pub correlation_id: String,
    /// How it went.
    pub status: OutboxStatus,
    /// The page as text; `None` when there is none or it is not text.
    pub content: Option<String>,
    /// The answer's own word for it.
    pub content_type: Option<String>,
    /// The status of the last answer, when there was one.
    pub http_status: Option<u16>,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// When the row was made.
    pub created_at: String,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboxStatus {
    /// The page is in the row.
    Success,
    /// robots.txt disallows it.
    RefusedByRobots,
    /// No connection, or it broke.
    NetworkError,
    /// No answer in time.
    Timeout,
    /// The site answered, but not with a page that can be used.
    HttpError,
    /// The site went on asking us to slow down.
    RateLimited,
    /// The address guard refused.
    Refused,
}

impl OutboxStatus {
    /// The retriever's column of the contract's table.
    fn of(happened: &Happened) -> OutboxStatus {
        match happened {
            Happened::Answered(200..=299) => OutboxStatus::Success,
            Happened::Answered(429) => OutboxStatus::RateLimited,
            Happened::Answered(_) | Happened::BadAnswer(_) => OutboxStatus::HttpError,
            Happened::RobotsDisallow => OutboxStatus::RefusedByRobots,
            Happened::TimedOut(_) | Happened::DeadlinePassed => OutboxStatus::Timeout,
            Happened::Refused(_) => OutboxStatus::Refused,
            // Our own faults are retried until the deadline: they never end a message.
            Happened::Network(_) | Happened::SiteStayedDown { .. } | Happened::OurFault(_) => {
                OutboxStatus::NetworkError
            }
        }
    }
}

/// Makes the plan of a message.
pub fn plan(lease: &Lease) -> Box<dyn Plan<OutboxRow>> {
    by_payload(lease, |message: InboxMessage| {
        let queued = lease.job.url.clone();
        match WebUrl::parse(&queued) {
            Ok(url) => {
                Box::new(OnePage::new(lease, url, RetryRule::RETRIEVER, move |arrival, at| {
                    let Arrival { happened, answer, .. } = arrival;
                    end(&message, &queued, &happened, answer.as_ref(), at)
                }))
            }
            // The API answers such a URL at once; one that comes by another way ends here.
            Err(fault) => {
                let happened = Happened::Refused(fault.to_string());
                Box::new(Foregone(move |moment| end(&message, &queued, &happened, None, moment)))
            }
        }
    })
}

fn end(
    message: &InboxMessage,
    queued: &str,
    happened: &Happened,
    answer: Option<&Answer>,
    moment: Moment,
) -> End<OutboxRow> {
    let status = OutboxStatus::of(happened);
    let content_type = answer.and_then(|answer| answer.header("content-type"));
    let (content, error) = match answer {
        Some(answer) if status == OutboxStatus::Success => text(answer, content_type),
        _ => (None, Some(happened.to_string())),
    };
    let row = OutboxRow {
        inbox_message_id: message.id.clone(),
        url: queued.to_owned(),
        retailer: message.retailer.clone(),
        correlation_id: message.correlation_id.clone(),
        status,
        content,
        content_type: content_type.map(str::to_owned),
        http_status: happened.status(),
        error,
        created_at: rfc3339(moment.wall),
    };
    // A row is the result, whatever it says: the caller has its answer.
    let skipped = status == OutboxStatus::RefusedByRobots;
    (vec![row], if skipped { Settlement::Skipped } else { Settlement::Done })
}

fn text(answer: &Answer, content_type: Option<&str>) -> (Option<String>, Option<String>) {
    if fetchwell_extract::is_text(content_type, &answer.body) {
        let decoded = fetchwell_extract::decode(&answer.body, content_type);
        (Some(decoded.text.into_owned()), None)
    } else {
        (None, Some("the body is not text, so it is not stored".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::{AnswerFault, NetworkFault, Phase};

    use super::*;
    use crate::doors::samples::{end_of, lease};

    fn message() -> Lease {
        let message =
            InboxMessage { id: "m1".into(), retailer: "admhr".into(), correlation_id: "c1".into() };
        lease("http://a.test/", &serde_json::to_string(&message).unwrap())
    }

    #[test]
    fn the_contracts_column() {
        use OutboxStatus::*;
        for (happened, expected) in [
            (Happened::Answered(204), Success),
            (Happened::RobotsDisallow, RefusedByRobots),
            (Happened::Network(NetworkFault::Tls), NetworkError),
            (Happened::TimedOut(Phase::Read), Timeout),
            (Happened::Answered(503), HttpError),
            (Happened::Answered(429), RateLimited),
            (Happened::Answered(500), HttpError),
            (Happened::Answered(403), HttpError),
            (Happened::Answered(404), HttpError),
            (Happened::BadAnswer(AnswerFault::TooLarge), HttpError),
            (Happened::Refused(String::new()), Refused),
            (Happened::DeadlinePassed, Timeout),
        ] {
            // The last attempt that each is allowed.
            let mut spent = message();
            spent.history.url_failures = 2;
            spent.history.site_failures = 2;
            spent.history.paced = 4;
            let (rows, settlement) = end_of(plan(&spent), happened.clone());
            assert_eq!(rows.len(), 1, "{happened:?}");
            assert_eq!(rows[0].status, expected, "{happened:?}");
            let skipped = expected == RefusedByRobots;
            let ended = if skipped { Settlement::Skipped } else { Settlement::Done };
            assert_eq!(settlement, ended, "{happened:?}");
        }
    }
}
