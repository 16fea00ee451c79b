//! The kinds of single values: numbers, durations, sizes and words.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use fetchwell_policy::units::{
    UnitError, format_duration, format_size, parse_duration, parse_size,
};
use serde_json::Value as Json;

use super::fault::{Wrong, quoted};
use super::layer::Raw;
use super::suggest::nearest;

/// A kind of value.
pub(super) trait Kind {
    type Value;

    fn read(&self, raw: &Raw) -> Result<Self::Value, Wrong>;

    /// The value as JSON, which is also valid TOML for all values used here. Secrets are hidden.
    fn show(&self, value: &Self::Value) -> Json;
}

/// A text that one function reads, and another one shows.
pub(super) struct Parsed<T> {
    pub(super) read: fn(&str) -> Result<T, Wrong>,
    pub(super) show: fn(&T) -> Json,
}

/// A text whose value is shown by its `Display`.
pub(super) const fn displayed<T: Display>(read: fn(&str) -> Result<T, Wrong>) -> Parsed<T> {
    Parsed { read, show: as_text::<T> }
}

fn as_text<T: Display>(value: &T) -> Json {
    value.to_string().into()
}

impl<T> Kind for Parsed<T> {
    type Value = T;

    fn read(&self, raw: &Raw) -> Result<T, Wrong> {
        (self.read)(raw.one()?)
    }

    fn show(&self, value: &T) -> Json {
        (self.show)(value)
    }
}

/// A duration or a number of bytes within bounds.
pub(super) struct Bounded<T> {
    least: T,
    most: T,
    parse: fn(&str) -> Result<T, UnitError>,
    format: fn(T) -> String,
}

/// The upper bound prevents overflow when durations are added to times.
const fn span(least: Duration, most: Duration) -> Bounded<Duration> {
    Bounded { least, most, parse: parse_duration, format: format_duration }
}

pub(super) const fn size(least: u64, most: u64) -> Bounded<u64> {
    Bounded { least, most, parse: parse_size, format: format_size }
}

const DAY_SECONDS: u64 = 86_400;
pub(super) const TIMEOUT: Bounded<Duration> =
    span(Duration::from_millis(1), Duration::from_secs(DAY_SECONDS));
pub(super) const POSITIVE: Bounded<Duration> =
    span(Duration::from_millis(1), Duration::from_secs(365 * DAY_SECONDS));
pub(super) const LONG: Bounded<Duration> = span(Duration::ZERO, POSITIVE.most);

impl<T: PartialOrd + Copy> Kind for Bounded<T> {
    type Value = T;

    fn read(&self, raw: &Raw) -> Result<T, Wrong> {
        let text = raw.one()?;
        let value = (self.parse)(text)?;
        within(text, value, &(self.least..=self.most), |bound| (self.format)(*bound))
    }

    fn show(&self, value: &T) -> Json {
        (self.format)(*value).into()
    }
}

/// A number within bounds.
pub(super) struct Number<T> {
    name: &'static str,
    least: T,
    most: T,
}

pub(super) const fn whole<T>(least: T, most: T) -> Number<T> {
    Number { name: "whole number", least, most }
}

pub(super) const fn decimal(least: f64, most: f64) -> Number<f64> {
    Number { name: "number", least, most }
}

/// Requests per second; 0 means no pacing, for which the gate has its own checks.
pub(super) const RATE: Number<f64> = decimal(0.0, 10_000.0);

impl<T: FromStr + PartialOrd + Display + Copy + Into<Json>> Kind for Number<T> {
    type Value = T;

    fn read(&self, raw: &Raw) -> Result<T, Wrong> {
        let text = raw.one()?;
        let value = text.parse().map_err(|_| {
            Wrong::new(
                format!("{} is not a {}", quoted(text), self.name),
                format!("write a {} from {} to {}", self.name, self.least, self.most),
            )
        })?;
        within(text, value, &(self.least..=self.most), T::to_string)
    }

    fn show(&self, value: &T) -> Json {
        (*value).into()
    }
}

fn within<T: PartialOrd>(
    text: &str,
    value: T,
    bounds: &RangeInclusive<T>,
    format: impl Fn(&T) -> String,
) -> Result<T, Wrong> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let least = format(bounds.start());
    let most = format(bounds.end());
    Err(Wrong::new(
        format!("{} is out of range", quoted(text)),
        format!("write a value from {least} to {most}"),
    ))
}

pub(super) const SWITCH: Parsed<bool> = Parsed {
    read: |text| {
        text.parse().map_err(|_| {
            Wrong::new(format!("{} is neither true nor false", quoted(text)), "write true or false")
        })
    },
    show: |value| (*value).into(),
};

/// One of a few words.
pub(super) struct OneOf<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Kind for OneOf<T> {
    type Value = T;

    fn read(&self, raw: &Raw) -> Result<T, Wrong> {
        let text = raw.one()?;
        let find = |word: &str| self.0.iter().find(|(name, _)| *name == word);
        find(text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
            let mend = match nearest(text, words.iter().copied()) {
                Some(word) => format!("did you mean {word:?}? It is one of {}", words.join(", ")),
                None => format!("write one of {}", words.join(", ")),
            };
            Wrong::new(format!("{} is not a known value", quoted(text)), mend)
        })
    }

    fn show(&self, value: &T) -> Json {
        self.0
            .iter()
            .find(|(_, known)| known == value)
            .map_or(Json::Null, |(name, _)| (*name).into())
    }
}
