//! `Prefer: wait=N` (RFC 7240).

use std::time::Duration;

use http::HeaderMap;

/// The longest wait for a result.
pub(crate) const MAX_WAIT_SECONDS: u64 = 60;

/// How long to wait for the result. Invalid preferences are ignored, as the RFC requires.
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferences = lines.flat_map(|line| line.split(','));
    preferences.find_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let digits = value.trim().trim_matches('"');
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !name.trim().eq_ignore_ascii_case("wait") || !is_number {
            return None;
        }
        // A number that is too large to parse exceeds the maximum, too.
        let seconds = digits.parse().unwrap_or(u64::MAX).min(MAX_WAIT_SECONDS);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_ignored() {
        for (value, expected) in [
            ("wait=10", Some(10)),
            ("WAIT = 10", Some(10)),
            ("respond-async, wait=\"5\"; x=y", Some(5)),
            ("wait=61", Some(60)),
            ("wait=99999999999999999999999", Some(60)),
            ("wait=0", None),
            ("wait=-1", None),
            ("wait=1.5", None),
            ("wait", None),
            ("wait=", None),
            ("waiting=5", None),
        ] {
            let headers = HeaderMap::from_iter([(
                http::header::HeaderName::from_static("prefer"),
                value.parse().unwrap(),
            )]);
            assert_eq!(wait(&headers), expected.map(Duration::from_secs), "{value}");
        }
        assert_eq!(wait(&HeaderMap::new()), None);
    }
}
