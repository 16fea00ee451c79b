//! A posted message, read field by field, so that all faults are reported at once, each with its location.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::inbox::document::DocumentOptions;
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use utoipa::ToSchema;

use super::json::{Json, Object};
use super::values::FieldProblem;
use super::{times, values};
use crate::problem::FieldError;
use crate::views::schemas::{Deadline, MaxAge, SentHeaders};

/// The retailer of messages that name none.
pub(super) const DEFAULT_RETAILER: &str = "default";

/// The maximum number of unknown fields and headers that are reported. An error is longer than the shortest field.
pub(super) const MAX_FAULTS: usize = 20;

const KNOWN: [&str; 9] = [
    "url",
    "retailer",
    "correlation_id",
    "callback_url",
    "max_age",
    "headers",
    "deadline",
    "extract",
    "links",
];

/// The rules for checking fields.
pub(super) struct Judge<'a> {
    pub(super) guard: &'a AddressGuard,
    pub(super) wall: Time,
    pub(super) default_deadline: Duration,
}

/// A page to fetch.
#[derive(Debug, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FetchRequest {
    /// What to fetch: http or https, at most 8 KiB.
    #[schema(
        example = "https://example.com/page",
        format = "uri",
        min_length = 1,
        max_length = 8192
    )]
    pub(super) url: String,
    /// The site of the URL.
    #[schema(ignore)]
    pub(super) site: Site,
    /// The retailer: 1 to 32 characters from a-z, 0-9, _ and -; `default` if there is none. A retailer has its own
    /// limit.
    #[schema(value_type = Option<String>, example = "admhr", pattern = "^[a-z0-9_-]{1,32}$")]
    pub(super) retailer: String,
    /// An id of your choice: 1 to 256 characters, none of them a control character. The id of the message if there is
    /// none.
    #[schema(
        example = "uuid-123",
        min_length = 1,
        max_length = 256,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub(super) correlation_id: Option<String>,
    /// The URL to which the result is delivered as a signed webhook.
    #[schema(format = "uri", min_length = 1, max_length = 8192)]
    pub(super) callback_url: Option<String>,
    /// Maximum age of a stored page that may be returned at once: whole seconds, or text such as "30s".
    #[schema(value_type = Option<MaxAge>, example = "30s")]
    pub(super) max_age: Option<Duration>,
    /// The deadline of the message: whole seconds, text such as "10m", or a time such as
    /// "2030-01-01T00:00:00Z"; at most 24 hours.
    #[schema(value_type = Option<Deadline>, example = "10m")]
    pub(super) deadline: Duration,
    /// Headers to send along: accept, accept-language, if-modified-since, if-none-match, referer.
    #[schema(value_type = Option<SentHeaders>)]
    pub(super) headers: Vec<(String, String)>,
    /// Whether to add the article of the page: title, text, Markdown, authors, date of publication, name of the site,
    /// description and canonical URL.
    #[schema(value_type = Option<bool>)]
    pub(super) extract: bool,
    /// Whether to add the URLs that the page links to.
    #[schema(value_type = Option<bool>)]
    pub(super) links: bool,
    /// The document to make of the page, for endpoints of other APIs. The messages of a batch share it.
    #[schema(ignore)]
    pub(super) document: Option<Arc<DocumentOptions>>,
}

impl FetchRequest {
    /// Reads a message, or reports everything that is wrong with it.
    pub(super) fn read(
        json: &Json<'_>,
        judge: &Judge<'_>,
    ) -> Result<FetchRequest, Vec<FieldError>> {
        let Json::Object(fields) = json else {
            return Err(vec![FieldError::at("", "is not a JSON object; send {\"url\": …}")]);
        };
        let mut reader = Reader::of(fields, &KNOWN);
        let url = reader.needed("url", |value| values::web_url(value, judge.guard));
        let retailer = reader.optional("retailer", values::retailer);
        let correlation_id = reader.optional("correlation_id", values::correlation_id);
        let callback_url =
            reader.optional("callback_url", |value| values::web_url(value, judge.guard));
        let max_age = reader.optional("max_age", times::max_age).filter(|age| !age.is_zero());
        let deadline = reader.optional("deadline", |value| times::deadline(value, judge.wall));
        let headers = reader.headers();
        let extract = reader.optional("extract", values::switch).unwrap_or_default();
        let links = reader.optional("links", values::switch).unwrap_or_default();
        match url {
            Some((url, site)) if reader.faults.is_empty() => Ok(FetchRequest {
                url,
                site,
                retailer: retailer.unwrap_or_else(|| DEFAULT_RETAILER.to_owned()),
                correlation_id,
                callback_url: callback_url.map(|(url, _)| url),
                max_age,
                deadline: deadline.unwrap_or(judge.default_deadline),
                headers,
                extract,
                links,
                document: None,
            }),
            _ => Err(reader.faults),
        }
    }

