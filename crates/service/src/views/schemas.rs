//! Schemas for values that have custom parsers, for the OpenAPI document.

use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType};
use utoipa::openapi::{RefOr, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(d|h|m|s|ms))+$";
const DURATION_OR_TIME: &str =
    r"^(([0-9]+(\.[0-9]+)?(d|h|m|s|ms))+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+)$";

/// Maximum age of a stored page.
pub(crate) struct MaxAge;

/// The deadline of a message.
pub(crate) struct Deadline;

impl PartialSchema for MaxAge {
    fn schema() -> RefOr<Schema> {
        seconds_or_text(
            "Whole seconds, or text such as \"30s\"; at most 365 days.",
            0..=31_536_000,
            DURATION,
        )
    }
}

impl PartialSchema for Deadline {
    fn schema() -> RefOr<Schema> {
        seconds_or_text(
            "Whole seconds, text such as \"10m\", or a time such as \"2030-01-01T00:00:00Z\"; at most \
             24 hours.",
            1..=86_400,
            DURATION_OR_TIME,
        )
    }
}

impl ToSchema for MaxAge {}
impl ToSchema for Deadline {}

/// Headers to send. Names are case-insensitive.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(dead_code, reason = "for its schema: headers are read one by one")]
pub(crate) struct SentHeaders {
    #[schema(max_length = 1024, pattern = "^[ -~]*$")]
    accept: Option<String>,
    #[schema(max_length = 1024, pattern = "^[ -~]*$")]
    accept_language: Option<String>,
    #[schema(max_length = 1024, pattern = "^[ -~]*$")]
    if_modified_since: Option<String>,
    #[schema(max_length = 1024, pattern = "^[ -~]*$")]
    if_none_match: Option<String>,
    #[schema(max_length = 1024, pattern = "^[ -~]*$")]
    referer: Option<String>,
}

/// The state of a message.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "for its schema: the words are written by `messages::status`")]
pub(crate) enum MessageStatus {
    Queued,
    Processing,
    Completed,
    Failed,
}

/// The status of a result.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "for its schema: the words come from the store")]
pub(crate) enum ResultStatus {
    Success,
    HttpError,
    Timeout,
    NetworkError,
    RateLimited,
    RefusedByRobots,
    Refused,
    InternalError,
    Cancelled,
    Noindex,
    Redirected,
}

/// How far a crawl goes.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "for its schema: the words are those of `ScopeKind`")]
pub(crate) enum CrawlScope {
    Page,
    Path,
    Host,
    Domain,
    Any,
}

/// Whether a crawl reads sitemaps.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "for its schema: the words are those of `Sitemaps`")]
pub(crate) enum CrawlSitemaps {
    Auto,
    Only,
    Off,
}

/// Why a crawl ended.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "for its schema: the words are those of `CrawlEnd`")]
pub(crate) enum CrawlEndReason {
    Completed,
    Limit,
    MaxTime,
    Cancelled,
}

/// A start page of a crawl.
pub(crate) struct StartUrl;

impl PartialSchema for StartUrl {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .description(Some("http or https, at most 8 KiB."))
            .format(Some(SchemaFormat::Custom("uri".to_owned())))
            .min_length(Some(1))
            .max_length(Some(8_192))
            .into()
    }
}

impl ToSchema for StartUrl {}

/// A pattern that links are compared with.
pub(crate) struct LinkPattern;

impl PartialSchema for LinkPattern {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .description(Some("`*` matches any text."))
            .pattern(Some(r"^([/*][ -~]*|https?://[ -~]*)$"))
            .max_length(Some(2_048))
            .into()
    }
}

impl ToSchema for LinkPattern {}

/// How long a crawl may take.
pub(crate) struct MaxTime;

impl PartialSchema for MaxTime {
    fn schema() -> RefOr<Schema> {
        let description = "Whole seconds, or text such as \"2h\"; at most 7 days.";
        seconds_or_text(description, 1..=604_800, DURATION)
    }
}

impl ToSchema for MaxTime {}

fn seconds_or_text(
    description: &str,
    seconds: std::ops::RangeInclusive<u32>,
    pattern: &str,
) -> RefOr<Schema> {
    let seconds = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .description(Some("Whole seconds."))
        .minimum(Some(*seconds.start()))
        .maximum(Some(*seconds.end()));
    let text = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .description(Some("Text."))
        .pattern(Some(pattern));
    OneOfBuilder::new().item(seconds).item(text).description(Some(description)).into()
}
