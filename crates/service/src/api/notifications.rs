//! Deliveries to webhooks and events of a stream, for the OpenAPI document.

#![expect(dead_code, reason = "only for the OpenAPI document")]

use utoipa::openapi::schema::{Object, Schema, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, OpenApi, Ref, RefOr};
use utoipa::{OpenApi as _, PartialSchema, ToSchema};

use super::result_fields::ChosenResult;
use crate::views::batches::BatchView;
use crate::views::crawls::CrawlView;
use crate::views::messages::{MessageView, OutboxView};

/// The texts of a result that a delivery leaves out if they are too long together.
const OMITTED: [&str; 4] = ["content", "text", "markdown", "links"];

/// Adds the section `webhooks` and its schemas.
pub(super) fn describe_webhooks(document: &mut OpenApi) {
    let mut webhooks = WebhookDocument::openapi();
    document.webhooks = Some(std::mem::take(&mut webhooks.paths));
    document.merge(webhooks);
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(fetch_completed, fetch_failed, batch_completed, crawl_completed))]
struct WebhookDocument;

/// The headers of Standard Webhooks.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
struct WebhookHeaders {
    /// The id of the message, the batch or the crawl. It is the same in every attempt and replay: ignore a delivery that you have
    /// already processed.
    #[param(rename = "webhook-id", example = "msg_018bcfe56800ffffffffffffffffffff")]
    id: String,
    /// When this attempt was signed, in seconds since 1970. Refuse deliveries that are more than five minutes old.
    #[param(rename = "webhook-timestamp", example = 1_700_000_000)]
    timestamp: i64,
    /// `v1,` and the Base64 of the HMAC-SHA256 of `webhook-id.webhook-timestamp.body`. While a secret is being
    /// rotated, there are two signatures, separated by a space; accept the delivery if either is right.
    #[param(
        rename = "webhook-signature",
        example = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
    )]
    signature: String,
}

/// What a receiver answers.
#[derive(utoipa::IntoResponses)]
enum ReceiverResponses {
    /// the delivery is accepted
    #[response(status = "2XX")]
    Accepted,
    /// the receiver wants no delivery of this result: it is not sent again
    #[response(status = 410)]
    Unwanted,
    /// the delivery is retried up to nine times, over about 21 hours on average
    #[response(status = "default")]
    Failed,
}

/// A page was fetched
///
/// Sent to the `callback_url` of a message that has ended with the status `success`. The message has the same fields as
/// in `GET /messages/{id}`. If `content`, `text`, `markdown` and `links` exceed 256 KiB together, they are null and
/// `content_omitted` is true.
#[utoipa::path(
    post,
    path = "fetch.completed",
    operation_id = "fetch_completed",
    tag = "Webhooks",
    params(WebhookHeaders),
    request_body = FetchCompleted,
    responses(ReceiverResponses)
)]
fn fetch_completed() {}

/// A page could not be fetched
///
/// Sent to the `callback_url` of a message that has ended with any other status than `success`. The message has the same
/// fields as in `GET /messages/{id}`; `outbox.status` and `outbox.error` say what happened.
#[utoipa::path(
    post,
    path = "fetch.failed",
    operation_id = "fetch_failed",
    tag = "Webhooks",
    params(WebhookHeaders),
    request_body = FetchFailed,
    responses(ReceiverResponses)
)]
fn fetch_failed() {}

/// A batch has ended
///
/// Sent to the `callback_url` of a batch when the last of its messages has ended.
#[utoipa::path(
    post,
    path = "batch.completed",
    operation_id = "batch_completed",
    tag = "Webhooks",
    params(WebhookHeaders),
    request_body = BatchCompleted,
    responses(ReceiverResponses)
)]
fn batch_completed() {}

/// A crawl has ended
///
/// Sent to the `callback_url` of a crawl when the last of its pages has ended.
#[utoipa::path(
    post,
    path = "crawl.completed",
    operation_id = "crawl_completed",
    tag = "Webhooks",
    params(WebhookHeaders),
    request_body = CrawlCompleted,
    responses(ReceiverResponses)
)]
fn crawl_completed() {}

/// The webhook of a page that was fetched.
#[derive(ToSchema)]
struct FetchCompleted {
    #[schema(inline)]
    r#type: FetchCompletedType,
    /// When the result was stored.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The message.
    data: DeliveredMessage,
}

/// `fetch.completed`.
#[derive(ToSchema)]
enum FetchCompletedType {
    #[serde(rename = "fetch.completed")]
    FetchCompleted,
}