    /// The options for the plan that fetches the page.
    pub(super) fn options(&self) -> Options {
        Options {
            headers: self.headers.clone(),
            extract: self.extract,
            links: self.links,
            document: self.document.as_deref().cloned(),
        }
    }

    /// Whether another message has the same options.
    pub(super) fn has_same_options(&self, other: &FetchRequest) -> bool {
        self.headers == other.headers
            && self.extract == other.extract
            && self.links == other.links
            && self.document == other.document
    }
}

/// Reads the fields of an object, and collects what is wrong with them.
pub(super) struct Reader<'a> {
    fields: &'a Object<'a>,
    pub(super) faults: Vec<FieldError>,
}

impl<'a> Reader<'a> {
    /// Reads an object that may have only these fields.
    pub(super) fn of(fields: &'a Object<'a>, known: &[&str]) -> Reader<'a> {
        let mut reader = Reader { fields, faults: Vec::new() };
        reader.refuse_unknown(known);
        reader
    }

    /// A null field counts as missing.
    fn get(&self, name: &str) -> Option<&'a Json<'a>> {
        self.fields.get(name).filter(|value| **value != Json::Null)
    }

    fn refuse_unknown(&mut self, known: &[&str]) {
        for name in self.fields.names().filter(|name| !known.contains(name)) {
            if self.faults.len() >= MAX_FAULTS {
                break;
            }
            let detail = format!("is not a known field; known fields: {}", known.join(", "));
            self.faults.push(FieldError::at(pointer(&[name]), detail));
        }
    }

    pub(super) fn needed<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Json<'_>) -> Result<T, FieldProblem>,
    ) -> Option<T> {
        if self.get(name).is_none() {
            self.faults.push(FieldError::at(pointer(&[name]), "is missing"));
        }
        self.optional(name, read)
    }

    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Json<'_>) -> Result<T, FieldProblem>,
    ) -> Option<T> {
        let found = self.get(name)?;
        read(found).map_err(|fault| self.faults.push(FieldError::at(pointer(&[name]), fault))).ok()
    }

    /// Lower case and sorted by name, so that the same headers compare equal however they were written.
    pub(super) fn headers(&mut self) -> Vec<(String, String)> {
        self.get("headers").map(|given| headers(given, &mut self.faults)).unwrap_or_default()
    }
}

/// Reads the headers of a message. Faults are added.
pub(super) fn headers(given: &Json<'_>, faults: &mut Vec<FieldError>) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let Json::Object(given) = given else {
        faults.push(FieldError::at("/headers", "is not a JSON object of names and values"));
        return headers;
    };
    for (name, value) in given.iter() {
        if faults.len() >= MAX_FAULTS {
            break;
        }
        let lower = name.to_ascii_lowercase();
        let is_twice = headers.iter().any(|(known, _)| *known == lower);
        match values::header(&lower, value, is_twice) {
            Ok(text) => headers.push((lower, text)),
            Err(fault) => faults.push(FieldError::at(pointer(&["headers", name]), fault)),
        }
    }
    headers.sort();
    headers
}

