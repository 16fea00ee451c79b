//! Parses and formats durations, sizes and quantities: `1h30m`, `500ms`, `10MiB`, `1 page`.
//!
//! Arithmetic is exact. A duration is a whole number of milliseconds, a size a whole number of bytes.

use std::fmt::Display;
use std::time::Duration;

const DURATION_FIX: &str =
    r#"write numbers with the units d, h, m, s, ms, the largest first, such as "30s" or "1h30m""#;
const SIZE_FIX: &str = r#"write bytes, or a number with a unit, such as "64KiB", "10MiB" or "1GB""#;

/// Units and their length in milliseconds, largest first.
const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Units and their size in bytes, largest first.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Why a text is not a valid duration or size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {fix}")]
pub struct UnitError {
    /// What is wrong.
    pub problem: String,
    /// How to fix it.
    pub fix: &'static str,
}

/// Parses `30s`, `1h30m` or `1.5s`. A number without a unit is an error, because in a file or a variable it may mean
/// anything. Where the unit is known, callers add it first, with [`with_unit`].
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wrong = |problem: &str| UnitError {
        problem: format!("{} {problem}", quoted(text)),
        fix: DURATION_FIX,
    };
    if text.is_empty() {
        return Err(wrong("is not a duration"));
    }
    let mut total_ms: u64 = 0;
    let mut rest = text;
    let mut units_left = DURATION_UNITS.as_slice();
    while !rest.is_empty() {
        let (number, unit, after) = split_component(rest);
        if unit.is_empty() {
            return Err(wrong("has no unit at its end"));
        }
        let Some(index) = units_left.iter().position(|(name, _)| *name == unit) else {
            return Err(wrong(if DURATION_UNITS.iter().any(|(name, _)| *name == unit) {
                "has its units out of order"
            } else {
                "has an unknown unit"
            }));
        };
        let component_ms = multiply(number, units_left[index].1).map_err(wrong)?;
        total_ms = total_ms.checked_add(component_ms).ok_or_else(|| wrong("is too large"))?;
        units_left = &units_left[index + 1..];
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Adds a unit to a bare number, if its meaning is known: `30` is `30s` for a variable whose name ends in `_SECONDS`,
/// or for a flag that takes a duration.
pub fn with_unit(number: &str, unit: &str) -> String {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let is_bare = !number.is_empty() && number.bytes().all(is_digit);
    if is_bare { format!("{number}{unit}") } else { number.to_owned() }
}

/// A duration as people read it: `0.4 s`, `75 s`, `61 min 1 s`.
pub fn readable_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match duration.as_secs() {
        0..=9 => format!("{seconds:.1} s"),
        10..=119 => format!("{seconds:.0} s"),
        whole => format!("{} min {} s", whole / 60, whole % 60),
    }
}

