//! What is done with one message: pure.

use fetchwell_engine::inbox::FetchResult;
use fetchwell_engine::journey::Arrival;
use fetchwell_engine::ports::{Lease, Plan, Settlement};
use fetchwell_engine::web::{Answer, Timeouts};
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::{History, RetryRule, SiteRule};
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::options::Options;
use super::storied::Storied;
use crate::doors::foregone::{Foregone, by_payload};
use crate::doors::one_page::{End, OnePage};

/// The retriever's rule with so many attempts; a site that asks us to slow down has its own number.
pub fn retry_rule(max_attempts: u32) -> RetryRule {
    RetryRule {
        server_error_attempts: max_attempts,
        site: SiteRule::Attempts(max_attempts),
        ..RetryRule::RETRIEVER
    }
}

/// Makes the plan of a message. Its payload is its [`Options`]; the store knows the rest.
pub fn plan(
    lease: &Lease,
    rule: RetryRule,
    timeouts: Timeouts,
    max_redirects: u32,
) -> Box<dyn Plan<FetchResult>> {
    by_payload(lease, |options: Options| match WebUrl::parse(&lease.job.url) {
        Ok(url) => {
            let headers = options.request_headers();
            let before = lease.history;
            let page = OnePage::new(lease, url, rule, move |arrival, _| {
                end(&arrival, options.extract, &before)
            });
            let page = page.with_headers(headers).with_timeouts(timeouts);
            Box::new(Storied::new(page.with_max_redirects(max_redirects)))
        }
        // The API answers such a URL at once; one that comes by another way ends here.
        Err(fault) => {
            let result = failed("refused", format!("refused: {fault}"), lease.history.failures());
            Box::new(Foregone(move |_| (vec![result.clone()], Settlement::Done)))
        }
    })
}

/// The result of a message that was given up without its plan.
pub fn obituary(lease: &Lease, reason: &str) -> FetchResult {
    failed("network_error", format!("given up: {reason}"), lease.history.failures())
}

fn end(arrival: &Arrival, extract: bool, before: &History) -> End<FetchResult> {
    let status = status(&arrival.happened);
    let answer = arrival.answer.as_ref();
    let mut result = FetchResult {
        content_type: answer.and_then(|answer| answer.header("content-type")).map(str::to_owned),
        http_status: arrival.happened.status(),
        ..failed(status, String::new(), arrival.attempts)
    };
    match answer {
        Some(answer) if status == FetchResult::SUCCESS => {
            fill(&mut result, answer, extract, arrival);
        }
        _ => result.error = Some(why_not(arrival, before)),
    }
    // A result is a result, whatever it says: the caller has its answer.
    let skipped = arrival.happened == Happened::RobotsDisallow;
    (vec![result], if skipped { Settlement::Skipped } else { Settlement::Done })
}

pub(super) fn failed(status: &str, error: String, attempts: u32) -> FetchResult {
    FetchResult {
        status: status.to_owned(),
        content: None,
        content_type: None,
        http_status: None,
        error: Some(error),
        extracted: None,
        attempts,
        attempt: None,
    }
}

/// The retriever's column of the contract's table.
pub(super) fn status(happened: &Happened) -> &'static str {
    match happened {
        // Not modified is what a conditional request asks for.
        Happened::Answered(200..=299 | 304) => FetchResult::SUCCESS,
        Happened::Answered(429) => "rate_limited",
        Happened::Answered(_) | Happened::BadAnswer(_) => "http_error",
        Happened::RobotsDisallow => FetchResult::REFUSED_BY_ROBOTS,
        Happened::TimedOut(_) | Happened::DeadlinePassed => "timeout",
        Happened::Refused(_) => "refused",
        // Our own faults are retried until the deadline: they never end a message.
        Happened::Network(_)
        | Happened::NoSuchHost
        | Happened::SiteStayedDown { .. }
        | Happened::WaitTooLong { .. }
        | Happened::OurFault(_) => "network_error",
    }
}

