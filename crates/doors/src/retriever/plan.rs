//! The plan of a message. It is pure.

use std::sync::Arc;

use fetchwell_engine::pipeline::GiveUp;
use fetchwell_engine::plan::immediate::{ImmediatePlan, decode_payload};
use fetchwell_engine::plan::one_page::{OnePage, PlanEnd, decoding_bytes};
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::inbox::details::{CrawlPlace, FetchDetails, kept_headers};
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_engine::ports::inbox::{FetchResult, ResultBody};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan};
use fetchwell_engine::web::{Answer, Timeouts};
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome, SiteFault};
use fetchwell_policy::retry::{History, RetryRule, SiteRule};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

use super::bodies::BodyRules;
use super::reading::Wanted;
use super::with_timeline::WithTimeline;
use crate::read_limits::ReadLimits;

/// What a result says after a 304.
const NOT_MODIFIED: &str = "not modified (304): the page is still the one that If-None-Match or If-Modified-Since \
                            names, so the response has no content";

/// The `error` of a result whose body is not text.
const NOT_TEXT: &str =
    "the body is not text, so it is not in `content`; GET /messages/{id}/body returns it";
const NOT_TEXT_AND_NOT_KEPT: &str = "the body is not text, so it is not in `content`, and it was not kept: it is empty, or \
                                     larger than retriever.body_max_size or retriever.body_quota";

/// The retriever's retry rule with this many attempts. Responses with 429 have a limit of their own.
pub fn retry_rule(max_attempts: u32) -> RetryRule {
    RetryRule {
        server_error_attempts: max_attempts,
        site: SiteRule::Attempts(max_attempts),
        ..RetryRule::RETRIEVER
    }
}

/// Makes the plan of a message. The payload holds its [`Options`]; the store holds the rest.
pub fn plan(
    lease: &Lease,
    rule: RetryRule,
    timeouts: Timeouts,
    max_redirects: u32,
    limits: ReadLimits,
    bodies: BodyRules,
) -> Box<dyn Plan<FetchResult>> {
    decode_payload(lease, |options: Options| match WebUrl::parse(&lease.job.url) {
        Ok(url) => {
            let headers = options.request_headers();
            let before = lease.history;
            let results = Arc::new(PageResults::new(&options, limits, bodies));
            let weighed = results.clone();
            let page = OnePage::new(lease, url, rule, move |fetch_end, moment| {
                end(fetch_end, moment, &results, &before)
            });
            let page = page.with_headers(headers).with_timeouts(timeouts);
            let page = page.with_working_bytes(move |body| weighed.working_bytes(body));
            Box::new(WithTimeline::new(page.with_max_redirects(max_redirects)))
        }
        // The API refuses such a URL at once; this handles one that was queued in another way.
        Err(fault) => {
            let result = failed("refused", format!("refused: {fault}"), lease.history.failures());
            Box::new(ImmediatePlan(move |_| (vec![result.clone()], Settlement::Done)))
        }
    })
}

/// The result of a message that the engine gave up.
pub fn give_up_record(lease: &Lease, cause: GiveUp, reason: &str) -> FetchResult {
    let failures = lease.history.failures();
    let error = format!("given up: {reason}");
    match cause {
        GiveUp::Internal => failed(FetchResult::INTERNAL_ERROR, error, failures),
        GiveUp::TooLarge => {
            let over_the_limit = FetchOutcome::BadAnswer(AnswerFault::TooLarge);
            failed(status(&over_the_limit), error, failures.saturating_add(1))
        }
    }
}

fn end(
    fetch_end: FetchEnd,
    moment: Moment,
    results: &PageResults,
    before: &History,
) -> PlanEnd<FetchResult> {
    // Even a failure is a result for the caller, so the message is done.
    let skipped = fetch_end.happened == FetchOutcome::RobotsDisallow;
    let result = results.of(fetch_end, moment.wall, before, None);
    (vec![result], if skipped { Settlement::Skipped } else { Settlement::Done })
}

