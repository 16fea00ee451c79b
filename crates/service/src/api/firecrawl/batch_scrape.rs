//! `POST /v2/batch/scrape`: many pages, as a batch.

use std::sync::Arc;

use axum::extract::{Request, State};
use fetchwell_engine::ports::inbox::{BatchId, NewBatch};
use serde::Serialize;

use super::FirecrawlResult;
use super::fields::Fields;
use super::options::ScrapeOptions;
use super::other_options::OTHER_OPTIONS;
use super::request::{Caller, PublicUrl, Version, read_body};
use crate::api::accept::idempotency_of;
use crate::api::batch::{MAX_BATCH, has_too_many_values};
use crate::api::fields::{FetchRequest, Judge};
use crate::api::json::Json;
use crate::api::respond::json;
use crate::api::{Api, body, values};
use crate::problem::{FieldError, Problem, ProblemKind};
use crate::server::until_sent;

/// Firecrawl's clients send the idempotency key of a request in this header.
const IDEMPOTENCY_KEY: &str = "x-idempotency-key";

/// How many copies of the options are in memory for each URL: its headers, the statement that stores it, and the buffer
/// of the connection to the store. All URLs share the document and the encoded options.
const COPIES_OF_OPTIONS: u64 = 3;

/// A batch that was accepted.
#[derive(Serialize)]
struct Started {
    success: bool,
    id: String,
    url: String,
    /// The URLs that were left out.
    #[serde(rename = "invalidURLs", skip_serializing_if = "Option::is_none")]
    invalid_urls: Option<Vec<String>>,
}

/// Accepts a batch.
pub(super) async fn send(
    State(api): State<Arc<Api>>,
    version: Version,
    Caller(identity): Caller,
    PublicUrl(public_url): PublicUrl,
    request: Request,
) -> FirecrawlResult {
    let most_bytes = api.rules.max_batch_body_bytes;
    let (headers, whole) = read_body(&api, &identity, request, most_bytes).await?;
    if has_too_many_values(&whole.bytes) {
        let detail = format!("has more values than a batch of {MAX_BATCH} URLs can have");
        return Err(Problem::invalid(vec![FieldError::at("", detail)]).into());
    }
    let json_body = body::json(&whole.bytes)?;
    api.charge(&identity.caller, urls_in(&json_body).len().max(1))?;
    let copied_bytes = copied_bytes(&json_body, version)?;
    if copied_bytes > most_bytes {
        return Err(too_many_copies(copied_bytes, most_bytes).into());
    }
    let _copies = api.memory.take(COPIES_OF_OPTIONS * copied_bytes).await?;
    let path = format!("{}/batch/scrape", version.path());
    let idempotency = idempotency_of(IDEMPOTENCY_KEY, &headers, &path, &whole.bytes)?;
    let asked = Asked::read(&json_body, version, &api.judge())?;
    let new = NewBatch {
        callback_url: None,
        expected_in: api.expected_in(&asked.messages).await,
        skipped: asked
            .skipped
            .as_ref()
            .map_or(0, |skipped| u32::try_from(skipped.len()).unwrap_or(u32::MAX)),
        skipped_told: None,
    };
    let ids = api.submit(&identity, idempotency, asked.messages, Some(new)).await?.ids;
    let id = BatchId::of(ids.iter().copied());
    let id = id.ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?.to_string();
    let url = format!("{public_url}{path}/{id}");
    let started = json(&Started { success: true, id, url, invalid_urls: asked.skipped });
    drop(json_body);
    // The response may repeat most of the body.
    Ok(until_sent(started, whole))
}

/// The URLs of a request. A list that is too long counts as none: the request is refused for it, and costs its caller
/// as little as any other invalid request.
fn urls_in<'j, 'a>(json: &'j Json<'a>) -> &'j [Json<'a>] {
    match json.as_object().and_then(|fields| fields.get("urls")) {
        Some(Json::Array(urls)) if urls.len() <= MAX_BATCH => urls,
        _ => &[],
    }
}

/// The size of the options, which are stored with each URL. So a short request may become a large batch.
fn copied_bytes(json: &Json<'_>, version: Version) -> Result<u64, Problem> {
    let options = ScrapeOptions::take(&mut Fields::of(json)?, version);
    Ok(options.stored_bytes().saturating_mul(urls_in(json).len()) as u64)
}

fn too_many_copies(bytes: u64, most_bytes: u64) -> Problem {
    Problem::new(ProblemKind::TOO_LARGE).saying(format!(
        "The options are stored with each URL, which takes {bytes} bytes; at most {most_bytes} are allowed \
         (retriever.max_batch_body). Send fewer URLs at once, or fewer selectors and shorter headers."
    ))
}

/// A parsed request.
#[derive(Debug)]
struct Asked {
    messages: Vec<FetchRequest>,
    /// The URLs that were left out, if invalid ones are to be skipped.
    skipped: Option<Vec<String>>,
}

