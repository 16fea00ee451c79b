//! Argument helpers that several commands share.

use clap::builder::{PossibleValue, PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_settings::Flag;

/// A flag as an override of a setting, if it was given.
pub(crate) fn flag(
    key: &'static str,
    name: &'static str,
    value: Option<&String>,
) -> Option<Flag<'static>> {
    value.map(|value| Flag { key, name, value: value.clone() })
}

/// Parses an integer within bounds.
pub(crate) fn whole(least: i64, most: i64) -> impl TypedValueParser<Value = usize> {
    RangedI64ValueParser::<usize>::new().range(least..=most)
}

/// Parses an output format.
pub(crate) fn output_format() -> impl TypedValueParser<Value = OutputFormat> {
    let formats = OutputFormat::ALL;
    let known = formats.map(|format| PossibleValue::new(format.name()).help(format.help()));
    PossibleValuesParser::new(known)
        .try_map(|name| OutputFormat::named(&name).ok_or("there is no such format"))
}