/// Makes the results of pages.
pub(crate) struct PageResults {
    wanted: Wanted,
    bodies: BodyRules,
}

impl PageResults {
    pub(crate) fn new(options: &Options, limits: ReadLimits, bodies: BodyRules) -> PageResults {
        PageResults { wanted: Wanted::of(options, limits), bodies }
    }

    /// The memory that [`of`](PageResults::of) needs besides a given body.
    pub(crate) fn working_bytes(&self, body: &[u8]) -> usize {
        match self.wanted.is_any() {
            true => self.wanted.working_bytes(body),
            false => decoding_bytes(body.len()),
        }
    }

    /// The result of a page that was fetched or failed. `before`: its failures before the last attempt.
    pub(crate) fn of(
        &self,
        mut fetch_end: FetchEnd,
        wall: Time,
        before: &History,
        crawl: Option<CrawlPlace>,
    ) -> FetchResult {
        let read = match &fetch_end.answer {
            Some(answer) if status(&fetch_end.happened) == FetchResult::SUCCESS => {
                read(answer, &self.wanted, &fetch_end).map(Some)
            }
            _ => Ok(None),
        };
        let read = read.unwrap_or_else(|happened| {
            fetch_end.happened = happened;
            None
        });
        let answer = fetch_end.answer.as_ref();
        let happened = &fetch_end.happened;
        let unread =
            || FetchResult { error: Some(why_not(&fetch_end, before)), ..FetchResult::default() };
        let mut result = FetchResult {
            status: status(happened).to_owned(),
            content_type: answer
                .and_then(|answer| answer.header("content-type"))
                .map(str::to_owned),
            http_status: happened.status(),
            attempts: fetch_end.attempts,
            ..read.unwrap_or_else(unread)
        };
        let mut details = details(&fetch_end, wall, crawl);
        if let Some(answer) = fetch_end.answer.take() {
            let body_bytes = answer.body.len() as u64;
            result.body = self.bodies.keep(answer.body, result.content.as_deref());
            let is_unkept = result.body == ResultBody::Absent && body_bytes > 0;
            details.unkept_body_bytes = is_unkept.then_some(body_bytes);
        }
        if result.is_success() && result.content.is_none() && result.error.is_none() {
            let is_kept = result.body != ResultBody::Absent;
            result.error = Some(if is_kept { NOT_TEXT } else { NOT_TEXT_AND_NOT_KEPT }.to_owned());
        }
        result.details = details.to_json();
        result
    }

    /// The result of a page whose content is not kept.
    pub(crate) fn without_page(
        fetch_end: &FetchEnd,
        wall: Time,
        status: &str,
        error: String,
        crawl: Option<CrawlPlace>,
    ) -> FetchResult {
        let answer = fetch_end.answer.as_ref();
        FetchResult {
            content_type: answer
                .and_then(|answer| answer.header("content-type"))
                .map(str::to_owned),
            http_status: fetch_end.happened.status(),
            details: details(fetch_end, wall, crawl).to_json(),
            ..failed(status, error, fetch_end.attempts)
        }
    }

    /// The result of a page of a crawl that was not fetched.
    pub(crate) fn refused(
        url: &str,
        reason: &str,
        attempts: u32,
        crawl: CrawlPlace,
    ) -> FetchResult {
        let details = PageResults::place_only(url, crawl);
        FetchResult { details, ..failed("refused", format!("refused: {reason}"), attempts) }
    }

    /// The details of a result of a crawl that has no others.
    pub(crate) fn place_only(url: &str, crawl: CrawlPlace) -> Option<String> {
        let final_url = url.to_owned();
        FetchDetails { final_url, crawl: Some(crawl), ..FetchDetails::default() }.to_json()
    }
}

