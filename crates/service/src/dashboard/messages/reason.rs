//! Why a message is in its state, in one sentence, and what to do about it.

use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::oversight::{MessageDetail, MessageState};
use fetchwell_policy::units::quantity;

use crate::dashboard::words;
use crate::sites::SiteRow;

pub(super) struct Reason {
    /// What happened, or what the message waits for.
    pub(super) happened: String,
    /// What the operator can do; empty if there is nothing to do.
    pub(super) advice: String,
}

/// The reason for the state of a message. `site` is the state of its site, while the message waits.
pub(super) fn reason(detail: &MessageDetail, site: Option<&SiteRow>) -> Reason {
    let (happened, advice) = match detail.message.state {
        MessageState::Completed => completed(detail),
        MessageState::Failed => failed(detail),
        MessageState::Processing => {
            ("An instance holds this message and fetches it.".to_owned(), String::new())
        }
        MessageState::Queued | MessageState::Delayed => waiting(detail, site),
    };
    Reason { happened, advice }
}

fn completed(detail: &MessageDetail) -> (String, String) {
    let result = detail.outbox.as_ref().map(|outbox| &outbox.result);
    let status = result.and_then(|result| result.http_status);
    let happened = match (status, result.and_then(|result| result.error.as_deref())) {
        (_, Some(note)) => format!("The page was fetched, but {note}."),
        (Some(status), None) => format!("The page was fetched: the server answered {status}."),
        (None, None) => "The page was fetched.".to_owned(),
    };
    (happened, String::new())
}

fn failed(detail: &MessageDetail) -> (String, String) {
    let Some(outbox) = &detail.outbox else {
        let why = detail.message.reason.as_deref().unwrap_or("no reason was stored");
        return (format!("It ended without a result: {why}."), "Try it again.".to_owned());
    };
    let FetchResult { status, http_status, error, attempts, .. } = &outbox.result;
    let last = detail.attempts.last().map(|attempt| attempt.told.clone());
    let told = error.clone().or(last).unwrap_or_else(|| status.clone());
    let told = told.trim_end_matches('.');
    let tries = match attempts {
        0 => "Without an attempt".to_owned(),
        _ => format!("After {}", quantity(*attempts, "attempt", "attempts")),
    };
    let happened = match status.as_str() {
        "refused_by_robots" => format!("robots.txt of the site disallows this URL: {told}."),
        "refused" => format!("The address guard refused it: {told}."),
        "cancelled" => format!("It has ended: {told}."),
        "internal_error" => format!("Fetchwell itself failed: {told}."),
        _ => format!("{tries}: {told}."),
    };
    let advice = match (status.as_str(), http_status) {
        ("refused_by_robots", _) => "Do not send it again, or ask the site for permission.",
        ("refused", _) => "Allow the address only if it is yours; the text names the setting.",
        ("cancelled", _) => {
            "If an operator cancelled it, the audit log says who. Try it again if you still want it."
        }
        ("internal_error", _) => {
            "The log has the details. Try it again; if it fails again, report it."
        }
        ("rate_limited", _) => "Lower the rate of the site, then try it again later.",
        ("network_error", _) => "Check that the host exists and answers, then try it again.",
        ("timeout", _) => "Try it again later, with a longer deadline if it had one.",
        ("http_error", Some(404 | 410)) => {
            "The page does not exist: check the URL. Trying again is unlikely to help."
        }
        ("http_error", Some(401 | 403)) => {
            "The site does not allow it: check the URL in a browser. Trying again is unlikely to help."
        }
        ("http_error", Some(500..)) => "The site has a problem: try it again later.",
        _ => "Check the URL, then try it again.",
    };
    (happened, advice.to_owned())
}

