//! The sources of settings.

use std::collections::BTreeMap;
use std::path::Path;

use crate::key::EnvAliasGroup;

/// The sources of settings. Not `Debug`, since it holds secrets.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The flags that were given; a key may occur several times if it is a list.
    pub flags: &'a [Flag<'a>],
    /// The file given by `--config`; without it the usual locations are tried.
    pub config_file: Option<&'a Path>,
    /// The environment, as [`process_environment`](crate::process_environment) reads it.
    pub environment: &'a BTreeMap<String, String>,
    /// The base of relative paths.
    pub working_directory: &'a Path,
    /// The commands whose designs' variables apply.
    pub own_names_of: &'a [EnvAliasGroup],
}

/// A command-line flag that sets a setting.
#[derive(Clone)]
pub struct Flag<'a> {
    /// The key of the setting, such as `rate`.
    pub key: &'a str,
    /// The flag as the user knows it, such as `--rate`.
    pub name: &'a str,
    pub value: String,
}