fn fill(result: &mut FetchResult, answer: &Answer, extract: bool, arrival: &Arrival) {
    result.error = None;
    if answer.status == 304 {
        return;
    }
    let content_type = answer.header("content-type");
    if !fetchwell_extract::is_text(content_type, &answer.body) {
        result.error = Some("the body is not text, so it is not stored".to_owned());
        return;
    }
    let text = fetchwell_extract::decode(&answer.body, content_type).text;
    if extract && fetchwell_extract::is_html(content_type, &answer.body) {
        result.extracted = extracted(&text, arrival.final_url.as_str());
    }
    // PostgreSQL's text has no NUL, and neither has any page that means something by it.
    result.content = Some(if text.contains('\0') { text.replace('\0', "") } else { text.into() });
}

/// What `"extract": true` adds to a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Extracted {
    /// The headline.
    pub title: String,
    /// The article's text.
    pub text: String,
    /// The same as Markdown.
    pub markdown: String,
}

fn extracted(html: &str, url: &str) -> Option<String> {
    let article = fetchwell_extract::extract(html, &url::Url::parse(url).ok()?);
    let clean = |text: String| text.replace('\0', "");
    let members = Extracted {
        title: clean(article.title),
        text: clean(article.text),
        markdown: clean(article.markdown),
    };
    serde_json::to_string(&members).ok()
}

