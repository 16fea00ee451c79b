//! Reads a body with several messages.

use fetchwell_policy::url::MAX_URL_BYTES;
use serde::Serialize;
use utoipa::ToSchema;

use super::fields::{FetchRequest, Judge, pointer};
use super::json::{Json, Object};
use super::values::{self, FieldProblem};
use crate::problem::{FieldError, Problem, ProblemBody};

/// The maximum number of messages in a batch.
pub(super) const MAX_BATCH: usize = 10_000;

/// A batch of this size, with every field of every message, has fewer values. Each value of a body takes many times
/// the memory of its shortest text, so a body with more is not parsed.
const MAX_VALUES: usize = 400_000;

/// The maximum number of errors that are reported for one message, and for all.
const MAX_ERRORS_PER_MESSAGE: usize = 8;
const MAX_ERRORS: usize = 1_000;

/// Errors repeat the URL and the correlation id of their message until these have this many bytes in total.
const MAX_REPEATED_BYTES: usize = 1 << 20;

const KNOWN: [&str; 3] = ["messages", "callback_url", "invalid"];

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

    fn bytes(&self) -> usize {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        bytes(&self.url) + bytes(&self.correlation_id)
    }
}

/// What happens to the invalid messages of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ToSchema)]
#[schema(as = InvalidMessages)]
#[serde(rename_all = "snake_case")]
pub(super) enum Invalid {
    /// One of them refuses the batch.
    #[default]
    Reject,
    /// They are left out, and the response has a problem for each of them.
    Skip,
}

/// A batch whose messages are not yet checked.
pub(super) struct BatchBody<'a, 'b> {
    pub(super) entries: &'b [Json<'a>],
    pub(super) callback_url: Option<String>,
    pub(super) invalid: Invalid,
}

/// The messages of a batch that are valid, and the problems of the others.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) messages: Vec<FetchRequest>,
    pub(super) skipped: Vec<SkippedMessage>,
}

/// An invalid message of a batch, which was left out.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkippedMessage {
    /// Its place in the batch, counted from 0.
    index: usize,
    /// What is wrong with it.
    #[serde(flatten)]
    problem: ProblemBody,
}

