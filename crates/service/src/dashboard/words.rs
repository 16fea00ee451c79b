//! Formats numbers and times.
//!
//! Templates pass references and code passes values, so the functions accept both.

use std::borrow::Borrow;
use std::time::Duration;

use fetchwell_policy::time::Time;
use jiff::Timestamp;

/// The format of a moment.
const MOMENT: &str = "%Y-%m-%d %H:%M:%S";

/// `1,234,567`
pub(super) fn count<N: TryInto<u64> + Copy>(number: impl Borrow<N>) -> String {
    let digits = (*number.borrow()).try_into().unwrap_or(0).to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3.4 MiB`
pub(super) fn bytes(number: impl Borrow<u64>) -> String {
    let number = *number.borrow();
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = number as f64;
    let mut unit = 0;
    while size >= 1_024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1_024.0, unit + 1);
    }
    if unit == 0 { format!("{number} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// `12 ms`, `3.4 s`, `5 min`, `2.5 h`, `3 d`
pub(super) fn span(span: impl Borrow<Duration>) -> String {
    let span = *span.borrow();
    let seconds = span.as_secs_f64();
    match seconds {
        0.0 => "0 s".to_owned(),
        _ if seconds < 0.001 => format!("{} µs", span.as_micros()),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1_000.0),
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

/// A duration in microseconds.
pub(super) fn micros(micros: impl Borrow<u64>) -> String {
    span(Duration::from_micros(*micros.borrow()))
}

/// A rate, rounded by its size.
pub(super) fn rate(per_second: impl Borrow<f64>) -> String {
    match *per_second.borrow() {
        r if r >= 100.0 => format!("{r:.0}"),
        r if r >= 10.0 => format!("{r:.1}"),
        r if r > 0.0 => format!("{r:.2}"),
        _ => "0".to_owned(),
    }
}

/// `2026-11-15 12:03:05`, in UTC.
pub(super) fn moment(at: impl Borrow<Time>) -> String {
    formatted(*at.borrow(), MOMENT)
}

/// The same for a time as the API states it.
pub(super) fn stated(at: &str) -> String {
    let stamp = at.parse::<Timestamp>();
    stamp.map_or_else(|_| at.to_owned(), |stamp| stamp.strftime(MOMENT).to_string())
}

/// `12:03:05`, in UTC.
pub(super) fn time_of_day(at: impl Borrow<Time>) -> String {
    formatted(*at.borrow(), "%H:%M:%S")
}

/// Quotes a text as one word for a shell.
pub(super) fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn formatted(at: Time, format: &str) -> String {
    let stamp = Timestamp::from_microsecond(at.as_micros());
    stamp.map_or_else(|_| at.to_string(), |stamp| stamp.strftime(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count::<u64>(number), expected);
        }
        assert_eq!(count::<i64>(-1), "0");
        for (number, expected) in
            [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (u64::MAX, "16777216.0 TiB")]
        {
            assert_eq!(bytes(number), expected);
        }
        for (number, expected) in [(0.0, "0"), (0.126, "0.13"), (12.34, "12.3"), (1_234.5, "1234")]
        {
            assert_eq!(rate(number), expected);
        }
    }

    #[test]
    fn a_text_is_one_word_for_a_shell() {
        for (text, expected) in [
            ("example.com", "example.com"),
            ("", "''"),
            ("the server answered 404", "'the server answered 404'"),
            ("it's; rm -rf $HOME", r"'it'\''s; rm -rf $HOME'"),
        ] {
            assert_eq!(shell(text), expected);
        }
    }

    #[test]
    fn times_are_for_people() {
        for (millis, expected) in [
            (0, "0 s"),
            (12, "12 ms"),
            (3_400, "3.4 s"),
            (65_000, "65 s"),
            (300_000, "5 min"),
            (9_000_000, "2.5 h"),
            (259_200_000, "3 d"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), expected);
        }
        assert_eq!(span(Duration::from_micros(7)), "7 µs");
        let at = Time::from_secs(1_000_000_000);
        assert_eq!(
            (moment(at).as_str(), time_of_day(at).as_str()),
            ("2001-09-09 01:46:40", "01:46:40")
        );
        assert_eq!(stated("2001-09-09T01:46:40.123456Z"), "2001-09-09 01:46:40");
        assert_eq!(moment(Time::FAR_FUTURE), Time::FAR_FUTURE.to_string());
    }
}
