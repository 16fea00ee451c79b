//! Reads a body with several messages.

use fetchwell_policy::url::MAX_URL_BYTES;

use super::fields::{FetchRequest, Judge, pointer};
use super::json::Json;
use crate::problem::{FieldError, Problem};

const MAX_BATCH: usize = 1_000;

/// The fields of a message that a problem about it repeats.
pub(super) struct Entry {
    pub(super) url: Option<String>,
    pub(super) correlation_id: Option<String>,
}

impl Entry {
    /// The fields that can be read; the message may be invalid.
    pub(super) fn of(json: &Json<'_>) -> Entry {
        // A value over the maximum length is not repeated.
        let text = |name: &str| {
            let text = json.as_object()?.get(name)?.as_str()?;
            (text.len() <= MAX_URL_BYTES).then(|| text.to_owned())
        };
        Entry { url: text("url"), correlation_id: text("correlation_id") }
    }
}

/// The messages of a batch, not yet checked.
pub(super) fn entries<'a, 'b>(json: &'b Json<'a>) -> Result<&'b [Json<'a>], Vec<FieldError>> {
    let fault = |pointer: &str, detail: &str| vec![FieldError::at(pointer, detail)];
    let Json::Object(fields) = json else {
        return Err(fault("", "is not a JSON object; send {\"messages\": […]}"));
    };
    if let Some(unknown) = fields.names().find(|name| *name != "messages") {
        return Err(fault(&pointer(&[unknown]), "is not a known field; the only one is messages"));
    }
    match fields.get("messages") {
        Some(Json::Array(entries)) if (1..=MAX_BATCH).contains(&entries.len()) => Ok(entries),
        Some(Json::Array(_)) => Err(fault("/messages", "must have 1 to 1000 messages")),
        Some(_) => Err(fault("/messages", "is not a JSON array")),
        None => Err(fault("/messages", "is missing")),
    }
}

/// Reads all messages, or reports every invalid one.
pub(super) fn read_all(
    entries: &[Json<'_>],
    judge: &Judge<'_>,
) -> Result<Vec<FetchRequest>, Problem> {
    let mut errors = Vec::new();
    let mut messages = Vec::with_capacity(entries.len());
    for (index, json) in entries.iter().enumerate() {
        match FetchRequest::read(json, judge) {
            Ok(message) => messages.push(message),
            Err(faults) => errors.extend(faults.into_iter().map(|fault| {
                let Entry { url, correlation_id } = Entry::of(json);
                let within = fault.pointer.unwrap_or_default();
                let pointer = Some(format!("/messages/{index}{within}"));
                FieldError { pointer, index: Some(index), url, correlation_id, ..fault }
            })),
        }
    }
    if errors.is_empty() { Ok(messages) } else { Err(Problem::invalid(errors)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_batch_is_an_array_of_messages() {
        let found = |json: &Value| {
            let text = json.to_string();
            entries(&serde_json::from_str(&text).unwrap()).map(<[Json<'_>]>::len)
        };
        let many = |count: usize| json!({"messages": vec![json!({}); count]});
        assert_eq!(found(&many(MAX_BATCH)), Ok(MAX_BATCH));
        for (json, pointer) in [
            (many(0), "/messages"),
            (many(MAX_BATCH + 1), "/messages"),
            (json!({}), "/messages"),
            (json!({"messages": {}}), "/messages"),
            (json!({"messages": [{}], "x": 1}), "/x"),
            (json!([]), ""),
        ] {
            assert_eq!(found(&json).unwrap_err()[0].pointer.as_deref(), Some(pointer), "{json}");
        }
    }
}
