//! The plan of a URL.

use bytes::Bytes;
use fetchwell_engine::pipeline::{GiveUp, INTERNAL};
use fetchwell_engine::plan::immediate::ImmediatePlan;
use fetchwell_engine::plan::one_page::{DEFAULT_MAX_REDIRECTS, OnePage, PlanEnd};
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan};
use fetchwell_engine::web::Answer;
use fetchwell_policy::digest::sha256_hex;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

use super::record::{DeadLetterDetails, LetterFailure, PageRecord, WebpageFetched, cache_key};

/// The rules for one URL.
#[derive(Clone, Copy, Debug)]
pub struct PageRules {
    pub retry: RetryRule,
    pub max_redirects: u32,
}

impl Default for PageRules {
    fn default() -> PageRules {
        PageRules { retry: RetryRule::PAGES, max_redirects: DEFAULT_MAX_REDIRECTS }
    }
}

pub fn plan(lease: &Lease, rules: PageRules) -> Box<dyn Plan<PageRecord>> {
    let queued = lease.job.url.clone();
    let accepted_at = lease.accepted_at;
    match WebUrl::parse(&queued) {
        Ok(url) => {
            let page = OnePage::new(lease, url, rules.retry, move |fetch_end, moment| {
                conclude(&queued, accepted_at, &fetch_end, moment.wall)
            });
            Box::new(page.with_max_redirects(rules.max_redirects))
        }
        Err(fault) => Box::new(ImmediatePlan(move |moment: Moment| {
            let happened = FetchOutcome::Refused(fault.to_string());
            dead_letter(&queued, accepted_at, &happened, 0, moment.wall)
        })),
    }
}

/// The dead letter of a URL that the engine gave up.
pub fn give_up_record(lease: &Lease, cause: GiveUp, error: &str, now: Time) -> PageRecord {
    let failures = lease.history.failures();
    let internal = DeadLetterDetails {
        failure: LetterFailure::Internal,
        reason: INTERNAL.to_owned(),
        error: Some(error.to_owned()),
        status_code: None,
        attempts: failures,
        first_at: rfc3339(lease.accepted_at),
        last_at: rfc3339(now),
    };
    let details = match cause {
        GiveUp::Internal => internal,
        GiveUp::TooLarge => DeadLetterDetails {
            failure: LetterFailure::UrlSpecific,
            reason: error.to_owned(),
            error: None,
            attempts: failures.saturating_add(1),
            ..internal
        },
    };
    PageRecord::DeadLetter { url: lease.job.url.clone(), details }
}

fn conclude(
    queued: &str,
    accepted_at: Time,
    fetch_end: &FetchEnd,
    now: Time,
) -> PlanEnd<PageRecord> {
    match (&fetch_end.happened, &fetch_end.answer) {
        (FetchOutcome::RobotsDisallow, _) => (Vec::new(), Settlement::Skipped),
        (FetchOutcome::Answered(200..=299), Some(answer)) => {
            (vec![fetched(queued, answer, now)], Settlement::Done)
        }
        (happened, _) => dead_letter(queued, accepted_at, happened, fetch_end.attempts, now),
    }
}

fn fetched(queued: &str, answer: &Answer, now: Time) -> PageRecord {
    let content_type = answer.header("content-type");
    let content = if fetchwell_extract::is_text(content_type, &answer.body) {
        let decoded = fetchwell_extract::decode(&answer.body, content_type);
        Bytes::from(decoded.text.into_owned())
    } else {
        answer.body.clone()
    };
    let event = WebpageFetched {
        url: queued.to_owned(),
        cache_key: cache_key(queued),
        status_code: answer.status,
        content_type: content_type.map(str::to_owned),
        content_length: content.len(),
        content_hash: sha256_hex(&content),
        fetched_at: rfc3339(now),
    };
    PageRecord::Fetched { content, event }
}