/// Whether a body has so many values that no batch can have them. Strings count as one value each.
pub(super) fn has_too_many_values(body: &[u8]) -> bool {
    // Each value takes at least one byte.
    if body.len() <= MAX_VALUES {
        return false;
    }
    let mut values = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    for byte in body {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

impl<'a, 'b> BatchBody<'a, 'b> {
    /// Reads everything but the messages.
    pub(super) fn read(
        json: &'b Json<'a>,
        judge: &Judge<'_>,
    ) -> Result<BatchBody<'a, 'b>, Vec<FieldError>> {
        let Json::Object(fields) = json else {
            let detail = "is not a JSON object; send {\"messages\": […]}";
            return Err(vec![FieldError::at("", detail)]);
        };
        let unknown = fields.names().filter(|name| !KNOWN.contains(name));
        let mut faults: Vec<FieldError> = unknown
            .take(MAX_ERRORS_PER_MESSAGE)
            .map(|name| {
                let detail = format!("is not a known field; known fields: {}", KNOWN.join(", "));
                FieldError::at(pointer(&[name]), detail)
            })
            .collect();
        let mut note =
            |pointer: &str, fault: FieldProblem| faults.push(FieldError::at(pointer, fault));
        let entries = entries(fields).map_err(|fault| note("/messages", fault)).ok();
        let callback_url =
            callback_url(fields, judge).map_err(|fault| note("/callback_url", fault)).ok();
        let invalid = invalid(fields).map_err(|fault| note("/invalid", fault)).ok();
        match (entries, callback_url, invalid) {
            (Some(entries), Some(callback_url), Some(invalid)) if faults.is_empty() => {
                Ok(BatchBody { entries, callback_url, invalid })
            }
            _ => Err(faults),
        }
    }

    /// Reads the messages. If invalid messages refuse the batch, or if none is valid, the problem names them.
    pub(super) fn sort(&self, judge: &Judge<'_>) -> Result<Sorted, Problem> {
        let mut messages = Vec::with_capacity(self.entries.len());
        let mut skipped = Vec::new();
        let mut errors = Errors::default();
        for (index, json) in self.entries.iter().enumerate() {
            match FetchRequest::read(json, judge) {
                Ok(message) => messages.push(message),
                Err(faults) => {
                    if self.invalid == Invalid::Skip {
                        skipped.push(skipped_message(index, json, &faults));
                    }
                    if !errors.add(index, json, faults) && self.invalid == Invalid::Reject {
                        break;
                    }
                }
            }
        }
        if !errors.list.is_empty() && (self.invalid == Invalid::Reject || messages.is_empty()) {
            return Err(Problem::invalid(errors.list));
        }
        Ok(Sorted { messages, skipped })
    }
}

/// The errors of a batch, within limits.
#[derive(Default)]
struct Errors {
    list: Vec<FieldError>,
    repeated_bytes: usize,
}

impl Errors {
    /// Adds those of a message. Returns whether there is room for more.
    fn add(&mut self, index: usize, json: &Json<'_>, faults: Vec<FieldError>) -> bool {
        let entry = Entry::of(json);
        for fault in faults.into_iter().take(MAX_ERRORS_PER_MESSAGE) {
            if self.list.len() >= MAX_ERRORS {
                return false;
            }
            self.repeated_bytes += entry.bytes();
            let repeats = self.repeated_bytes <= MAX_REPEATED_BYTES;
            let url = entry.url.clone().filter(|_| repeats);
            let correlation_id = entry.correlation_id.clone().filter(|_| repeats);
            let pointer = pointer_in(index, fault.pointer.as_deref());
            self.list.push(FieldError {
                pointer,
                index: Some(index),
                url,
                correlation_id,
                ..fault
            });
        }
        true
    }
}

fn skipped_message(index: usize, json: &Json<'_>, faults: &[FieldError]) -> SkippedMessage {
    let Entry { url, correlation_id } = Entry::of(json);
    let told = faults.iter().take(MAX_ERRORS_PER_MESSAGE).map(|fault| FieldError {
        pointer: pointer_in(index, fault.pointer.as_deref()),
        ..fault.clone()
    });
    let problem = Problem::invalid(told.collect()).about(url, correlation_id).into_body();
    SkippedMessage { index, problem }
}

fn pointer_in(index: usize, within: Option<&str>) -> Option<String> {
    Some(format!("/messages/{index}{}", within.unwrap_or_default()))
}

fn entries<'a, 'b>(fields: &'b Object<'a>) -> Result<&'b [Json<'a>], FieldProblem> {
    match fields.get("messages") {
        Some(Json::Array(entries)) if (1..=MAX_BATCH).contains(&entries.len()) => Ok(entries),
        Some(Json::Array(_)) => Err(format!("must have 1 to {MAX_BATCH} messages")),
        Some(_) => Err("is not a JSON array".to_owned()),
        None => Err("is missing".to_owned()),
    }
}

fn callback_url(fields: &Object<'_>, judge: &Judge<'_>) -> Result<Option<String>, FieldProblem> {
    match fields.get("callback_url") {
        None | Some(Json::Null) => Ok(None),
        Some(given) => values::web_url(given, judge.guard).map(|(url, _)| Some(url)),
    }
}

fn invalid(fields: &Object<'_>) -> Result<Invalid, FieldProblem> {
    match fields.get("invalid") {
        None | Some(Json::Null) => Ok(Invalid::default()),
        Some(given) => match given.as_str() {
            Some("reject") => Ok(Invalid::Reject),
            Some("skip") => Ok(Invalid::Skip),
            _ => Err("must be \"reject\" or \"skip\"".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_policy::address::AddressGuard;
    use fetchwell_policy::time::Time;
    use serde_json::{Value, json};

    use super::*;

    fn with_judge<T>(work: impl FnOnce(&Judge<'_>) -> T) -> T {
        let guard = AddressGuard::default();
        let wall = Time::from_secs(1_700_000_000);
        work(&Judge { guard: &guard, wall, default_deadline: Duration::from_secs(60) })
    }

    /// The numbers of valid and of skipped messages, or the pointers of all errors.
    fn read(json: &Value) -> Result<(usize, usize), Value> {
        let text = json.to_string();
        let json: Json<'_> = serde_json::from_str(&text).unwrap();
        with_judge(|judge| {
            let body = BatchBody::read(&json, judge).map_err(|faults| json!(faults))?;
            let sorted = body.sort(judge).map_err(|problem| json!(problem.into_body()))?;
            Ok((sorted.messages.len(), sorted.skipped.len()))
        })
    }

    fn good() -> Value {
        json!({"url": "http://a.test/", "retailer": "shop", "correlation_id": "c"})
    }

    #[test]
    fn a_batch_is_an_array_of_messages() {
        let many = |count: usize| json!({"messages": vec![good(); count]});
        assert_eq!(read(&many(MAX_BATCH)), Ok((MAX_BATCH, 0)));
        for (json, pointer) in [
            (many(0), "/messages"),
            (many(MAX_BATCH + 1), "/messages"),
            (json!({}), "/messages"),
            (json!({"messages": {}}), "/messages"),
            (json!({"messages": [good()], "x": 1}), "/x"),
            (json!({"messages": [good()], "invalid": "drop"}), "/invalid"),
            (json!({"messages": [good()], "invalid": 1}), "/invalid"),
            (json!({"messages": [good()], "callback_url": "http://10.0.0.1/"}), "/callback_url"),
            (json!([]), ""),
        ] {
            assert_eq!(read(&json).unwrap_err()[0]["pointer"], pointer, "{json}");
        }
    }

    #[test]
    fn invalid_messages_refuse_a_batch_or_are_left_out() {
        let bad = json!({"url": "ftp://a.test/", "retailer": "shop", "correlation_id": "bad"});
        let batch = |invalid: &str| json!({"messages": [good(), bad, good()], "invalid": invalid});
        let refused = read(&batch("reject")).unwrap_err();
        assert_eq!(refused["errors"][0]["pointer"], "/messages/1/url");
        assert_eq!(read(&batch("skip")), Ok((2, 1)));
        let none = json!({"messages": [bad], "invalid": "skip"});
        assert_eq!(read(&none).unwrap_err()["errors"][0]["index"], 0);
    }

    #[test]
    fn a_left_out_message_is_named_with_its_problem() {
        let text = json!({"url": "ftp://a.test/", "correlation_id": "bad"}).to_string();
        let json: Json<'_> = serde_json::from_str(&text).unwrap();
        let faults = with_judge(|judge| FetchRequest::read(&json, judge)).unwrap_err();
        let told = json!(skipped_message(7, &json, &faults));
        assert_eq!(
            (&told["index"], &told["type"]),
            (&json!(7), &json!("/docs#problem-invalid-field"))
        );
        assert_eq!(
            (&told["url"], &told["correlation_id"]),
            (&json!("ftp://a.test/"), &json!("bad"))
        );
        let pointers: Vec<_> =
            told["errors"].as_array().unwrap().iter().map(|one| &one["pointer"]).collect();
        assert_eq!(pointers, ["/messages/7/url"]);
    }

    /// Few bytes of a body must not become many bytes of a response.
    #[test]
    fn the_errors_of_a_batch_are_bounded() {
        let url = format!("http://a.test/{}", "x".repeat(8_000));
        let mut bad = json!({"url": url, "retailer": "shop", "correlation_id": "c"});
        for number in 0..200 {
            bad[format!("f{number}")] = json!(1);
        }
        let refused = read(&json!({"messages": vec![bad; 1_000]})).unwrap_err();
        assert_eq!(refused["errors"].as_array().unwrap().len(), MAX_ERRORS);
        assert!(refused.to_string().len() < 2 * MAX_REPEATED_BYTES);
    }

    #[test]
    fn a_body_of_nothing_but_brackets_is_not_parsed() {
        let full = json!({"url": "http://a.test/a,b[c{\"", "retailer": "shop", "correlation_id": "c",
            "callback_url": "http://b.test/", "max_age": 1, "deadline": 1, "extract": true, "links": true,
            "headers": {"accept": "a", "accept-language": "b", "referer": "http://c.test/",
                "if-none-match": "\"x\"", "if-modified-since": "x"}});
        let largest = json!({"messages": vec![full; MAX_BATCH]}).to_string();
        assert!(!has_too_many_values(largest.as_bytes()));
        assert!(!has_too_many_values(format!("\"{}\"", ",".repeat(MAX_VALUES + 1)).as_bytes()));
        assert!(has_too_many_values("[".repeat(MAX_VALUES + 1).as_bytes()));
        assert!(has_too_many_values("\"\\\"\",".repeat(MAX_VALUES + 1).as_bytes()));
    }
}
