//! Encodes spans as OTLP JSON (`ExportTraceServiceRequest`): ids in hexadecimal, 64-bit numbers as strings.

use serde_json::{Value as Json, json};

use super::span::Span;

/// The status code of a failed span.
const STATUS_ERROR: u8 = 2;

/// The body of a request to the collector.
pub(super) fn request_body(service: &str, spans: &[Span]) -> Vec<u8> {
    let resource = [
        ("service.name", Json::from(service)),
        ("service.version", Json::from(env!("CARGO_PKG_VERSION"))),
        ("process.pid", Json::from(std::process::id())),
    ];
    json!({
        "resourceSpans": [{
            "resource": { "attributes": attributes(&resource) },
            "scopeSpans": [{
                "scope": { "name": "fetchwell" },
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
    .to_string()
    .into_bytes()
}

fn span(span: &Span) -> Json {
    let ended_at = span.began_at + span.took;
    let mut fields = json!({
        "traceId": span.trace.to_hex(),
        "spanId": span.id.to_hex(),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.began_at),
        "endTimeUnixNano": nanos(ended_at),
        "attributes": attributes(&span.attributes),
        "status": if span.failed { json!({ "code": STATUS_ERROR }) } else { json!({}) },
    });
    if let Some(parent) = span.parent {
        fields["parentSpanId"] = parent.to_hex().into();
    }
    fields
}

fn attributes(attributes: &[(&'static str, Json)]) -> Vec<Json> {
    let value = |value: &Json| match value {
        Json::Number(number) => json!({ "intValue": number.to_string() }),
        text => json!({ "stringValue": text }),
    };
    attributes.iter().map(|(key, is)| json!({ "key": key, "value": value(is) })).collect()
}

fn nanos(at: fetchwell_policy::time::Time) -> String {
    (i128::from(at.as_micros()) * 1000).to_string()
}