fn dead_letter(
    queued: &str,
    accepted_at: Time,
    happened: &FetchOutcome,
    attempts: u32,
    now: Time,
) -> PlanEnd<PageRecord> {
    let reason = happened.to_string();
    let details = DeadLetterDetails {
        failure: LetterFailure::UrlSpecific,
        reason: reason.clone(),
        error: None,
        status_code: happened.status(),
        attempts,
        first_at: rfc3339(accepted_at),
        last_at: rfc3339(now),
    };
    let letter = PageRecord::DeadLetter { url: queued.to_owned(), details };
    (vec![letter], Settlement::Dead { reason })
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::{AnswerFault, NameFault, NetworkFault};
    use fetchwell_testkit::samples::{NOW, end_of, lease};

    use super::*;

    /// `done`, `skipped`, `retry` or `dead` after the first attempt.
    fn first_attempt(happened: FetchOutcome) -> &'static str {
        match end_of(plan(&lease("http://a.test/", ""), PageRules::default()), happened).1 {
            Settlement::Done => "done",
            Settlement::Skipped => "skipped",
            Settlement::Retry { .. } => "retry",
            Settlement::Dead { .. } => "dead",
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_contracts_column() {
        for (happened, expected) in [
            (FetchOutcome::Answered(200), "done"),
            (FetchOutcome::RobotsDisallow, "skipped"),
            (FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName)), "retry"),
            (FetchOutcome::Answered(503), "retry"),
            (FetchOutcome::Answered(429), "retry"),
            (FetchOutcome::Answered(500), "retry"),
            (FetchOutcome::Answered(403), "retry"),
            (FetchOutcome::Answered(404), "dead"),
            (FetchOutcome::BadAnswer(AnswerFault::TooLarge), "dead"),
            (FetchOutcome::Refused("a private address".into()), "dead"),
        ] {
            assert_eq!(first_attempt(happened.clone()), expected, "{happened:?}");
        }
    }

    #[test]
    fn the_third_500_is_a_dead_letter_with_its_details() {
        let mut thrice = lease("http://a.test/", "");
        thrice.history.url_failures = 2;
        let (records, settlement) =
            end_of(plan(&thrice, PageRules::default()), FetchOutcome::Answered(500));
        let [PageRecord::DeadLetter { url, details }] = records.as_slice() else {
            panic!("{records:?}")
        };
        assert_eq!(url, "http://a.test/");
        let json = serde_json::to_value(details).unwrap();
        let expected = serde_json::json!({
            "failure": "url_specific", "reason": "the server answered 500", "status_code": 500,
            "attempts": 3, "first_at": rfc3339(NOW), "last_at": rfc3339(NOW),
        });
        assert_eq!(json, expected);
        assert_eq!(settlement, Settlement::Dead { reason: "the server answered 500".into() });
    }

    #[test]
    fn a_fault_of_ours_is_no_failure_of_the_url() {
        let lease = lease("http://a.test/", "");
        let PageRecord::DeadLetter { details, .. } =
            give_up_record(&lease, GiveUp::Internal, "it panicked", NOW)
        else {
            panic!("it is no letter")
        };
        let expected = serde_json::json!({
            "failure": "internal", "reason": "internal", "error": "it panicked",
            "status_code": null, "attempts": 0, "first_at": rfc3339(NOW), "last_at": rfc3339(NOW),
        });
        assert_eq!(serde_json::to_value(details).unwrap(), expected);
    }

    #[test]
    fn a_page_too_large_for_the_store_is_a_failure_of_the_url() {
        let lease = lease("http://a.test/", "");
        let PageRecord::DeadLetter { details, .. } =
            give_up_record(&lease, GiveUp::TooLarge, "a row of 2 GiB", NOW)
        else {
            panic!("it is no letter")
        };
        let expected = serde_json::json!({
            "failure": "url_specific", "reason": "a row of 2 GiB", "status_code": null,
            "attempts": 1, "first_at": rfc3339(NOW), "last_at": rfc3339(NOW),
        });
        assert_eq!(serde_json::to_value(details).unwrap(), expected);
    }

    #[test]
    fn a_bad_url_is_a_dead_letter_without_an_attempt() {
        let nonsense = plan(&lease("gopher://a", ""), PageRules::default());
        let (records, settlement) = end_of(nonsense, FetchOutcome::Answered(200));
        assert!(matches!(settlement, Settlement::Dead { .. }));
        assert!(matches!(&records[..], [PageRecord::DeadLetter { details, .. }]
            if details.attempts == 0));
    }
}
