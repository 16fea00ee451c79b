//! Argument helpers that several commands share.

use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_settings::Flag;

use crate::console::exit::Exit;

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

/// Parses one of these names. Each has a help text and a value.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    known: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let values = known.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    let values: Vec<PossibleValue> = values.collect();
    PossibleValuesParser::new(values).try_map(move |given| {
        let found = known.iter().find(|(name, _, _)| *name == given);
        found.map(|(_, _, value)| *value).ok_or("there is no such value")
    })
}

/// Parses one of these output formats.
pub(crate) fn output_format(
    formats: &'static [OutputFormat],
) -> impl TypedValueParser<Value = OutputFormat> {
    let known = |format: &OutputFormat| PossibleValue::new(format.name()).help(format.help());
    let known: Vec<PossibleValue> = formats.iter().map(known).collect();
    PossibleValuesParser::new(known)
        .try_map(|name| OutputFormat::named(&name).ok_or("there is no such format"))
}

/// The requested format, or else the one that the name of the output implies.
pub(crate) fn requested_format(
    format: Option<OutputFormat>,
    json: bool,
    output: Option<&Path>,
) -> Result<Option<OutputFormat>, Exit> {
    match (format, json) {
        (Some(format), false) => Ok(Some(format)),
        (None | Some(OutputFormat::Json), true) => Ok(Some(OutputFormat::Json)),
        (Some(_), true) => Err(Exit::Usage("--json conflicts with another --format".into())),
        (None, false) => Ok(output.and_then(OutputFormat::of_file)),
    }
}

/// The error about `--links` with another format.
pub(crate) fn links_need_json() -> Exit {
    let json = OutputFormat::Json.name();
    Exit::Usage(format!("--links needs --format {json}: other formats have no list of links"))
}
