//! The Retry-After header.

use std::time::{Duration, SystemTime};

use crate::time::Time;

/// The longest wait that a Retry-After can request.
pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// Parses a Retry-After: seconds as digits, or an HTTP-date in any of its three forms.
///
/// A date in the past means no wait. Returns `None` for an invalid value (`-5`, `1.5`, `120junk`), which counts as no
/// header.
pub fn retry_after(value: &str, now: Time) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    let wait = if !value.is_empty() && value.bytes().all(|octet| octet.is_ascii_digit()) {
        // A number that overflows a u64 still means a long wait.
        value.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        wait_until(httpdate::parse_http_date(value).ok()?, now)
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

fn wait_until(date: SystemTime, now: Time) -> Duration {
    let since_epoch = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (Time::EPOCH + since_epoch).since(now)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const NOW: Time = Time::from_micros(784_111_777_000_000);

    const DATE_LIKE: &str = "Sun, [0-9]{2} Nov [0-9]{4} [0-9:]{8} GMT\
        |Sunday, [0-9]{2}-Nov-[0-9]{2} [0-9:]{8} GMT\
        |Sun Nov [ 0-9]{2} [0-9:]{8} [0-9]{4}";

    #[test]
    fn values() {
        let cases = [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 120  ", Some(120)),
            ("\t7", Some(7)),
            ("007", Some(7)),
            ("86400", Some(86_400)),
            ("86401", Some(86_400)),
            ("18446744073709551615", Some(86_400)),
            ("18446744073709551616", Some(86_400)),
            ("99999999999999999999999999999999999999999", Some(86_400)),
            ("", None),
            ("   ", None),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("1e3", None),
            ("120junk", None),
            ("120 s", None),
            ("0x10", None),
            ("١٢", None),
            ("soon", None),
            // The three forms of a date.
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            (" Sun, 06 Nov 1994 08:50:37 GMT ", Some(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(86_400)),
            ("Mon, 07 Nov 1994 08:49:38 GMT", Some(86_400)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400)),
            ("Sun, 06 Nov 1994 08:50:37 GMT junk", None),
            ("Sun, 06 Nov 1994 25:50:37 GMT", None),
            ("Sun, 31 Feb 1994 08:50:37 GMT", None),
            ("Sun, 06 Nov 1994", None),
            ("1994-11-06T08:50:37Z", None),
        ];
        for (value, seconds) in cases {
            assert_eq!(retry_after(value, NOW), seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn a_date_is_met_to_the_microsecond() {
        let a_little_later = Time::from_micros(NOW.as_micros() + 250_000);
        let wait = retry_after("Sun, 06 Nov 1994 08:49:38 GMT", a_little_later);
        assert_eq!(wait, Some(Duration::from_millis(750)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_ignored(value: String, now: i64) {
            let wait = retry_after(&value, Time::from_micros(now));
            prop_assert!(wait.is_none_or(|wait| wait <= MAX_RETRY_AFTER));
        }

        #[test]
        fn digits_are_seconds(seconds: u64) {
            let expected = Duration::from_secs(seconds).min(MAX_RETRY_AFTER);
            prop_assert_eq!(retry_after(&seconds.to_string(), NOW), Some(expected));
        }

        #[test]
        fn dates_are_waited_for(date_s in 0..253_402_300_800_u64, now: i64) {
            let date = SystemTime::UNIX_EPOCH + Duration::from_secs(date_s);
            let wait_micros = i128::from(date_s) * 1_000_000 - i128::from(now);
            let expected = wait_micros.clamp(0, 86_400_000_000);
            let wait = retry_after(&httpdate::fmt_http_date(date), Time::from_micros(now));
            prop_assert_eq!(wait.map(|wait| wait.as_micros() as i128), Some(expected));
        }

        #[test]
        fn what_looks_like_a_date_does_not_make_it_panic(
            value in DATE_LIKE,
            now: i64,
        ) {
            let wait = retry_after(&value, Time::from_micros(now));
            prop_assert!(wait.is_none_or(|wait| wait <= MAX_RETRY_AFTER));
        }
    }
}
