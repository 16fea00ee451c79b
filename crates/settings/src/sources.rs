//! Everything that a setting may come from.

use std::collections::BTreeMap;
use std::path::Path;

use crate::key::Door;

/// Everything a setting may come from. Not `Debug`: it holds secrets.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The flags that were given; the same key may come several times when it is a list.
    pub flags: &'a [Flag<'a>],
    /// What `--config` names; without it the usual places are looked at.
    pub config_file: Option<&'a Path>,
    /// The environment, as [`process_environment`](crate::process_environment) reads it.
    pub environment: &'a BTreeMap<String, String>,
    /// Where relative paths start.
    pub working_directory: &'a Path,
    /// The doors whose designs' own names for settings count.
    pub own_names_of: &'a [Door],
}

/// A flag of the command line that sets a setting.
#[derive(Clone)]
pub struct Flag<'a> {
    /// The setting's key, such as `rate`.
    pub key: &'a str,
    /// The flag as its user knows it, such as `--rate`.
    pub name: &'a str,
    /// What was given.
    pub value: String,
}
