//! Error texts for the calling model: what went wrong, and what to do next.

use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_policy::units::quantity;

use super::answer::short;
use super::lookups::LookupFailure;
use super::tools::{EXPLAIN, FIND_IN_ARCHIVE, MAP};
use crate::problem::{Problem, ProblemKind};

/// Explains a problem with a page.
pub(super) fn about_page(url: &str, problem: &Problem) -> String {
    let url = short(url);
    let detail = short(problem.detail());
    match problem.name() {
        name if name == ProblemKind::NO_PAGE.name => no_page(&url, problem, &detail),
        name if name == ProblemKind::INVALID_FIELD.name => format!(
            "{url} cannot be fetched: {}. The same call will fail again; use the http(s) URL of a public page.",
            short(&problem.text())
        ),
        _ if problem.is_stopping() => format!(
            "{url} was not fetched, because the server is stopping. Its site is not the cause. Wait a minute, then call \
             the tool again with the same arguments; if the server does not respond then, tell the user."
        ),
        name if name == ProblemKind::NOT_IN_TIME.name => format!(
            "{url} is still being fetched: its site is slow, or other requests to it are ahead in the queue. Call the \
             tool again with the same arguments (but not with max_age 0) in a few seconds; it continues to wait for \
             the same request. `{EXPLAIN}` shows what the request is waiting for."
        ),
        _ => about_call(problem),
    }
}

/// Explains a problem with the call itself.
pub(super) fn about_call(problem: &Problem) -> String {
    let detail = short(problem.detail());
    let again = match problem.retry_after_seconds() {
        Some(seconds) => {
            format!("Wait {}, then call the tool again.", quantity(seconds, "second", "seconds"))
        }
        None => "Call the tool once more; if that also fails, tell the user.".to_owned(),
    };
    match problem.name() {
        name if name == ProblemKind::FORBIDDEN.name || name == ProblemKind::UNAUTHORIZED.name => {
            format!(
                "This client is not allowed to fetch pages: {detail} Do not call the tool again; tell the user that \
             the server needs another token."
            )
        }
        name if name == ProblemKind::TOO_MANY_REQUESTS.name => {
            format!("Too many requests with this token. {again} Fetch fewer pages at once.")
        }
        name if name == ProblemKind::BUSY.name || name == ProblemKind::STORE_UNAVAILABLE.name => {
            format!("The server cannot handle this call now; the page is not the cause. {again}")
        }
        _ => format!("The server itself failed; the page is not the cause. {again}"),
    }
}

/// Explains a failed lookup.
pub(super) fn about_lookup(failure: &LookupFailure) -> String {
    match failure {
        LookupFailure::Invalid(reason) => {
            format!("The lookup is invalid: {}. Correct the arguments.", short(reason))
        }
        LookupFailure::Failed(reason) => format!(
            "The lookup failed: {}. Call the tool again later, or continue without it.",
            short(reason)
        ),
        LookupFailure::Internal(_) => about_call(&Problem::new(ProblemKind::INTERNAL)),
    }
}

/// Explains why there is no text of a page, by the status of the result.
fn no_page(url: &str, problem: &Problem, detail: &str) -> String {
    let result = problem.result().unwrap_or_default();
    // The detail quotes the rule, which is untrusted content like a page.
    let detail = if result == FetchResult::REFUSED_BY_ROBOTS { "it is disallowed" } else { detail };
    let next = match result {
        FetchResult::REFUSED_BY_ROBOTS => format!(
            "The robots.txt of the site disallows this page, so do not try to read it in another way. `{EXPLAIN}` \
             shows the rule."
        ),
        "http_error" => format!(
            "Check the URL: `{MAP}` lists the pages of the site, and `{FIND_IN_ARCHIVE}` may have a \
             copy of a page that is gone. Do not repeat this call."
        ),
        "rate_limited" => "The site is rate-limiting requests. Do not fetch from it for a few minutes; continue with \
                           other sites."
            .to_owned(),
        // The deadline of a message may also pass while it waits for its turn.
        "timeout" => format!(
            "The page was not fetched in time: the site is slow, or other requests to it were ahead. `{EXPLAIN}` says \
             when the next attempt is possible, and `{FIND_IN_ARCHIVE}` may have a copy of the page."
        ),
        "network_error" => format!(
            "The site does not respond. Check the spelling of the hostname; `{EXPLAIN}` says when the next attempt is \
             possible, and `{FIND_IN_ARCHIVE}` may have a copy of the page."
        ),
        "refused" => "The address is not on the public web and will not be fetched. Do not repeat this call; tell the \
                      user if the page is needed."
            .to_owned(),
        FetchResult::CANCELLED => "An operator cancelled the request. Tell the user.".to_owned(),
        FetchResult::SUCCESS => "The response is not text (it may be an image or an archive, for example), so there \
                                 is nothing to read. Do not repeat this call."
            .to_owned(),
        _ => "Call the tool once more; if that also fails, tell the user.".to_owned(),
    };
    format!("Could not read {url}: {detail}\n{next}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_engine::ports::inbox::{MessageId, OutboxMessage};
    use fetchwell_policy::time::Time;

    use super::*;
    use crate::problem::FieldError;

    const URL: &str = "http://a.test/";

    fn without_page(status: &str) -> Problem {
        let error = Some("it said\nno".to_owned());
        let result = FetchResult { status: status.to_owned(), error, ..FetchResult::default() };
        Problem::no_page(OutboxMessage {
            cursor: 1,
            message: MessageId([1; 16]),
            url: URL.to_owned(),
            retailer: "default".to_owned(),
            correlation_id: "c".to_owned(),
            created_at: Time::EPOCH,
            result,
        })
    }

    #[test]
    fn each_error_says_what_to_do_next() {
        let faults =
            vec![FieldError::in_parameter("url", "is refused: 127.0.0.1 is a loopback address")];
        for (problem, part) in [
            (without_page("refused_by_robots"), "do not try to read it in another way"),
            (without_page("http_error"), "`map` lists the pages"),
            (without_page("network_error"), "`explain` says when"),
            (without_page("timeout"), "other requests to it were ahead"),
            (without_page("refused"), "Do not repeat this call"),
            (without_page("success"), "nothing to read"),
            (without_page("internal_error"), "the page is not the cause"),
            (Problem::invalid(faults), "a loopback address"),
            (Problem::not_in_time(MessageId([1; 16]), Duration::from_secs(50)), "same arguments"),
            (Problem::stopped_waiting(MessageId([1; 16])), "the server is stopping"),
            (Problem::new(ProblemKind::BUSY).retry_after(10), "Wait 10 seconds"),
            (Problem::new(ProblemKind::TOO_MANY_REQUESTS).retry_after(1), "Wait 1 second,"),
            (Problem::new(ProblemKind::FORBIDDEN), "another token"),
            (Problem::new(ProblemKind::INTERNAL), "tell the user"),
        ] {
            let advice = about_page(URL, &problem);
            assert!(advice.contains(part), "{}: {advice}", problem.name());
        }
        assert!(about_page(URL, &without_page("http_error")).contains("it said no\n"));
        assert!(!about_page(URL, &without_page("refused_by_robots")).contains("it said no"));
    }
}
