//! Settings: one table (`schema`), five sources, and all errors reported at once.
//!
//! Flags override the environment, which overrides the variables of a design, which override the file, which overrides
//! the defaults. [`Settings::load`] is the only entry point. Its input is in [`Sources`], so that tests need no process
//! state; only files are opened.

mod addresses;
mod archives;
mod choices;
mod combined;
pub mod commands;
mod cross_checks;
mod default_file;
mod environment;
mod fault;
pub mod features;
mod file;
mod flags;
mod key;
mod kinds;
mod layer;
mod limits;
mod names;
mod reader;
mod reference;
mod schema;
mod secrets;
mod servers;
mod sources;
mod suggest;
#[cfg(test)]
mod tests;
mod texts;
mod toml_walk;

use std::collections::BTreeMap;
use std::net::SocketAddr;

pub use archives::ArchiveBase;
pub use choices::{DocumentFormat, LogFormat};
pub use default_file::default_file;
pub use environment::process_environment;
pub use fault::{SettingError, SettingsFaults, ValueOrigin, Wrong};
pub use key::EnvAliasGroup;
pub use reader::Effective;
pub use reference::reference;
pub use schema::{Category, Retailer, Values};
pub use secrets::SecretText;
pub use sources::{Flag, Sources};

use reader::{Findings, Reader, read_named_tables};
use schema::Site;

/// Settings that passed every check.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Every setting of the table, by name and type.
    pub values: Values,
    /// Requests per second for each site with its own rate.
    pub site_rates: BTreeMap<String, f64>,
    /// The retailers with their own table.
    pub retailers: BTreeMap<String, Retailer>,
    /// The categories with their own table.
    pub categories: BTreeMap<String, Category>,
    /// The effective value and the origin of each setting; secrets are hidden.
    pub effective: Vec<Effective>,
    /// Warnings about values that have no effect.
    pub warnings: Vec<SettingError>,
}

impl Settings {
    /// Reads and checks all sources. An invalid value is a fault even if another source overrides it: a file that only
    /// works with a certain flag is broken.
    pub fn load(sources: &Sources<'_>) -> Result<Settings, SettingsFaults> {
        let mut findings = Findings::default();
        let file = file::read(sources, &mut findings.faults);
        let environment = environment::layers(sources, &mut findings.faults);
        let strongest_first = &[
            flags::read(sources, &mut findings.faults),
            environment.settings,
            environment::own_names_layer(sources, &mut findings.faults),
            file.settings,
        ];

        let prefix = String::new();
        let values = Values::read(&mut Reader { prefix, strongest_first, findings: &mut findings });
        let sites = read_named_tables("sites", [file.sites], &mut findings, Site::read);
        let retailers = [environment.retailers, file.retailers];
        let retailers = read_named_tables("retailers", retailers, &mut findings, Retailer::read);
        let categories =
            read_named_tables("categories", [file.categories], &mut findings, Category::read);
        if let Some(values) = &values {
            cross_checks::run(values, &mut findings);
        }

        match values {
            Some(values) if findings.faults.is_empty() => Ok(Settings {
                values,
                site_rates: sites
                    .into_iter()
                    .filter_map(|(host, site)| Some((host, site.rate?)))
                    .collect(),
                retailers,
                categories,
                effective: findings.effective,
                warnings: environment::unknown_own_names(sources),
            }),
            _ => Err(SettingsFaults::new(findings.faults)),
        }
    }

    /// The listen address of "serve". The port is `retriever.api_port`, unless `retriever.listen` comes from a source
    /// with higher precedence.
    pub fn retriever_address(&self) -> SocketAddr {
        let mut address = self.values.retriever_listen;
        let origins = self.origin("retriever.listen").zip(self.origin("retriever.api_port"));
        let listen_beats_port = origins.is_some_and(|(listen, port)| listen.is_stronger_than(port));
        if let Some(port) = self.values.retriever_api_port.filter(|_| !listen_beats_port) {
            address.set_port(port);
        }
        address
    }

    /// Whether no source sets it.
    pub fn is_default(&self, key: &str) -> bool {
        self.origin(key) == Some(&ValueOrigin::Default)
    }

    /// Where the value of a setting came from.
    fn origin(&self, key: &str) -> Option<&ValueOrigin> {
        let setting = self.effective.iter().find(|setting| setting.key == key);
        setting.map(|setting| &setting.origin)
    }
}