fn details(fetch_end: &FetchEnd, wall: Time, crawl: Option<CrawlPlace>) -> FetchDetails {
    FetchDetails {
        final_url: fetch_end.final_url.as_str().to_owned(),
        redirects: fetch_end.redirects.clone(),
        fetched_at: fetch_end.was_sent.then_some(wall),
        headers: fetch_end.answer.as_ref().map(|answer| kept_headers(&answer.headers)),
        unkept_body_bytes: None,
        crawl,
    }
}

pub(super) fn failed(status: &str, error: String, attempts: u32) -> FetchResult {
    FetchResult {
        status: status.to_owned(),
        error: Some(error),
        attempts,
        ..FetchResult::default()
    }
}

/// Maps an outcome as the retriever column of the contract's table does.
pub(super) fn status(happened: &FetchOutcome) -> &'static str {
    match happened {
        // A conditional request asks for 304.
        FetchOutcome::Answered(200..=299 | 304) => FetchResult::SUCCESS,
        FetchOutcome::Answered(429) => "rate_limited",
        FetchOutcome::Answered(_) | FetchOutcome::BadAnswer(_) => "http_error",
        FetchOutcome::RobotsDisallow => FetchResult::REFUSED_BY_ROBOTS,
        FetchOutcome::TimedOut(_) | FetchOutcome::DeadlinePassed => "timeout",
        FetchOutcome::Refused(_) => "refused",
        FetchOutcome::ProbesFailed { last, .. } => match last {
            SiteFault::Network => "network_error",
            SiteFault::TimedOut => "timeout",
            SiteFault::Answered(_) => "http_error",
        },
        FetchOutcome::Network(_)
        | FetchOutcome::NoSuchHost
        | FetchOutcome::SiteStayedDown { .. }
        | FetchOutcome::WaitTooLong { .. } => "network_error",
        // The engine retries our own faults; they never end a message.
        FetchOutcome::OurFault(_) => FetchResult::INTERNAL_ERROR,
    }
}

/// Reads the content of a page, or returns why it cannot be read. A body that is not text has no content.
fn read(
    answer: &Answer,
    wanted: &Wanted,
    fetch_end: &FetchEnd,
) -> Result<FetchResult, FetchOutcome> {
    let mut result = FetchResult::default();
    if answer.status == 304 {
        result.error = Some(NOT_MODIFIED.to_owned());
        return Ok(result);
    }
    let content_type = answer.header("content-type");
    if !fetchwell_extract::is_text(content_type, &answer.body) {
        result.extracted = wanted.read_binary(&answer.body);
        return Ok(result);
    }
    let text = fetchwell_extract::decode(&answer.body, content_type).text;
    result.extracted = wanted.read(answer, &text, fetch_end.final_url.as_str())?;
    result.content = Some(text.into_owned());
    Ok(result)
}