/// A JSON pointer (RFC 6901).
pub(super) fn pointer(parts: &[&str]) -> String {
    parts.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const WALL: Time = Time::from_secs(1_700_000_000);

    fn read(changes: &Value) -> Result<FetchRequest, Vec<String>> {
        let mut json =
            json!({"url": "https://a.test/x", "retailer": "admhr", "correlation_id": "c"});
        for (name, value) in changes.as_object().unwrap() {
            json[name] = value.clone();
        }
        let guard = AddressGuard::default();
        let default_deadline = Duration::from_secs(3_600);
        let text = json.to_string();
        let json = serde_json::from_str(&text).unwrap();
        FetchRequest::read(&json, &Judge { guard: &guard, wall: WALL, default_deadline }).map_err(
            |faults| faults.into_iter().map(|fault| fault.pointer.unwrap_or_default()).collect(),
        )
    }

    #[test]
    fn a_message_is_read_as_it_was_meant() {
        let plain = read(&json!({})).unwrap();
        assert_eq!((plain.deadline.as_secs(), plain.max_age), (3_600, None));
        assert_eq!(plain.options(), Options::default());
        let full = read(&json!({
            "url": " HTTPS://A.test:443/x ", "callback_url": "http://b.test/hook", "max_age": "30s",
            "headers": {"Referer": "http://c.test/", "accept": "*/*"}, "deadline": 60,
            "extract": true, "links": true,
        }))
        .unwrap();
        assert!(full.options().extract && full.options().links);
        assert_eq!(full.url, " HTTPS://A.test:443/x ");
        assert_eq!(full.headers[0].0, "accept");
        assert_eq!((full.deadline.as_secs(), full.max_age.unwrap().as_secs()), (60, 30));
        assert_eq!(read(&json!({"max_age": 0})).unwrap().max_age, None);
        assert_eq!(read(&json!({"callback_url": null, "headers": null})).unwrap(), plain);
        assert_eq!((&*plain.retailer, plain.correlation_id.as_deref()), ("admhr", Some("c")));
        let unnamed = read(&json!({"retailer": null, "correlation_id": null})).unwrap();
        assert_eq!((&*unnamed.retailer, unnamed.correlation_id), ("default", None));
    }

    #[test]
    fn each_fault_is_told_with_its_place() {
        for (changes, pointer) in [
            (json!({"url": 1}), "/url"),
            (json!({"url": ""}), "/url"),
            (json!({"url": "ftp://a.test/"}), "/url"),
            (json!({"url": "http://127.0.0.1/"}), "/url"),
            (json!({"url": "http://[::1]:8080/"}), "/url"),
            (json!({"url": "http://169.254.169.254/latest"}), "/url"),
            (json!({"url": "http://0x7f.1/"}), "/url"),
            (json!({"url": "http://a.test/\u{0}"}), "/url"),
            (json!({"url": format!("http://a.test/{}", "x".repeat(8_192))}), "/url"),
            (json!({"callback_url": "http://10.0.0.1/"}), "/callback_url"),
            (json!({"callback_url": 1}), "/callback_url"),
            (json!({"retailer": ""}), "/retailer"),
            (json!({"retailer": 1}), "/retailer"),
            (json!({"retailer": "Admhr"}), "/retailer"),
            (json!({"retailer": "x".repeat(33)}), "/retailer"),
            (json!({"correlation_id": ""}), "/correlation_id"),
            (json!({"correlation_id": "a\u{0}"}), "/correlation_id"),
            (json!({"correlation_id": "ä".repeat(257)}), "/correlation_id"),
            (json!({"headers": []}), "/headers"),
            (json!({"headers": {"cookie": "a=b"}}), "/headers/cookie"),
            (json!({"headers": {"host": "b.test"}}), "/headers/host"),
            (json!({"headers": {"accept": "a\r\nb: c"}}), "/headers/accept"),
            (json!({"headers": {"accept": "x".repeat(1_025)}}), "/headers/accept"),
            (json!({"headers": {"a/b~": ""}}), "/headers/a~1b~0"),
            (json!({"extract": "yes"}), "/extract"),
            (json!({"links": 1}), "/links"),
            (json!({"deadline": 0}), "/deadline"),
            (json!({"max_age": -1}), "/max_age"),
            (json!({"colour": "blue"}), "/colour"),
        ] {
            assert_eq!(read(&changes).unwrap_err(), [pointer], "{changes}");
        }
        assert_eq!(read(&json!({"headers": {"Accept": "a", "accept": "b"}})).unwrap_err().len(), 1);
        assert_eq!(read(&json!({"url": 1, "retailer": 2, "x": 3})).unwrap_err().len(), 3);
    }

    /// A body of 64 KiB could otherwise become a response of megabytes, and a batch even more.
    #[test]
    fn the_errors_of_a_message_are_bounded() {
        let many: serde_json::Map<String, Value> =
            (0..10_000).map(|number| (format!("x{number}"), json!(1))).collect();
        assert_eq!(read(&json!(many)).unwrap_err().len(), MAX_FAULTS);
        assert_eq!(read(&json!({"headers": many})).unwrap_err().len(), MAX_FAULTS);
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_no_object_refused() {
        let guard = AddressGuard::default();
        let judge = Judge { guard: &guard, wall: WALL, default_deadline: Duration::ZERO };
        let pointers = |text| {
            let json = serde_json::from_str(text).unwrap();
            let faults = FetchRequest::read(&json, &judge).unwrap_err();
            faults.into_iter().filter_map(|fault| fault.pointer).collect::<Vec<_>>()
        };
        assert_eq!(pointers("{}"), ["/url"]);
        assert_eq!(pointers("[]"), [""]);
    }
}
