//! The audit entries of submissions.

use std::collections::BTreeMap;

use fetchwell_engine::ports::inbox::{AuditEntry, Submission};
use fetchwell_policy::time::Time;

/// One entry for all submissions in a commit that come from one caller and one address; it names each of them.
pub(crate) fn entries(submissions: &[&Submission], at: Time) -> Vec<AuditEntry> {
    let mut details: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for submission in submissions {
        let Some(first) = submission.messages.first() else { continue };
        let detail = details.entry((&submission.caller, &submission.from)).or_default();
        if !detail.is_empty() {
            detail.push_str("; ");
        }
        detail.push_str(&format!("{} messages, first {}", submission.messages.len(), first.id));
    }
    let entry = |((caller, from), detail): ((&str, &str), String)| AuditEntry {
        at,
        caller: Some(caller.to_owned()),
        action: "submit".to_owned(),
        detail,
        from: from.to_owned(),
    };
    details.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_engine::ports::inbox::{MessageId, NewMessage};
    use fetchwell_policy::url::Site;

    use super::*;

    fn submission(caller: &str, from: &str, ids: &[u8]) -> Submission {
        let site = Site::parse("a.test").unwrap();
        let message = |id: &u8| {
            let url = "http://a.test/".to_owned();
            NewMessage::new(MessageId([*id; 16]), url, site.clone(), Duration::ZERO)
        };
        let messages = ids.iter().map(message).collect();
        Submission {
            caller: caller.into(),
            from: from.into(),
            idempotency: None,
            messages,
            batch: None,
        }
    }

    #[test]
    fn each_submission_is_named_under_its_caller_and_address() {
        let all = [
            submission("a", "1.1.1.1", &[1]),
            submission("b", "1.1.1.1", &[2]),
            submission("a", "1.1.1.1", &[3, 4]),
            submission("a", "2.2.2.2", &[5]),
        ];
        let kept = entries(&all.iter().collect::<Vec<_>>(), Time::from_secs(7));
        let id = |id: u8| MessageId([id; 16]);
        let told: Vec<_> = kept
            .iter()
            .map(|kept| (kept.caller.as_deref().unwrap(), kept.from.as_str(), &kept.detail))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "a",
                    "1.1.1.1",
                    &format!("1 messages, first {}; 2 messages, first {}", id(1), id(3))
                ),
                ("a", "2.2.2.2", &format!("1 messages, first {}", id(5))),
                ("b", "1.1.1.1", &format!("1 messages, first {}", id(2))),
            ]
        );
        assert!(kept.iter().all(|kept| kept.action == "submit" && kept.at == Time::from_secs(7)));
        assert!(entries(&[], Time::from_secs(7)).is_empty());
    }
}
