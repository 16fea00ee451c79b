//! Reads the fields of a request and reports all errors at once, each with the name of its field.

use std::time::Duration;

use super::other_options::OtherOption;
use crate::api::fields::{MAX_FAULTS, pointer};
use crate::api::json::{Json, Object};
use crate::problem::{FieldError, Problem};

/// Longer field names are truncated in errors.
const MAX_NAME_CHARS: usize = 100;

/// The fields of a request, with the names that were read and the errors so far.
pub(super) struct Fields<'a> {
    fields: &'a Object<'a>,
    known: Vec<&'static str>,
    faults: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(json: &'a Json<'a>) -> Result<Fields<'a>, Problem> {
        let fields = json.as_object().ok_or_else(|| {
            Problem::invalid(vec![FieldError::at("", "is not a JSON object; send {\"url\": …}")])
        })?;
        Ok(Fields { fields, known: Vec::new(), faults: Vec::new() })
    }

    /// The value of a field; null counts as missing.
    pub(super) fn get(&mut self, name: &'static str) -> Option<&'a Json<'a>> {
        self.known.push(name);
        self.fields.get(name).filter(|value| **value != Json::Null)
    }

    /// Reads a field. `None` if it is missing or wrong.
    pub(super) fn take<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Json<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.get(name)?;
        read(value).map_err(|fault| self.fault(pointer(&[name]), fault)).ok()
    }

    /// Reads an array of at most `most` entries.
    pub(super) fn take_list<T>(
        &mut self,
        name: &'static str,
        most: usize,
        mut read: impl FnMut(&Json<'_>) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let value = self.get(name)?;
        let Json::Array(entries) = value else {
            self.fault(pointer(&[name]), "is not a JSON array");
            return None;
        };
        if entries.len() > most {
            self.fault(pointer(&[name]), format!("has more than {most} entries"));
            return None;
        }
        let mut list = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            match read(entry) {
                Ok(entry) => list.push(entry),
                Err(fault) => self.fault(pointer(&[name, &index.to_string()]), fault),
            }
        }
        (list.len() == entries.len()).then_some(list)
    }

    /// Reads a required field.
    pub(super) fn need<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Json<'_>) -> Result<T, String>,
    ) -> Option<T> {
        if self.get(name).is_none() {
            self.fault(pointer(&[name]), "is missing");
        }
        self.take(name, read)
    }

    /// Reports an error, unless there are many.
    pub(super) fn fault(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(FieldError::at(pointer, detail));
        }
    }

    /// Reports errors.
    pub(super) fn faults(&mut self, faults: Vec<FieldError>) {
        let room = MAX_FAULTS.saturating_sub(self.faults.len());
        self.faults.extend(faults.into_iter().take(room));
    }

    /// Checks the remaining fields of the request: options that have no effect here, unsupported options and unknown
    /// fields. Returns all errors.
    pub(super) fn finish(mut self, others: &[OtherOption]) -> Result<(), Problem> {
        let fields = self.fields;
        for (name, value) in fields.iter().filter(|(_, value)| **value != Json::Null) {
            if self.known.contains(&name) {
                continue;
            }
            let other = others.iter().find(|other| other.name == name);
            let checked =
                other.map_or(Err("is not a known option; remove it"), |other| other.check(value));
            if let Err(why) = checked {
                let name: String = name.chars().take(MAX_NAME_CHARS).collect();
                self.fault(pointer(&[&name]), why);
            }
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid(self.faults)) }
    }
}

/// Reads a number of milliseconds within limits (inclusive).
pub(super) fn milliseconds(
    least: u64,
    most: u64,
) -> impl Fn(&Json<'_>) -> Result<Duration, String> {
    move |value| {
        let number = match value {
            Json::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            _ => None,
        };
        number
            .filter(|number| (least..=most).contains(number))
            .map(Duration::from_millis)
            .ok_or_else(|| format!("must be a number of milliseconds, from {least} to {most}"))
    }
}

/// Some clients write whole numbers as `1000.0`.
fn whole(number: f64) -> Option<u64> {
    (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64)
}

/// Reads a whole number within limits (inclusive).
pub(super) fn count(least: u64, most: u64) -> impl Fn(&Json<'_>) -> Result<usize, String> {
    move |value| {
        let number = match value {
            Json::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| format!("must be a whole number from {least} to {most}"))
    }
}
