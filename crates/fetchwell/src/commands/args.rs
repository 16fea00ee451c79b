//! Argument helpers that several commands share.

use clap::builder::{PossibleValue, PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_settings::Flag;

/// The flags that were given, as overrides of settings: each is a setting, the name of its flag, and the value.
pub(crate) fn given<const N: usize>(
    flags: [(&'static str, &'static str, &Option<String>); N],
) -> Vec<Flag<'static>> {
    let given = flags.into_iter().filter_map(|(key, name, value)| {
        let value = value.clone()?;
        Some(Flag { key, name, value })
    });
    given.collect()
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
