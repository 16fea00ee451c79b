//! Checks that each message ends with the result that the contract promises.

use std::time::Duration;

use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;

use super::jobs::DEATHS_OF_A_CULPRIT;

/// How many attempts a message has if its site or the page fails…
const ATTEMPTS: u32 = 3;
/// …and if it is answered with a 429.
const ATTEMPTS_AFTER_A_429: u32 = 5;
/// The clocks of a machine and of the store may differ by this much more when a message ends than when it was taken.
const DRIFT: Duration = Duration::from_secs(1);

/// A message that ends.
pub(crate) struct Judged<'a> {
    pub(crate) id: LeaseId,
    pub(crate) url: &'a str,
    pub(crate) deadline: Time,
    pub(crate) now: Time,
    /// How often processes died while fetching it.
    pub(crate) deaths: u32,
}

/// What the sites of a run make possible.
pub(crate) struct MessageChecks {
    /// A robots.txt may disallow pages.
    pub(crate) may_be_disallowed: bool,
}

impl MessageChecks {
    pub(crate) fn on_result(
        &mut self,
        message: &Judged<'_>,
        result: &FetchResult,
    ) -> Result<(), String> {
        let FetchResult { status, attempts, http_status, .. } = result;
        let is_over = message.now + DRIFT >= message.deadline;
        let is_right = match (status.as_str(), *http_status) {
            (FetchResult::SUCCESS, _) => result.content.is_some() && *attempts > 0,
            (FetchResult::REFUSED_BY_ROBOTS, _) => self.may_be_disallowed,
            (FetchResult::CANCELLED, _) => true,
            (FetchResult::INTERNAL_ERROR, _) => message.deaths >= DEATHS_OF_A_CULPRIT,
            ("rate_limited", _) => *attempts >= ATTEMPTS_AFTER_A_429,
            ("timeout", _) if is_over => true,
            ("network_error" | "timeout", _) | ("http_error", Some(500..)) => *attempts >= ATTEMPTS,
            ("http_error", _) => *attempts > 0,
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        let Judged { id, url, deaths, .. } = message;
        let error = result.error.as_deref().unwrap_or_default();
        Err(format!(
            "message {id} ({url}) ended as {status} ({http_status:?}, {error}) after {attempts} attempts and {deaths} \
             interruptions"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this result is right, for a message whose deadline is in ten minutes.
    fn is_right(status: &str, http_status: Option<u16>, attempts: u32, deaths: u32) -> bool {
        let mut checks = MessageChecks { may_be_disallowed: false };
        let now = Time::from_secs(1_000);
        let deadline = now + Duration::from_mins(10);
        let message = Judged { id: 1, url: "http://a.test/", deadline, now, deaths };
        let content = (status == FetchResult::SUCCESS).then(String::new);
        let status = status.to_owned();
        let result =
            FetchResult { status, http_status, attempts, content, ..FetchResult::default() };
        checks.on_result(&message, &result).is_ok()
    }

    #[test]
    fn a_message_has_the_attempts_of_the_contract() {
        for (status, http_status, least) in [
            ("success", Some(200), 1),
            ("network_error", None, 3),
            ("timeout", None, 3),
            ("http_error", Some(503), 3),
            ("http_error", Some(500), 3),
            ("http_error", Some(404), 1),
            ("http_error", None, 1),
            ("rate_limited", Some(429), 5),
        ] {
            assert!(is_right(status, http_status, least, 0), "{status}");
            assert!(!is_right(status, http_status, least - 1, 0), "{status}");
        }
    }

    #[test]
    fn what_cannot_have_happened_is_noticed() {
        assert!(!is_right("refused_by_robots", None, 0, 0));
        assert!(!is_right("refused", None, 1, 0));
        assert!(!is_right("internal_error", None, 0, 3));
        assert!(is_right("internal_error", None, 0, 4));
    }
}
