//! The timeline of a message, from its acceptance to its result, as far as it has got.

use std::time::Duration;

use fetchwell_policy::time::Time;

use super::MessageDetail;

/// A stage of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// The name of the stage: `queued`, `robots`, `slot`, `connect`, `first_byte`, `extracted` (the body was read and
    /// decoded) or `delivered` (the result was stored).
    pub stage: &'static str,
    /// When it ended, by the wall clock.
    pub at: Time,
    /// How long it took.
    pub took: Duration,
}

/// The timeline of a message by its last attempt. Earlier attempts count as time in the queue.
pub fn timeline(detail: &MessageDetail) -> Vec<Milestone> {
    let Some(last) = detail.attempts.last() else {
        return detail.outbox.as_ref().map_or_else(Vec::new, |outbox| {
            vec![stage("delivered", outbox.created_at, detail.message.created_at)]
        });
    };
    let spans = [
        ("robots", last.robots_us),
        ("slot", last.slot_us),
        ("connect", last.connect_us),
        ("first_byte", last.first_byte_us),
        ("extracted", last.body_us),
    ];
    // If no request was sent, there are only the stages of waiting.
    let spans = if last.sent { &spans[..] } else { &spans[..2] };
    let spent_us: u64 = spans.iter().map(|(_, us)| us).sum();
    let begun = last.at - Duration::from_micros(spent_us);
    let mut way = vec![stage("queued", begun, detail.message.created_at)];
    let mut at = begun;
    for (name, us) in spans {
        let took = Duration::from_micros(*us);
        at = at + took;
        way.push(Milestone { stage: name, at, took });
    }
    if let Some(outbox) = &detail.outbox {
        way.push(stage("delivered", outbox.created_at, last.at));
    }
    way
}

fn stage(stage: &'static str, at: Time, since: Time) -> Milestone {
    Milestone { stage, at, took: at.since(since) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::inbox::{AttemptRecord, MessageId};
    use crate::ports::oversight::{MessageState, MessageSummary};

    fn detail(attempts: Vec<AttemptRecord>) -> MessageDetail {
        let message = MessageSummary {
            id: MessageId([1; 16]),
            url: "http://a.test/".to_owned(),
            site: "a.test".to_owned(),
            retailer: "shop".to_owned(),
            correlation_id: "c".to_owned(),
            caller: "anna".to_owned(),
            state: MessageState::Delayed,
            reason: None,
            created_at: Time::from_secs(100),
            due_at: None,
            ended_at: None,
            attempts: 1,
            retry_of: None,
            retried_as: None,
        };
        let deadline = None;
        let callback_url = None;
        let follows = None;
        let outbox = None;
        MessageDetail { message, deadline, callback_url, follows, attempts, outbox }
    }

    fn attempt(sent: bool) -> AttemptRecord {
        AttemptRecord {
            at: Time::from_secs(110),
            sent,
            told: String::new(),
            http_status: None,
            robots: None,
            queued_us: 0,
            robots_us: 1_000_000,
            slot_us: 2_000_000,
            connect_us: 0,
            first_byte_us: 0,
            body_us: 4_000_000,
        }
    }

    #[test]
    fn the_way_ends_where_the_message_stands() {
        let told = |attempts| -> Vec<(&'static str, u64)> {
            let way = timeline(&detail(attempts));
            way.iter().map(|milestone| (milestone.stage, milestone.took.as_secs())).collect()
        };
        assert_eq!(told(vec![]), []);
        assert_eq!(told(vec![attempt(false)]), [("queued", 7), ("robots", 1), ("slot", 2)]);
        let sent = [
            ("queued", 3),
            ("robots", 1),
            ("slot", 2),
            ("connect", 0),
            ("first_byte", 0),
            ("extracted", 4),
        ];
        assert_eq!(told(vec![attempt(false), attempt(true)]), sent);
    }
}