/// Formats a duration so that [`parse_duration`] returns the same value. Fractions of a millisecond are dropped.
pub fn format_duration(duration: Duration) -> String {
    let mut left_ms = duration.as_millis();
    let mut text = String::new();
    for (unit, unit_ms) in DURATION_UNITS {
        let count = left_ms / u128::from(unit_ms);
        left_ms %= u128::from(unit_ms);
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Parses `10MiB`, `1GB`, `1.5KiB` or plain bytes, ignoring case.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let wrong =
        |problem: &str| UnitError { problem: format!("{} {problem}", quoted(text)), fix: SIZE_FIX };
    let (number, unit, after) = split_component(text);
    if !after.is_empty() {
        return Err(wrong("is not a size"));
    }
    let named = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let unit_bytes = match named {
        Some((_, bytes)) => *bytes,
        None if unit.is_empty() => 1,
        None => return Err(wrong("has an unknown unit")),
    };
    multiply(number, unit_bytes).map_err(wrong)
}

/// Formats a size in the largest unit that leaves no remainder.
pub fn format_size(bytes: u64) -> String {
    SIZE_UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && *unit > 1 && bytes.is_multiple_of(*unit))
        .map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// A number with its noun: `1 batch`, `2 batches`.
pub fn quantity<N: Copy + Display + PartialEq + From<u8>>(
    count: N,
    one: &str,
    many: &str,
) -> String {
    let noun = if count == N::from(1) { one } else { many };
    format!("{count} {noun}")
}

/// Quotes `text` for an error message, truncated if it is long.
pub fn quoted(text: &str) -> String {
    const MOST_CHARS: usize = 60;
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Splits `1h30m` into `1`, `h` and `30m`.
fn split_component(text: &str) -> (&str, &str, &str) {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let unit_start = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let (number, tail) = text.split_at(unit_start);
    let unit_end = tail.find(is_number).unwrap_or(tail.len());
    let (unit, after) = tail.split_at(unit_end);
    (number, unit, after)
}

/// Multiplies a decimal `number` by `unit`, exactly.
fn multiply(number: &str, unit: u64) -> Result<u64, &'static str> {
    // With this many decimals, the product below fits into a u128 for every unit.
    const MOST_DECIMALS: usize = 18;
    let (whole, decimals) = match number.split_once('.') {
        Some((_, "")) => return Err("has a point without decimals"),
        Some(parts) => parts,
        None => (number, ""),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) {
        return Err("does not start with a number");
    }
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > MOST_DECIMALS {
        return Err("is too precise");
    }
    let whole: u64 = whole.parse().map_err(|_| "is too large")?;
    let numerator: u128 = if decimals.is_empty() {
        0
    } else {
        decimals.parse::<u128>().map_err(|_| "is too precise")? * u128::from(unit)
    };
    let denominator = 10_u128.pow(u32::try_from(decimals.len()).map_err(|_| "is too precise")?);
    if !numerator.is_multiple_of(denominator) {
        return Err("is too precise");
    }
    u64::try_from(u128::from(whole) * u128::from(unit) + numerator / denominator)
        .map_err(|_| "is too large")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        for (text, expected_ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("1.5s", 1_500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("90m", 5_400_000),
            ("0.001s", 1),
            ("1.500s", 1_500),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(expected_ms)), "{text}");
        }
    }

    #[test]
    fn a_bare_number_gets_its_unit() {
        for (number, expected) in
            [("10", "10s"), ("1.5", "1.5s"), ("10m", "10m"), ("soon", "soon"), ("", "")]
        {
            assert_eq!(with_unit(number, "s"), expected, "{number}");
        }
    }

    #[test]
    fn nonsense_is_no_duration() {
        for text in [
            "",
            "s",
            "10",
            "-5s",
            "+5s",
            "1.5.2s",
            "10 parsecs",
            "10 s",
            " 10s",
            "10s ",
            "1S",
            "1.s",
            ".5s",
            "30m1h",
            "1s1s",
            "1h30",
            "0.5ms",
            "١s",
            "99999999999999999999s",
            "18446744073709551615d",
            "1.0000000000000000000000001s",
            "1e3s",
            "∞",
        ] {
            let error = parse_duration(text).expect_err(text);
            assert!(error.fix.contains("30s"), "{error:?}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("1234", 1234),
            ("1B", 1),
            ("64KiB", 65_536),
            ("10MiB", 10_485_760),
            ("10mib", 10_485_760),
            ("1GB", 1_000_000_000),
            ("1.5KiB", 1536),
            ("2TiB", 2_199_023_255_552),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "B", "-1", "1.5", "10 parsecs", "1KiB2B", "1.5.2KB", "10M", "99999999TiB"]
        {
            let error = parse_size(text).expect_err(text);
            assert!(error.fix.contains("10MiB"), "{error:?}");
        }
    }

    #[test]
    fn what_is_written() {
        assert_eq!(format_duration(Duration::from_secs(5_400)), "1h30m");
        assert_eq!(format_duration(Duration::ZERO), "0s");
        assert_eq!(format_size(10_485_760), "10MiB");
        assert_eq!(format_size(1_000_000_000), "1GB");
        assert_eq!(format_size(1_234), "1234");
    }

    #[test]
    fn a_noun_agrees_with_its_number() {
        assert_eq!(quantity(0_u64, "batch", "batches"), "0 batches");
        assert_eq!(quantity(1_usize, "batch", "batches"), "1 batch");
        assert_eq!(quantity(2_i64, "batch", "batches"), "2 batches");
    }

    proptest! {
        #[test]
        fn durations_survive_a_round_trip(ms: u64) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn sizes_survive_a_round_trip(bytes: u64, unit in 0..SIZE_UNITS.len()) {
            let round = bytes / SIZE_UNITS[unit].1 * SIZE_UNITS[unit].1;
            for bytes in [bytes, round] {
                prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
            }
        }

        #[test]
        fn no_text_makes_a_panic(text: String, near in "[0-9.]{0,30}[a-zA-Z]{0,3}[0-9.]{0,5}m?s?") {
            for text in [text, near] {
                let _duration = parse_duration(&text);
                let _size = parse_size(&text);
            }
        }
    }
}
