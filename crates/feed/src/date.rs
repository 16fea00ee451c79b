//! Publication dates, in the formats that feeds use.

use fetchwell_policy::time::Time;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// RSS uses the date format of mail (RFC 2822), all others RFC 3339. Any other format gives `None`.
pub(crate) fn read(text: &str) -> Option<Time> {
    const MAIL: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    let text = text.trim();
    let moment = text.parse::<Timestamp>().or_else(|_| MAIL.parse_timestamp(text)).ok();
    moment.or_else(|| day(text)).map(|moment| Time::from_micros(moment.as_microsecond()))
}

/// A date without a time means its midnight, UTC.
fn day(text: &str) -> Option<Timestamp> {
    let day: jiff::civil::Date = text.parse().ok()?;
    day.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|day| day.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_feeds_write_them() {
        const NOON: Time = Time::from_secs(1_700_049_600);
        for (text, time) in [
            ("Wed, 15 Nov 2023 12:00:00 GMT", Some(NOON)),
            ("Mon, 15 Nov 2023 12:00:00 +0000", Some(NOON)),
            ("15 Nov 2023 07:00:00 EST", Some(NOON)),
            ("2023-11-15T12:00:00Z", Some(NOON)),
            (" 2023-11-15T13:00:00.000+01:00\n", Some(NOON)),
            ("2023-11-15", Some(Time::from_secs(1_700_006_400))),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(read(text), time, "{text}");
        }
    }
}
