//! Parses `max_age` and `deadline`.

use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_policy::units::parse_duration;
use jiff::Timestamp;

use super::json::Json;

const MAX_DEADLINE: Duration = Duration::from_secs(24 * 3_600);
const MAX_AGE: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The maximum age of a stored page.
pub(super) fn max_age(value: &Json<'_>) -> Result<Duration, String> {
    let age = duration(value).ok_or("is neither whole seconds nor a duration such as \"30s\"")?;
    if age > MAX_AGE {
        return Err("is more than 365 days".to_owned());
    }
    Ok(age)
}

/// The time that is left until a deadline.
pub(super) fn deadline(value: &Json<'_>, wall: Time) -> Result<Duration, String> {
    let at = || {
        let at: Timestamp = value.as_str()?.parse().ok()?;
        Some(Time::from_micros(at.as_microsecond()).since(wall))
    };
    let left = duration(value)
        .or_else(at)
        .ok_or("is neither whole seconds, nor a duration such as \"10m\", nor an RFC 3339 time")?;
    if left.is_zero() {
        return Err("is in the past; use a time in the future".to_owned());
    }
    if left > MAX_DEADLINE {
        return Err("is more than 24 hours away".to_owned());
    }
    Ok(left)
}

pub(super) fn duration(value: &Json<'_>) -> Option<Duration> {
    match value {
        Json::Number(seconds) => seconds.as_u64().map(Duration::from_secs),
        Json::Text(text) => parse_duration(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const WALL: Time = Time::from_secs(1_700_000_000); // 2023-11-14T22:13:20Z

    fn of<T>(value: &Value, read: impl FnOnce(&Json<'_>) -> T) -> T {
        read(&serde_json::from_str(&value.to_string()).unwrap())
    }

    #[test]
    fn a_deadline_is_a_time_to_come_within_a_day() {
        for (value, seconds) in [
            (json!(1), Some(1)),
            (json!(86_400), Some(86_400)),
            (json!("1h30m"), Some(5_400)),
            (json!("2023-11-14T22:13:30Z"), Some(10)),
            (json!("2023-11-14T23:13:30+01:00"), Some(10)),
            (json!(0), None),
            (json!("0s"), None),
            (json!(86_401), None),
            (json!("2023-11-14T22:13:20Z"), None),
            (json!("2024-11-14T22:13:20Z"), None),
            (json!(-1), None),
            (json!(1.5), None),
            (json!("soon"), None),
            (json!("10"), None),
            (json!(null), None),
            (json!([1]), None),
        ] {
            let left = of(&value, |value| deadline(value, WALL)).ok();
            assert_eq!(left, seconds.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn an_age_may_be_nothing_and_has_an_end() {
        for (value, good) in [
            (json!(0), true),
            (json!("7d"), true),
            (json!("366d"), false),
            (json!(u64::MAX), false),
        ] {
            assert_eq!(of(&value, max_age).is_ok(), good, "{value}");
        }
    }
}
