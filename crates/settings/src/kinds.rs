//! The kinds of single values: numbers, durations, sizes and words.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use fetchwell_policy::units::{format_duration, format_size, parse_duration, parse_size};
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

/// A duration within bounds. The upper bound prevents overflow when durations are added to times.
pub(super) struct Span {
    least: Duration,
    most: Duration,
}

const DAY_SECONDS: u64 = 86_400;
pub(super) const TIMEOUT: Span =
    Span { least: Duration::from_millis(1), most: Duration::from_secs(DAY_SECONDS) };
pub(super) const POSITIVE: Span =
    Span { least: Duration::from_millis(1), most: Duration::from_secs(365 * DAY_SECONDS) };
pub(super) const LONG: Span = Span { least: Duration::ZERO, most: POSITIVE.most };

impl Kind for Span {
    type Value = Duration;

    fn read(&self, raw: &Raw) -> Result<Duration, Wrong> {
        let text = raw.one()?;
        within(text, parse_duration(text)?, &(self.least..=self.most), |bound| {
            format_duration(*bound)
        })
    }

    fn show(&self, value: &Duration) -> Json {
        format_duration(*value).into()
    }
}

/// A number of bytes within bounds.
pub(super) struct Size {
    least: u64,
    most: u64,
}

pub(super) const fn size(least: u64, most: u64) -> Size {
    Size { least, most }
}

impl Kind for Size {
    type Value = u64;

    fn read(&self, raw: &Raw) -> Result<u64, Wrong> {
        let text = raw.one()?;
        within(text, parse_size(text)?, &(self.least..=self.most), |bound| format_size(*bound))
    }

    fn show(&self, value: &u64) -> Json {
        format_size(*value).into()
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

pub(super) struct Switch;

impl Kind for Switch {
    type Value = bool;

    fn read(&self, raw: &Raw) -> Result<bool, Wrong> {
        let text = raw.one()?;
        text.parse().map_err(|_| {
            Wrong::new(format!("{} is neither true nor false", quoted(text)), "write true or false")
        })
    }

    fn show(&self, value: &bool) -> Json {
        (*value).into()
    }
}

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
