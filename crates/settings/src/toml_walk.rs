//! Walks a TOML document along the tables of settings; an unknown key is a fault.

use std::collections::BTreeMap;
use std::path::Path;

use fetchwell_engine::ports::links::category_name;
use toml_edit::{Item, TableLike, Value};

use super::fault::{SettingError, ValueOrigin, Wrong};
use super::key::{Key, group_of, is_group, meaning};
use super::layer::{Layer, Raw};
use super::names::{retailer_name, site_name, table_path};
use super::schema::{Category, Retailer, Site, Values};
use super::suggest::nearest;

/// The design's name for the tables of retailers, allowed at the top level and in `[retriever]`.
const RETAILER_RATE_LIMITS: &str = "retailer_rate_limits";

/// The values of a settings file.
#[derive(Default)]
pub(super) struct FileLayers {
    pub(super) settings: Layer,
    pub(super) sites: BTreeMap<String, Layer>,
    pub(super) retailers: BTreeMap<String, Layer>,
    pub(super) categories: BTreeMap<String, Layer>,
}

/// The context of a walk, for reading values and locating faults.
pub(super) struct Walk<'a> {
    pub(super) path: &'a Path,
    pub(super) line_starts: Vec<usize>,
    pub(super) working_directory: &'a Path,
    pub(super) faults: &'a mut Vec<SettingError>,
}

/// The current table: the rows it may have, and the prefix of their paths.
struct Level<'a> {
    keys: &'static [Key],
    /// The prefix of the path in faults, such as `sites."example.com".`.
    shown_prefix: &'a str,
    group: &'a str,
}