/// What went wrong, in words. A deadline that passed says little by itself: what it waited for is told.
fn why_not(arrival: &Arrival, before: &History) -> String {
    if arrival.happened != Happened::DeadlinePassed {
        return match &arrival.why.robots {
            Some(line) if arrival.happened == Happened::RobotsDisallow => {
                format!("{} ({line})", arrival.happened)
            }
            _ => arrival.happened.to_string(),
        };
    }
    let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let mut causes = Vec::new();
    if before.site_failures > 0 {
        causes.push(format!("its site had failed {}", times(before.site_failures)));
    }
    if before.paced > 0 {
        causes.push(format!("its site had asked us to slow down {}", times(before.paced)));
    }
    if before.url_failures > 0 {
        causes.push(format!("the page had failed {}", times(before.url_failures)));
    }
    causes.extend(arrival.why.held_up_by.clone());
    if causes.is_empty() {
        causes.push("its turn had not come".to_owned());
    }
    format!("{} while it waited: {}", arrival.happened, causes.join(", "))
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::{AnswerFault, NetworkFault, Phase, TlsFault};

    use super::*;
    use crate::doors::one_page::DEFAULT_MAX_REDIRECTS;
    use crate::doors::samples::{end_of, end_with, lease, outcome};

    fn message(options: &str) -> Lease {
        lease("http://a.test/", options)
    }

    fn planned(lease: &Lease) -> Box<dyn Plan<FetchResult>> {
        plan(lease, retry_rule(3), Timeouts::default(), DEFAULT_MAX_REDIRECTS)
    }

    #[test]
    fn the_contracts_column() {
        for (happened, expected) in [
            (Happened::Answered(204), "success"),
            (Happened::Answered(304), "success"),
            (Happened::RobotsDisallow, "refused_by_robots"),
            (Happened::Network(NetworkFault::Tls(TlsFault::Expired)), "network_error"),
            (Happened::TimedOut(Phase::Read), "timeout"),
            (Happened::Answered(503), "http_error"),
            (Happened::Answered(429), "rate_limited"),
            (Happened::Answered(500), "http_error"),
            (Happened::Answered(403), "http_error"),
            (Happened::Answered(404), "http_error"),
            (Happened::BadAnswer(AnswerFault::TooLarge), "http_error"),
            (Happened::Refused(String::new()), "refused"),
            (Happened::DeadlinePassed, "timeout"),
        ] {
            // The last attempt that each is allowed.
            let mut spent = message("{}");
            spent.history.url_failures = 2;
            spent.history.site_failures = 2;
            spent.history.paced = 4;
            let (results, settlement) = end_of(planned(&spent), happened.clone());
            assert_eq!(results.len(), 1, "{happened:?}");
            assert_eq!(results[0].status, expected, "{happened:?}");
            assert_eq!(results[0].error.is_none(), expected == "success", "{happened:?}");
            let skipped = expected == "refused_by_robots";
            let ended = if skipped { Settlement::Skipped } else { Settlement::Done };
            assert_eq!(settlement, ended, "{happened:?}");
        }
    }

    #[test]
    fn the_page_of_errors_lists_all_statuses() {
        let happened = crate::documented::everything_that_happens();
        let statuses = happened.iter().map(status).chain([FetchResult::CANCELLED]);
        crate::documented::lists_exactly("Statuses of results", statuses);
    }

    #[test]
    fn a_failure_is_tried_again_as_often_as_the_setting_says() {
        for (attempts, before, again) in [(3, 1, true), (3, 2, false), (1, 0, false), (5, 3, true)]
        {
            let mut lease = message("{}");
            lease.history.site_failures = before;
            let (_, settlement) = end_of(
                plan(&lease, retry_rule(attempts), Timeouts::default(), DEFAULT_MAX_REDIRECTS),
                Happened::Answered(503),
            );
            assert_eq!(
                matches!(settlement, Settlement::Retry { .. }),
                again,
                "{attempts} {before}"
            );
        }
    }

    #[test]
    fn each_attempt_is_told_with_its_result_or_beside_its_retry() {
        let (results, settlement) = end_of(planned(&message("{}")), Happened::Answered(503));
        assert!(matches!(settlement, Settlement::Retry { .. }));
        let attempt = results[0].attempt.clone().unwrap();
        assert_eq!((attempt.http_status, attempt.sent), (Some(503), true));
        assert!(attempt.told.contains("503"), "{attempt:?}");
        let (results, settlement) = end_of(planned(&message("{}")), Happened::Answered(404));
        assert_eq!(settlement, Settlement::Done);
        assert_eq!(results[0].attempt.clone().unwrap().http_status, Some(404));
    }

    #[test]
    fn a_deadline_that_passed_says_what_it_waited_for() {
        let mut lease = message("{}");
        let error = |lease: &Lease| {
            end_of(planned(lease), Happened::DeadlinePassed).0.remove(0).error.unwrap()
        };
        assert!(error(&lease).contains("its turn had not come"));
        lease.history.site_failures = 1;
        lease.history.paced = 2;
        let said = error(&lease);
        assert!(said.contains("failed once") && said.contains("slow down 2 times"), "{said}");
    }

    #[test]
    fn what_was_asked_for_besides_the_page_is_there() {
        let page = "<html><title>A title</title><p>Some words.</p></html>";
        let mut answered = outcome(Happened::Answered(200), page);
        if let Some(answer) = &mut answered.answer {
            answer.headers.insert("content-type", "text/html".parse().unwrap());
        }
        let (results, _) = end_with(planned(&message(r#"{"extract":true}"#)), answered);
        assert_eq!(results[0].content.as_deref(), Some(page));
        let extracted: serde_json::Value =
            serde_json::from_str(results[0].extracted.as_deref().unwrap()).unwrap();
        assert_eq!(extracted["title"], "A title");
        assert!(extracted["markdown"].as_str().unwrap().contains("Some words."));
    }

    #[test]
    fn a_message_that_makes_no_sense_has_a_result_too() {
        let (results, settlement) =
            end_of(planned(&lease("ftp://a.test/", "{}")), Happened::Answered(200));
        assert_eq!((results[0].status.as_str(), settlement), ("refused", Settlement::Done));
        assert!(matches!(
            end_of(planned(&message("")), Happened::Answered(200)).1,
            Settlement::Dead { .. }
        ));
    }
}
