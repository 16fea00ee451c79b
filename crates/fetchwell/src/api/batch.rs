//! What stands in a body with several messages.

use fetchwell_policy::url::MAX_URL_BYTES;
use serde_json::Value;

use super::fields::{FetchRequest, Judge, pointer};
use super::problem::{FieldError, Problem};

const MAX_BATCH: usize = 1_000;

/// What a problem says of the message that it is about.
pub(super) struct Entry {
    pub(super) url: Option<String>,
    pub(super) correlation_id: Option<String>,
}

impl Entry {
    /// As far as it can be read.
    pub(super) fn of(json: &Value) -> Entry {
        // What is longer than it may be is not repeated.
        let text = |name: &str| {
            let text = json.get(name)?.as_str()?;
            (text.len() <= MAX_URL_BYTES).then(|| text.to_owned())
        };
        Entry { url: text("url"), correlation_id: text("correlation_id") }
    }
}

/// The messages of a batch.
pub(super) fn entries(json: &Value) -> Result<&[Value], Vec<FieldError>> {
    let fault = |pointer: &str, detail: &str| vec![FieldError::at(pointer, detail)];
    let Value::Object(fields) = json else {
        return Err(fault("", "is no JSON object; send {\"messages\": […]}"));
    };
    if let Some(unknown) = fields.keys().find(|name| *name != "messages") {
        return Err(fault(&pointer(&[unknown]), "is not a known field; known is messages"));
    }
    match fields.get("messages") {
        Some(Value::Array(entries)) if (1..=MAX_BATCH).contains(&entries.len()) => Ok(entries),
        Some(Value::Array(_)) => Err(fault("/messages", "must have 1 to 1000 messages")),
        Some(_) => Err(fault("/messages", "is no JSON array")),
        None => Err(fault("/messages", "is missing")),
    }
}

/// Reads all, or tells of each that is bad.
pub(super) fn read_all(entries: &[Value], judge: &Judge<'_>) -> Result<Vec<FetchRequest>, Problem> {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_batch_is_an_array_of_messages() {
        let many = |count: usize| json!({"messages": vec![json!({}); count]});
        assert_eq!(entries(&many(MAX_BATCH)).map(<[Value]>::len), Ok(MAX_BATCH));
        for (json, pointer) in [
            (many(0), "/messages"),
            (many(MAX_BATCH + 1), "/messages"),
            (json!({}), "/messages"),
            (json!({"messages": {}}), "/messages"),
            (json!({"messages": [{}], "x": 1}), "/x"),
            (json!([]), ""),
        ] {
            assert_eq!(entries(&json).unwrap_err()[0].pointer.as_deref(), Some(pointer), "{json}");
        }
    }
}
