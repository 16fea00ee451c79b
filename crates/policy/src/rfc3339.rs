//! Formats times as RFC 3339 in UTC.

use jiff::Timestamp;

use crate::time::Time;

/// Formats a time like `2026-11-15T12:34:56.789Z`.
pub fn rfc3339(time: Time) -> String {
    Timestamp::from_microsecond(time.as_micros())
        .map_or_else(|_| time.to_string(), |t| t.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_and_never_fail() {
        assert_eq!(rfc3339(Time::from_micros(1_500_000)), "1970-01-01T00:00:01.5Z");
        assert_eq!(rfc3339(Time::FAR_FUTURE), Time::FAR_FUTURE.to_string());
    }
}