fn waiting(detail: &MessageDetail, site: Option<&SiteRow>) -> (String, String) {
    if let Some(other) = detail.follows {
        let happened = format!("It waits for the result of an identical message, {other}.");
        return (happened, String::new());
    }
    let name = &detail.message.site;
    let span = |seconds: Option<f64>| crate::dashboard::sites::maybe_seconds(&seconds);
    if let Some(site) = site {
        let held = match site.held_up_by {
            Some("paused") => {
                let by = site.paused.as_ref().map_or("an operator", |order| &order.by);
                Some((format!("{name} is paused by {by}."), format!("Resume {name} to fetch it.")))
            }
            Some("breaker") => {
                let next = span(site.breaker.next_probe_in_seconds);
                let failures = site.breaker.consecutive_failures;
                let happened = format!(
                    "{name} is down after {failures} failures in a row; next probe in {next}."
                );
                Some((happened, format!("Wait, or reset the breaker of {name} if it works again.")))
            }
            Some("penalty") => {
                let wait = span(site.rests_for_seconds);
                let happened = format!("{name} asked us to wait (Retry-After) for another {wait}.");
                Some((happened, String::new()))
            }
            Some("robots") => {
                let why = site.robots.iter().find_map(|robots| robots.unreachable.as_deref());
                let why = why.unwrap_or("no response");
                let happened = format!("The robots.txt of {name} cannot be read: {why}.");
                Some((happened, format!("Check {name} in a browser; it is tried again by itself.")))
            }
            _ => None,
        };
        if let Some(held) = held {
            return held;
        }
    }
    let last = detail.attempts.last().map(|attempt| attempt.told.trim_end_matches('.'));
    match (last, detail.message.due_at) {
        (Some(told), Some(at)) => {
            let at = words::moment(at);
            (
                format!("The last attempt failed: {told}. The next one is due at {at} UTC."),
                String::new(),
            )
        }
        (Some(told), None) => {
            (format!("The last attempt failed: {told}. It waits for the next one."), String::new())
        }
        (None, _) => {
            let slot = site.and_then(|site| site.next_slot_in_seconds).filter(|wait| *wait > 0.0);
            let when = slot.map_or(String::new(), |wait| {
                format!("; the next slot is in {}", span(Some(wait)))
            });
            (format!("It waits for its turn at {name}{when}."), String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::{MessageId, OutboxMessage};
    use fetchwell_engine::ports::oversight::MessageSummary;
    use fetchwell_policy::time::Time;

    use super::*;

    fn detail(state: MessageState, result: Option<FetchResult>) -> MessageDetail {
        let id: MessageId = "msg_018bcfe56800ffffffffffffffffffff".parse().unwrap();
        let text = |text: &str| text.to_owned();
        let message = MessageSummary {
            id,
            url: text("http://a.test/"),
            site: text("a.test"),
            retailer: text("r"),
            correlation_id: text("c"),
            caller: text("ops"),
            state,
            reason: None,
            created_at: Time::EPOCH,
            due_at: None,
            ended_at: None,
            attempts: 1,
            retry_of: None,
            retried_as: None,
        };
        let outbox = result.map(|result| OutboxMessage {
            cursor: 1,
            message: id,
            url: text("http://a.test/"),
            retailer: text("r"),
            correlation_id: text("c"),
            created_at: Time::EPOCH,
            result,
        });
        MessageDetail {
            message,
            deadline: None,
            callback_url: None,
            follows: None,
            attempts: Vec::new(),
            outbox,
        }
    }

    #[test]
    fn each_status_of_a_result_has_its_sentence_and_its_advice() {
        for (status, http_status, error, happened, advice) in [
            (
                "http_error",
                Some(404),
                "the server answered 404",
                "After 1 attempt: the server answered 404.",
                "does not exist",
            ),
            (
                "http_error",
                Some(503),
                "the server answered 503",
                "After 1 attempt: the server answered 503.",
                "later",
            ),
            (
                "refused_by_robots",
                None,
                "Disallow: /",
                "robots.txt of the site disallows this URL: Disallow: /.",
                "permission",
            ),
            ("timeout", None, "no response.", "After 1 attempt: no response.", "deadline"),
            (
                "cancelled",
                None,
                "cancelled with its batch",
                "It has ended: cancelled with its batch.",
                "audit log",
            ),
        ] {
            let result = FetchResult {
                status: status.to_owned(),
                http_status,
                error: Some(error.to_owned()),
                attempts: 1,
                ..FetchResult::default()
            };
            let found = reason(&detail(MessageState::Failed, Some(result)), None);
            assert_eq!(found.happened, happened);
            assert!(found.advice.contains(advice), "{}", found.advice);
        }
        let given_up = FetchResult {
            status: "timeout".to_owned(),
            error: Some("no response".to_owned()),
            attempts: 2,
            ..FetchResult::default()
        };
        let given_up = reason(&detail(MessageState::Failed, Some(given_up)), None);
        assert_eq!(given_up.happened, "After 2 attempts: no response.");
        let lost = reason(&detail(MessageState::Failed, None), None);
        assert!(lost.happened.contains("without a result") && lost.advice == "Try it again.");
        let waits = reason(&detail(MessageState::Queued, None), None);
        assert_eq!(waits.happened, "It waits for its turn at a.test.");
    }
}