/// The webhook of a page that could not be fetched.
#[derive(ToSchema)]
struct FetchFailed {
    #[schema(inline)]
    r#type: FetchFailedType,
    /// When the result was stored.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The message.
    data: DeliveredMessage,
}

/// `fetch.failed`.
#[derive(ToSchema)]
enum FetchFailedType {
    #[serde(rename = "fetch.failed")]
    FetchFailed,
}

/// The webhook of a batch that has ended.
#[derive(ToSchema)]
struct BatchCompleted {
    #[schema(inline)]
    r#type: BatchCompletedType,
    /// When its last message ended.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The batch.
    data: BatchView,
}

/// `batch.completed`.
#[derive(ToSchema)]
enum BatchCompletedType {
    #[serde(rename = "batch.completed")]
    BatchCompleted,
}

/// The webhook of a crawl that has ended.
#[derive(ToSchema)]
struct CrawlCompleted {
    #[schema(inline)]
    r#type: CrawlCompletedType,
    /// When its last page ended.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The crawl.
    data: CrawlView,
}

/// `crawl.completed`.
#[derive(ToSchema)]
enum CrawlCompletedType {
    #[serde(rename = "crawl.completed")]
    CrawlCompleted,
}

/// A message in a webhook, which always has a result.
struct DeliveredMessage;

impl PartialSchema for DeliveredMessage {
    fn schema() -> RefOr<Schema> {
        let mut schema = MessageView::schema();
        if let RefOr::T(Schema::Object(message)) = &mut schema {
            message.description = Some("A message in a webhook, with its result.".to_owned());
            let outbox = Ref::from_schema_name(DeliveredResult::name());
            message.properties.insert("outbox".to_owned(), outbox.into());
        }
        schema
    }
}

impl ToSchema for DeliveredMessage {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        MessageView::schemas(schemas);
        schemas.push((DeliveredResult::name().into_owned(), DeliveredResult::schema()));
    }
}

/// A result in a webhook, from which long texts may have been left out.
struct DeliveredResult;

impl PartialSchema for DeliveredResult {
    fn schema() -> RefOr<Schema> {
        let mut schema = OutboxView::schema();
        if let RefOr::T(Schema::Object(result)) = &mut schema {
            result.description = Some("A result in a webhook.".to_owned());
            for name in OMITTED {
                result.properties.get_mut(name).into_iter().for_each(may_be_null);
            }
            let omitted = ObjectBuilder::new().schema_type(Type::Boolean).description(Some(
                "True if the texts were left out because they are too long; otherwise absent.",
            ));
            result.properties.insert("content_omitted".to_owned(), omitted.into());
        }
        schema
    }
}

impl ToSchema for DeliveredResult {}

fn may_be_null(property: &mut RefOr<Schema>) {
    let schema_type = match property {
        RefOr::T(Schema::Object(Object { schema_type, .. })) => schema_type,
        RefOr::T(Schema::Array(array)) => &mut array.schema_type,
        _ => return,
    };
    if let SchemaType::Type(one) = schema_type {
        *schema_type = SchemaType::Array(vec![one.clone(), Type::Null]);
    }
}

/// An event of the stream: its lines `id`, `event` and `data`.
pub(super) struct OutboxEvent;

impl PartialSchema for OutboxEvent {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(Ref::from_schema_name(ResultEvent::name()))
            .item(Ref::from_schema_name(BatchEvent::name()))
            .item(Ref::from_schema_name(CrawlEvent::name()))
            .description(Some("An event of the stream: its lines `id`, `event` and `data`. Ignore events that you do not know."))
            .into()
    }
}

impl ToSchema for OutboxEvent {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ResultEvent::name().into_owned(), ResultEvent::schema()));
        schemas.push((BatchEvent::name().into_owned(), BatchEvent::schema()));
        schemas.push((CrawlEvent::name().into_owned(), CrawlEvent::schema()));
    }
}

/// A result was stored.
#[derive(ToSchema)]
struct ResultEvent {
    /// The cursor of the result. As `Last-Event-ID` it resumes the stream after this result.
    #[schema(example = "42", pattern = "^[0-9]+$")]
    id: String,
    #[schema(inline)]
    event: ResultEventName,
    /// The result as JSON, in one line.
    #[schema(schema_with = ResultEvent::data)]
    data: String,
}

/// `result`.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum ResultEventName {
    Result,
}

impl ResultEvent {
    fn data() -> Object {
        json_text(&ChosenResult::name(), "The result as JSON, in one line.")
    }
}