impl Asked {
    fn read(json: &Json<'_>, version: Version, judge: &Judge<'_>) -> Result<Asked, Problem> {
        let mut fields = Fields::of(json)?;
        let skips = fields.take("ignoreInvalidURLs", values::switch);
        let skips = skips.unwrap_or(version == Version::V2);
        let options = ScrapeOptions::take(&mut fields, version);
        let mut messages = Vec::new();
        let mut skipped = Vec::new();
        let mut first_fault = None;
        let read = fields.take_list("urls", MAX_BATCH, |value| {
            match values::web_url(value, judge.guard) {
                Ok((url, site)) => {
                    messages.push(options.message(url, site, judge.default_deadline));
                }
                Err(fault) => match value.as_str().filter(|_| skips) {
                    Some(url) => {
                        skipped.push(url.to_owned());
                        first_fault.get_or_insert(fault);
                    }
                    None => return Err(fault),
                },
            }
            Ok(())
        });
        match (read, first_fault) {
            (Some(_), Some(fault)) if messages.is_empty() => {
                fields.fault("/urls", format!("has no valid URL; the first one {fault}"));
            }
            (Some(_), None) if messages.is_empty() => fields.fault("/urls", "has no URL"),
            _ if fields.get("urls").is_none() => fields.fault("/urls", "is missing"),
            _ => {}
        }
        fields.finish(&OTHER_OPTIONS)?;
        Ok(Asked { messages, skipped: skips.then_some(skipped) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_policy::address::AddressGuard;
    use fetchwell_policy::time::Time;
    use serde_json::{Value, json};

    use super::*;

    fn read(version: Version, body: &Value) -> Result<(usize, Option<Vec<String>>), String> {
        let guard = AddressGuard::default();
        let judge = Judge {
            guard: &guard,
            wall: Time::from_secs(1_700_000_000),
            default_deadline: Duration::from_secs(60),
        };
        let text = body.to_string();
        let asked = Asked::read(&serde_json::from_str(&text).unwrap(), version, &judge);
        let asked = asked.map_err(|problem| problem.text())?;
        Ok((asked.messages.len(), asked.skipped))
    }

    #[test]
    fn invalid_urls_are_left_out_or_refuse_the_batch() {
        let urls = json!(["http://a.test/", "ftp://a.test/", "http://10.0.0.1/"]);
        let bad = vec!["ftp://a.test/".to_owned(), "http://10.0.0.1/".to_owned()];
        let body = json!({"urls": urls});
        assert_eq!(read(Version::V2, &body), Ok((1, Some(bad.clone()))));
        let refused = read(Version::V1, &body).unwrap_err();
        assert!(
            refused.starts_with("urls.1 ") && refused.contains("; urls.2 is refused"),
            "{refused}"
        );
        let strict = json!({"urls": urls, "ignoreInvalidURLs": false});
        assert!(read(Version::V2, &strict).is_err());
        let lenient = json!({"urls": urls, "ignoreInvalidURLs": true});
        assert_eq!(read(Version::V1, &lenient), Ok((1, Some(bad))));
    }

    /// A selector takes much more memory than its text, so a copy for each URL would exceed the memory that is reserved.
    #[test]
    fn the_messages_of_a_batch_share_a_document() {
        let guard = AddressGuard::default();
        let wall = Time::from_secs(1_700_000_000);
        let judge = Judge { guard: &guard, wall, default_deadline: Duration::from_secs(60) };
        let urls = ["http://a.test/1", "http://a.test/2"];
        let body = json!({"urls": urls, "includeTags": ["main", ".a"]}).to_string();
        let asked = Asked::read(&serde_json::from_str(&body).unwrap(), Version::V2, &judge);
        let messages = asked.unwrap_or_else(|problem| panic!("{}", problem.text())).messages;
        let documents: Vec<_> =
            messages.iter().filter_map(|message| message.document.as_ref()).collect();
        assert!(documents.len() == 2 && Arc::ptr_eq(documents[0], documents[1]));
    }

    #[test]
    fn the_options_count_for_each_url() {
        let bytes = |body: &Value| {
            let text = body.to_string();
            let copied = copied_bytes(&serde_json::from_str(&text).unwrap(), Version::V2);
            copied.unwrap_or_else(|problem| panic!("{}", problem.text()))
        };
        let urls = vec!["http://a.test/"; MAX_BATCH];
        let plain = bytes(&json!({"urls": urls}));
        assert!(plain < 4 << 20, "{plain}");
        let selectors = vec![format!(".{}", "x".repeat(200)); 50];
        let large =
            bytes(&json!({"urls": urls, "includeTags": selectors, "excludeTags": selectors}));
        assert!(large > 200_000_000, "{large}");
        assert_eq!(bytes(&json!({"urls": ["http://a.test/"]})), plain / MAX_BATCH as u64);
        assert_eq!(bytes(&json!({"formats": ["html"]})), 0);
    }

    #[test]
    fn a_list_that_is_too_long_is_not_charged() {
        let count = |urls: usize| {
            let text = json!({"urls": vec!["http://a.test/"; urls]}).to_string();
            urls_in(&serde_json::from_str(&text).unwrap()).len()
        };
        assert_eq!((count(MAX_BATCH), count(MAX_BATCH + 1)), (MAX_BATCH, 0));
    }

    #[test]
    fn a_batch_without_a_valid_url_is_refused() {
        for (body, said) in [
            (json!({}), "urls is missing"),
            (json!({"urls": []}), "urls has no URL"),
            (json!({"urls": ["ftp://a.test/"]}), "urls has no valid URL; the first one"),
            (json!({"urls": [1]}), "urls.0 is not a string"),
            (json!({"urls": "http://a.test/"}), "urls is not a JSON array"),
            (
                json!({"urls": ["http://a.test/"], "webhook": "http://b.test/"}),
                "webhook is not supported",
            ),
            (
                json!({"urls": vec!["http://a.test/"; MAX_BATCH + 1]}),
                "urls has more than 10000 entries",
            ),
        ] {
            let refused = read(Version::V2, &body).unwrap_err();
            assert!(refused.starts_with(said), "{refused}");
        }
    }
}