impl Walk<'_> {
    pub(super) fn root(&mut self, table: &dyn TableLike) -> FileLayers {
        let mut layers = FileLayers::default();
        let level = Level { keys: Values::KEYS, shown_prefix: "", group: "" };
        for (name, item) in table.iter() {
            let origin = self.origin_of(table, name, item);
            match name {
                "sites" => {
                    layers.sites = self.named_tables(name, item, &origin, Site::KEYS, site_name);
                }
                "retailers" | RETAILER_RATE_LIMITS => {
                    self.retailers(name, item, &origin, &mut layers.retailers);
                }
                "categories" => {
                    let canonical = |name: &str| category_name(name).map_err(Wrong::from);
                    layers.categories =
                        self.named_tables(name, item, &origin, Category::KEYS, canonical);
                }
                _ => {
                    if name == "retriever" {
                        self.retailers_in(name, item, &mut layers.retailers);
                    }
                    self.entry(&level, name, item, origin, &mut layers.settings);
                }
            }
        }
        layers
    }

    /// The tables of retailers within the settings of "serve", as the design writes them.
    fn retailers_in(&mut self, group: &str, item: &Item, retailers: &mut BTreeMap<String, Layer>) {
        let table = item.as_table_like();
        let Some((table, limits)) =
            table.and_then(|table| Some((table, table.get(RETAILER_RATE_LIMITS)?)))
        else {
            return;
        };
        let origin = self.origin_of(table, RETAILER_RATE_LIMITS, limits);
        let map = format!("{group}.{RETAILER_RATE_LIMITS}");
        self.retailers(&map, limits, &origin, retailers);
    }

    /// `[retailers.NAME]`, or the same under the design's name. Tables under both names are merged; a row that is given
    /// twice is a fault.
    fn retailers(
        &mut self,
        map: &str,
        item: &Item,
        origin: &ValueOrigin,
        retailers: &mut BTreeMap<String, Layer>,
    ) {
        let found = self.named_tables(map, item, origin, Retailer::KEYS, retailer_name);
        for (name, layer) in found {
            for (key, origin) in retailers.entry(name.clone()).or_default().merge(layer) {
                let shown = format!("{}.{key}", table_path(map, &name));
                let problem = format!("is already set in {}", table_path("retailers", &name));
                self.fault(origin, &shown, Wrong::new(problem, "keep one of the two"));
            }
        }
    }

    /// `[sites."host"]` and similar maps: tables with any name that `canonical` accepts, each with the same rows.
    fn named_tables(
        &mut self,
        map: &str,
        item: &Item,
        origin: &ValueOrigin,
        keys: &'static [Key],
        canonical: fn(&str) -> Result<String, Wrong>,
    ) -> BTreeMap<String, Layer> {
        let mut layers = BTreeMap::new();
        let Some(tables) = item.as_table_like() else {
            self.fault(origin.clone(), map, not_a_table(&format!("{map}.NAME")));
            return layers;
        };
        for (name, item) in tables.iter() {
            let origin = self.origin_of(tables, name, item);
            let shown = table_path(map, name);
            let Some(table) = item.as_table_like() else {
                self.fault(origin, &shown, not_a_table(&shown));
                continue;
            };
            match canonical(name) {
                Err(wrong) => self.fault(origin, &shown, wrong),
                Ok(name) if layers.contains_key(&name) => {
                    let problem = format!("{name} has a table already, in another spelling");
                    self.fault(origin, &shown, Wrong::new(problem, "keep one of the two"));
                }
                Ok(name) => {
                    let prefix = format!("{}.", table_path(map, &name));
                    let level = Level { keys, shown_prefix: &prefix, group: "" };
                    let layer = layers.entry(name).or_default();
                    self.table(&level, table, layer);
                }
            }
        }
        layers
    }

    fn table(&mut self, level: &Level<'_>, table: &dyn TableLike, layer: &mut Layer) {
        for (name, item) in table.iter() {
            let origin = self.origin_of(table, name, item);
            self.entry(level, name, item, origin, layer);
        }
    }

    fn entry(
        &mut self,
        level: &Level<'_>,
        name: &str,
        item: &Item,
        origin: ValueOrigin,
        layer: &mut Layer,
    ) {
        let path = format!("{}{name}", level.group);
        let outcome = if let Some(meaning) = meaning(level.keys, &path) {
            raw_value(item)
                .and_then(|raw| layer.add(meaning, raw, origin.clone(), self.working_directory))
        } else if is_group(level.keys, &path) {
            match item.as_table_like() {
                Some(table) => {
                    let group = format!("{path}.");
                    self.table(&Level { group: &group, ..*level }, table, layer);
                    Ok(())
                }
                None => Err(not_a_table(&path)),
            }
        } else if level.group == "retriever." && name == RETAILER_RATE_LIMITS {
            Ok(()) // `retailers_in` has read it.
        } else {
            Err(unknown(level, &path))
        };
        if let Err(wrong) = outcome {
            self.fault(origin, &format!("{}{path}", level.shown_prefix), wrong);
        }
    }

    fn fault(&mut self, origin: ValueOrigin, key: &str, wrong: Wrong) {
        self.faults.push(SettingError { origin, key: key.to_owned(), wrong });
    }

    fn origin_of(&self, table: &dyn TableLike, name: &str, item: &Item) -> ValueOrigin {
        let span = table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span());
        self.origin(span.map(|span| span.start))
    }

    /// The line at a byte offset in the text.
    pub(super) fn origin(&self, offset: Option<usize>) -> ValueOrigin {
        let line_at = |offset| self.line_starts.partition_point(|start| *start <= offset);
        ValueOrigin::File { path: self.path.to_owned(), line: offset.map(line_at) }
    }
}

/// The byte offset of each line.
pub(super) fn line_starts(text: &str) -> Vec<usize> {
    let after_newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
    std::iter::once(0).chain(after_newlines).collect()
}

/// A TOML value as text, which its kind checks later.
fn raw_value(item: &Item) -> Result<Raw, Wrong> {
    let wrong = |what: &str| Wrong::new(format!("is {what}"), "give it a plain value");
    let value = item.as_value().ok_or_else(|| wrong("a table"))?;
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| plain_text(item).ok_or_else(|| wrong("a list within a list")))
            .collect::<Result<_, _>>()
            .map(Raw::Many),
        other => plain_text(other).map(Raw::One).ok_or_else(|| wrong("a date or a table")),
    }
}

fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Boolean(switch) => Some(switch.value().to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}

fn not_a_table(name: &str) -> Wrong {
    Wrong::new("is not a table", format!("write [{name}] and its settings below it"))
}

fn unknown(level: &Level<'_>, path: &str) -> Wrong {
    let maps: &[&str] = match level.shown_prefix {
        "" => &["sites", "retailers", "categories", RETAILER_RATE_LIMITS],
        _ => &[],
    };
    let known = level.keys.iter().map(|key| key.path);
    let groups = level.keys.iter().filter_map(group_of);
    let mend = match nearest(path, known.chain(groups).chain(maps.iter().copied())) {
        Some(near) => format!("did you mean {}{near}?", level.shown_prefix),
        None => "remove it; `fetchwell config show` lists all settings".to_owned(),
    };
    Wrong::new("no such setting", mend)
}