/// Describes what went wrong. A passed deadline explains little by itself, so the text adds what the message waited
/// for, or that a request was in progress.
fn why_not(fetch_end: &FetchEnd, before: &History) -> String {
    if fetch_end.happened != FetchOutcome::DeadlinePassed {
        return match &fetch_end.why.robots {
            Some(line) if fetch_end.happened == FetchOutcome::RobotsDisallow => {
                format!("{} ({line})", fetch_end.happened)
            }
            _ => fetch_end.happened.to_string(),
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
    causes.extend(fetch_end.why.held_up_by.clone());
    if fetch_end.was_sent {
        return format!("{} before there was an answer: {}", fetch_end.happened, causes.join(", "));
    }
    if causes.is_empty() {
        causes.push("its turn had not come".to_owned());
    }
    format!("{} while it waited: {}", fetch_end.happened, causes.join(", "))
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::{NetworkFault, Phase, TlsFault};

    use super::*;
    use crate::read_limits::READING;
    use crate::retriever::bodies::KEEPING;
    use fetchwell_engine::plan::one_page::DEFAULT_MAX_REDIRECTS;
    use fetchwell_engine::ports::plan::Step;
    use fetchwell_engine::web::Outcome;
    use fetchwell_testkit::samples::{MOMENT, end_of, end_with, lease, outcome};
    use serde_json::json;

    fn message(options: &str) -> Lease {
        lease("http://a.test/", options)
    }

    fn planned(lease: &Lease) -> Box<dyn Plan<FetchResult>> {
        plan_within(lease, retry_rule(3), READING)
    }

    fn plan_within(
        lease: &Lease,
        rule: RetryRule,
        limits: ReadLimits,
    ) -> Box<dyn Plan<FetchResult>> {
        plan(lease, rule, Timeouts::default(), DEFAULT_MAX_REDIRECTS, limits, KEEPING)
    }

    fn html(words: &str) -> Outcome {
        let page = format!("<html><title>A title</title><p>{words}</p></html>");
        let mut answered = outcome(FetchOutcome::Answered(200), &page);
        if let Some(answer) = &mut answered.answer {
            answer.headers.insert("content-type", "text/html".parse().unwrap());
        }
        answered
    }

    /// A page that takes too long is a failure of its URL, with that reason; only where it is to be read.
    #[test]
    fn a_page_that_takes_too_long_to_read_fails_with_that_reason() {
        let limits = ReadLimits { max_time: std::time::Duration::ZERO, ..READING };
        let planned = |options: &str| plan_within(&message(options), retry_rule(3), limits);
        let long = "Some words. ".repeat(10_000);
        let (results, settlement) = end_with(planned(r#"{"extract":true}"#), html(&long));
        assert_eq!((results[0].status.as_str(), settlement), ("http_error", Settlement::Done));
        assert!(results[0].error.as_ref().unwrap().contains("extract.max_time"), "{results:?}");
        assert_eq!((&results[0].content, &results[0].extracted), (&None, &None));
        let (results, _) = end_with(planned("{}"), html(&long));
        assert_eq!(results[0].status, "success");
    }

    #[test]
    fn a_message_that_is_given_up_for_a_fault_of_ours_says_so() {
        let result =
            give_up_record(&message("{}"), GiveUp::Internal, "it made the program panic: oh");
        assert_eq!(result.status, "internal_error");
        assert!(result.error.unwrap().contains("oh"));
    }

    #[test]
    fn a_result_too_large_for_the_store_fails_as_a_page_over_the_limit_does() {
        let result = give_up_record(&message("{}"), GiveUp::TooLarge, "a row of 2 GiB");
        assert_eq!((result.status.as_str(), result.attempts), ("http_error", 1));
        assert!(result.error.unwrap().contains("a row of 2 GiB"));
    }

    /// What is held counts until it is stored.
    #[test]
    fn the_plan_says_what_it_holds() {
        let mut plan = planned(&message(r#"{"extract":true}"#));
        plan.step(None, MOMENT);
        assert!(plan.working_bytes(&[b'x'; 1_000]) > 3_000);
        let outcome = html(&"Some words. ".repeat(1_000));
        assert!(matches!(plan.step(Some(outcome), MOMENT), Step::Finish(..)));
        assert!(plan.held_bytes().unwrap() > 24_000, "{:?}", plan.held_bytes());
    }

    #[test]
    fn the_contracts_column() {
        for (happened, expected) in [
            (FetchOutcome::Answered(204), "success"),
            (FetchOutcome::Answered(304), "success"),
            (FetchOutcome::RobotsDisallow, "refused_by_robots"),
            (FetchOutcome::Network(NetworkFault::Tls(TlsFault::Expired)), "network_error"),
            (FetchOutcome::TimedOut(Phase::Read), "timeout"),
            (FetchOutcome::Answered(503), "http_error"),
            (FetchOutcome::Answered(429), "rate_limited"),
            (FetchOutcome::Answered(500), "http_error"),
            (FetchOutcome::Answered(403), "http_error"),
            (FetchOutcome::Answered(404), "http_error"),
            (FetchOutcome::BadAnswer(AnswerFault::TooLarge), "http_error"),
            (FetchOutcome::Refused(String::new()), "refused"),
            (FetchOutcome::DeadlinePassed, "timeout"),
            (FetchOutcome::ProbesFailed { count: 1, last: SiteFault::Network }, "network_error"),
            (FetchOutcome::ProbesFailed { count: 1, last: SiteFault::TimedOut }, "timeout"),
            (FetchOutcome::ProbesFailed { count: 1, last: SiteFault::Answered(503) }, "http_error"),
        ] {
            // The last attempt that each is allowed.
            let mut spent = message("{}");
            spent.history.url_failures = 2;
            spent.history.site_failures = 2;
            spent.history.paced = 4;
            let (results, settlement) = end_of(planned(&spent), happened.clone());
            assert_eq!(results.len(), 1, "{happened:?}");
            assert_eq!(results[0].status, expected, "{happened:?}");
            let has_content = happened == FetchOutcome::Answered(204);
            assert_eq!(results[0].error.is_none(), has_content, "{happened:?}");
            let skipped = expected == "refused_by_robots";
            let ended = if skipped { Settlement::Skipped } else { Settlement::Done };
            assert_eq!(settlement, ended, "{happened:?}");
        }
    }

    #[test]
    fn the_page_of_errors_lists_all_statuses() {
        let happened = fetchwell_testkit::documented::everything_that_happens();
        let others = [FetchResult::CANCELLED, FetchResult::NOINDEX, FetchResult::REDIRECTED];
        let statuses = happened.iter().map(status).chain(others);
        fetchwell_testkit::documented::lists_exactly("Statuses of results", statuses);
    }

    #[test]
    fn a_failure_is_tried_again_as_often_as_the_setting_says() {
        for (attempts, before, again) in [(3, 1, true), (3, 2, false), (1, 0, false), (5, 3, true)]
        {
            let mut lease = message("{}");
            lease.history.site_failures = before;
            let planned = plan_within(&lease, retry_rule(attempts), READING);
            let (_, settlement) = end_of(planned, FetchOutcome::Answered(503));
            assert_eq!(
                matches!(settlement, Settlement::Retry { .. }),
                again,
                "{attempts} {before}"
            );
        }
    }

    #[test]
    fn each_attempt_is_told_with_its_result_or_beside_its_retry() {
        let (results, settlement) = end_of(planned(&message("{}")), FetchOutcome::Answered(503));
        assert!(matches!(settlement, Settlement::Retry { .. }));
        let attempt = results[0].attempt.clone().unwrap();
        assert_eq!((attempt.http_status, attempt.sent), (Some(503), true));
        assert!(attempt.told.contains("503"), "{attempt:?}");
        let (results, settlement) = end_of(planned(&message("{}")), FetchOutcome::Answered(404));
        assert_eq!(settlement, Settlement::Done);
        assert_eq!(results[0].attempt.clone().unwrap().http_status, Some(404));
    }

    #[test]
    fn a_deadline_that_passed_says_what_it_waited_for() {
        let mut lease = message("{}");
        let error = |lease: &Lease| {
            let mut late = outcome(FetchOutcome::DeadlinePassed, "");
            late.was_sent = false;
            end_with(planned(lease), late).0.remove(0).error.unwrap()
        };
        assert!(error(&lease).contains("its turn had not come"));
        lease.history.site_failures = 1;
        lease.history.paced = 2;
        let said = error(&lease);
        assert!(said.contains("failed once") && said.contains("slow down 2 times"), "{said}");
    }

    #[test]
    fn a_deadline_that_cut_a_request_off_says_so_and_counts_it() {
        let cause = "a request to a.test had been under way for 4.0 s";
        let mut late = outcome(FetchOutcome::DeadlinePassed, "");
        late.answer = None;
        late.why.held_up_by = Some(cause.to_owned());
        let (results, settlement) = end_with(planned(&message("{}")), late);
        assert_eq!(settlement, Settlement::Done);
        let result = &results[0];
        assert_eq!((result.status.as_str(), result.attempts), ("timeout", 1));
        assert!(result.attempt.as_ref().is_some_and(|attempt| attempt.sent), "{result:?}");
        let said = result.error.as_deref().unwrap();
        assert!(said.contains("before there was an answer") && said.contains(cause), "{said}");
    }

    #[test]
    fn failed_probes_of_its_site_are_attempts_of_a_message() {
        let mut lease = message("{}");
        lease.history.site_failures = 1;
        let down = FetchOutcome::ProbesFailed { count: 2, last: SiteFault::Answered(503) };
        let mut unsent = outcome(down, "");
        unsent.answer = None;
        unsent.was_sent = false;
        let (results, settlement) = end_with(planned(&lease), unsent);
        let result = &results[0];
        assert_eq!((result.status.as_str(), result.attempts), ("http_error", 3));
        assert_eq!((result.http_status, settlement), (Some(503), Settlement::Done));
    }

    #[test]
    fn what_was_asked_for_besides_the_page_is_there() {
        let words = "Some words. <a href=/b>A link</a>";
        let result = |options: &str| {
            let (mut results, _) = end_with(planned(&message(options)), html(words));
            results.remove(0)
        };
        assert!(result("{}").content.is_some_and(|content| content.contains(words)));
        assert_eq!(result("{}").extracted, None);
        let extracted = |options: &str| -> serde_json::Value {
            serde_json::from_str(result(options).extracted.as_deref().unwrap()).unwrap()
        };
        let article = extracted(r#"{"extract":true}"#);
        assert_eq!((&article["title"], article.get("links")), (&json!("A title"), None));
        assert!(article["markdown"].as_str().unwrap().contains("Some words."));
        let links = json!(["http://a.test/b"]);
        assert_eq!(extracted(r#"{"links":true}"#), json!({"links": links}));
        let both = extracted(r#"{"extract":true,"links":true}"#);
        assert_eq!((&both["title"], &both["links"]), (&json!("A title"), &links));
    }

    fn details(result: &FetchResult) -> FetchDetails {
        serde_json::from_str(result.details.as_deref().unwrap()).unwrap()
    }

    #[test]
    fn a_result_says_where_it_came_from_and_when() {
        let mut plan = planned(&message("{}"));
        plan.step(None, MOMENT);
        let mut moved = outcome(FetchOutcome::Answered(301), "");
        let headers = &mut moved.answer.as_mut().unwrap().headers;
        headers.insert("location", "http://b.test/new".parse().unwrap());
        assert!(matches!(plan.step(Some(moved), MOMENT), Step::Fetch(_)));
        let mut page = html("Some words.");
        let headers = &mut page.answer.as_mut().unwrap().headers;
        headers.insert("etag", "\"v1\"".parse().unwrap());
        headers.insert("set-cookie", "a=b".parse().unwrap());
        let Step::Finish(results, _) = plan.step(Some(page), MOMENT) else { panic!("it goes on") };
        let details = details(&results[0]);
        assert_eq!(details.final_url, "http://b.test/new");
        let redirects: Vec<_> =
            details.redirects.iter().map(|hop| (hop.url.as_str(), hop.status)).collect();
        assert_eq!(redirects, [("http://a.test/", 301)]);
        assert_eq!(details.fetched_at, Some(MOMENT.wall));
        assert_eq!(details.header("etag"), Some("\"v1\""));
        assert_eq!(details.header("set-cookie"), None);
    }

    #[test]
    fn what_was_not_requested_has_no_time_and_no_headers() {
        let mut refused = outcome(FetchOutcome::RobotsDisallow, "");
        refused.was_sent = false;
        let (results, _) = end_with(planned(&message("{}")), refused);
        let details = details(&results[0]);
        assert_eq!((details.fetched_at, details.headers), (None, None));
        assert_eq!(details.final_url, "http://a.test/");
    }

    #[test]
    fn a_304_says_so_and_keeps_its_etag() {
        let mut unchanged = outcome(FetchOutcome::Answered(304), "");
        let headers = &mut unchanged.answer.as_mut().unwrap().headers;
        headers.insert("etag", "\"v1\"".parse().unwrap());
        let (results, settlement) = end_with(planned(&message("{}")), unchanged);
        let result = &results[0];
        assert_eq!((result.status.as_str(), settlement), ("success", Settlement::Done));
        assert_eq!((result.http_status, &result.content), (Some(304), &None));
        assert!(result.error.as_deref().unwrap().contains("not modified"), "{result:?}");
        assert_eq!(details(result).header("etag"), Some("\"v1\""));
    }

    #[test]
    fn any_body_is_kept_that_the_content_does_not_repeat() {
        let ended = |happened: FetchOutcome, content_type: &str, body: &str| {
            let mut answered = outcome(happened, body);
            let headers = &mut answered.answer.as_mut().unwrap().headers;
            headers.insert("content-type", content_type.parse().unwrap());
            end_with(planned(&message("{}")), answered).0.remove(0)
        };
        let bytes = |result: &FetchResult| match &result.body {
            ResultBody::New(body) => Some(body.bytes.clone()),
            _ => None,
        };
        let page = ended(FetchOutcome::Answered(200), "text/html", "<p>words");
        assert_eq!((&page.body, &page.error), (&ResultBody::Content, &None));
        let photo = ended(FetchOutcome::Answered(200), "image/png", "\u{89}PNG");
        assert_eq!(bytes(&photo).as_deref(), Some("\u{89}PNG".as_bytes()));
        assert_eq!((photo.status.as_str(), &photo.content), ("success", &None));
        assert_eq!(photo.error.as_deref(), Some(NOT_TEXT));
        let missing = ended(FetchOutcome::Answered(404), "text/html", "<p>nothing here");
        assert_eq!(bytes(&missing).as_deref(), Some("<p>nothing here".as_bytes()));
        assert_eq!((missing.status.as_str(), &missing.content), ("http_error", &None));
        let large = ended(FetchOutcome::Answered(200), "image/png", &"x".repeat(1_001));
        assert_eq!(
            (&large.body, large.error.as_deref()),
            (&ResultBody::Absent, Some(NOT_TEXT_AND_NOT_KEPT))
        );
        assert_eq!(details(&large).unkept_body_bytes, Some(1_001));
        let unchanged = ended(FetchOutcome::Answered(304), "text/html", "");
        assert_eq!(
            (&unchanged.body, details(&unchanged).unkept_body_bytes),
            (&ResultBody::Absent, None)
        );
    }

    /// It is in memory until it is stored.
    #[test]
    fn a_kept_body_counts_as_held() {
        let mut plan = planned(&message("{}"));
        plan.step(None, MOMENT);
        let missing = outcome(FetchOutcome::Answered(404), &"x".repeat(900));
        assert!(matches!(plan.step(Some(missing), MOMENT), Step::Finish(..)));
        assert!(plan.held_bytes().unwrap() > 900, "{:?}", plan.held_bytes());
    }

    #[test]
    fn a_message_that_makes_no_sense_has_a_result_too() {
        let (results, settlement) =
            end_of(planned(&lease("ftp://a.test/", "{}")), FetchOutcome::Answered(200));
        assert_eq!((results[0].status.as_str(), settlement), ("refused", Settlement::Done));
        assert!(matches!(
            end_of(planned(&message("")), FetchOutcome::Answered(200)).1,
            Settlement::Dead { .. }
        ));
    }
}