/// A batch has ended. The event follows the last of its results.
#[derive(ToSchema)]
#[schema(as = BatchCompletedEvent)]
struct BatchEvent {
    /// The cursor of the result before it, and a sequence number of your ended batches and crawls. As `Last-Event-ID`
    /// it resumes the stream after this event.
    #[schema(example = "42.7", pattern = r"^[0-9]+\.[0-9]+$")]
    id: String,
    #[schema(inline)]
    event: BatchCompletedType,
    /// The batch as JSON, in one line.
    #[schema(schema_with = BatchEvent::data)]
    data: String,
}

impl BatchEvent {
    fn data() -> Object {
        json_text(&BatchView::name(), "The batch as JSON, in one line.")
    }
}

/// A crawl has ended. The event follows the last of its results.
#[derive(ToSchema)]
#[schema(as = CrawlCompletedEvent)]
struct CrawlEvent {
    /// The cursor of the result before it, and a sequence number of your ended batches and crawls. As `Last-Event-ID`
    /// it resumes the stream after this event.
    #[schema(example = "42.7", pattern = r"^[0-9]+\.[0-9]+$")]
    id: String,
    #[schema(inline)]
    event: CrawlCompletedType,
    /// The crawl as JSON, in one line.
    #[schema(schema_with = CrawlEvent::data)]
    data: String,
}

impl CrawlEvent {
    fn data() -> Object {
        json_text(&CrawlView::name(), "The crawl as JSON, in one line.")
    }
}

/// A string that holds JSON with this schema.
fn json_text(schema: &str, description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .content_media_type("application/json")
        .content_schema(Some(Ref::from_schema_name(schema)))
        .build()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::routes::documented;

    fn document() -> Value {
        let (_, document) = documented().split_for_parts();
        serde_json::to_value(document).unwrap()
    }

    /// Every `$ref` below this value.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_webhook_has_its_headers_and_a_payload() {
        let document = document();
        let webhooks = document["webhooks"].as_object().unwrap();
        let names: Vec<&String> = webhooks.keys().collect();
        let expected = ["batch.completed", "crawl.completed", "fetch.completed", "fetch.failed"];
        assert_eq!(names, expected);
        for (name, item) in webhooks {
            let headers = item["post"]["parameters"].as_array().unwrap();
            let headers: Vec<_> = headers.iter().map(|one| (&one["name"], &one["in"])).collect();
            let expected = ["webhook-id", "webhook-timestamp", "webhook-signature"];
            let expected = expected.map(|name| (json!(name), json!("header")));
            assert!(headers.into_iter().eq(expected.iter().map(|(name, place)| (name, place))));
            let payload = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
            let payload = document.pointer(&payload["$ref"].as_str().unwrap()[1..]).unwrap();
            assert_eq!(payload["properties"]["type"]["enum"], json!([name]));
            let answers = item["post"]["responses"].as_object().unwrap();
            assert_eq!(answers.keys().collect::<Vec<_>>(), ["2XX", "410", "default"]);
        }
    }

    #[test]
    fn a_delivered_result_may_lack_its_texts() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        let message = &schemas["DeliveredMessage"]["properties"]["outbox"];
        assert_eq!(message["$ref"], "#/components/schemas/DeliveredResult");
        let result = &schemas["DeliveredResult"]["properties"];
        assert_eq!(result["content_omitted"]["type"], "boolean");
        for (name, json_type) in
            [("content", "string"), ("text", "string"), ("markdown", "string"), ("links", "array")]
        {
            assert_eq!(result[name]["type"], json!([json_type, "null"]), "{name}");
        }
    }

    #[test]
    fn the_stream_has_events_of_three_kinds() {
        let document = document();
        let contents = &document["paths"]["/outbox"]["get"]["responses"]["200"]["content"];
        let events = &contents["text/event-stream"]["schema"]["items"]["$ref"];
        assert_eq!(events, "#/components/schemas/OutboxEvent");
        let schemas = &document["components"]["schemas"];
        for (name, event, data) in [
            ("ResultEvent", "result", "OutboxResult"),
            ("BatchCompletedEvent", "batch.completed", "BatchState"),
            ("CrawlCompletedEvent", "crawl.completed", "CrawlState"),
        ] {
            let fields = &schemas[name]["properties"];
            assert_eq!(fields["event"]["enum"], json!([event]));
            let expected = format!("#/components/schemas/{data}");
            assert_eq!(fields["data"]["contentSchema"]["$ref"], expected);
        }
    }

    #[test]
    fn every_schema_that_is_named_exists() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
    }
}
