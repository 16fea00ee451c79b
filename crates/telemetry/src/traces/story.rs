//! Creates the spans of an event. Names and attributes follow the semantic conventions for HTTP.

use std::time::Duration;

use fetchwell_engine::pipeline::{Event, LeaseTag, Requested, SettledLease};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::web::Phases;
use serde_json::Value as Json;

use super::ids::{SpanId, TraceId};
use super::redacted::{redacted, redacted_or_nothing};
use super::span::{Kind, Span};
use crate::metrics::DoorName;
use crate::metrics::labels::{EndingLabel, FailureLabel, purpose_word};

/// The spans of an event.
pub(super) fn spans_of(door: DoorName, event: &Event) -> Vec<Span> {
    match event {
        Event::Requested(request) => request_spans(door, request),
        Event::Settled(settled) => vec![lease_span(door, settled)],
        _ => Vec::new(),
    }
}

/// One attempt at a lease, from taking it to settling it.
fn lease_span(door: DoorName, settled: &SettledLease) -> Span {
    let SettledLease { lease, settlement, phases, age, ended_at } = settled;
    let tag = LeaseTag::of(lease);
    let trace = TraceId::of_lease(door, tag);
    let took = age.saturating_sub(phases.queued);
    let mut attributes: Vec<(&'static str, Json)> = vec![
        ("url.full", redacted_or_nothing(&lease.job.url).into()),
        ("fetchwell.door", door.word().into()),
        ("fetchwell.lease", lease.id.into()),
        ("fetchwell.attempt", tag.attempt.into()),
        ("fetchwell.outcome", EndingLabel::of(settlement).word().into()),
        ("fetchwell.queued_ms", millis(phases.queued).into()),
    ];
    let failed = matches!(settlement, Settlement::Dead { .. });
    if failed {
        attributes.push(("error.type", "gave_up".into()));
    }
    Span {
        trace,
        id: SpanId::of_attempt(trace, tag),
        parent: None,
        name: format!("fetchwell {}", door.word()),
        kind: Kind::Internal,
        began_at: *ended_at - took,
        took,
        attributes,
        failed,
    }
}

/// The spans of a request and of its waits before. Those of a lease are children of its attempt.
fn request_spans(door: DoorName, request: &Requested) -> Vec<Span> {
    let (trace, parent) = match request.lease {
        Some(tag) => {
            let trace = TraceId::of_lease(door, tag);
            (trace, Some(SpanId::of_attempt(trace, tag)))
        }
        None => (TraceId::random(), None),
    };
    let span = |name: &str, began_at, took| Span {
        trace,
        id: SpanId::random(),
        parent,
        name: name.to_owned(),
        kind: Kind::Internal,
        began_at,
        took,
        attributes: Vec::new(),
        failed: false,
    };
    let Phases { robots, slot, connect, first_byte, body, .. } = request.phases;
    let written_at = request.ended_at - (first_byte + body);
    let connected_at = written_at - connect;
    let due_at = connected_at - slot;
    let mut spans = vec![
        span("robots", due_at - robots, robots),
        span("slot wait", due_at, slot),
        span("connect", connected_at, connect),
    ];
    spans.retain(|span| !span.took.is_zero());
    spans.push(Span {
        kind: Kind::Client,
        attributes: http_attributes(request),
        failed: FailureLabel::of(&request.happened).is_some(),
        ..span(request.method.as_str(), written_at, first_byte + body)
    });
    spans
}

fn http_attributes(request: &Requested) -> Vec<(&'static str, Json)> {
    let Requested { url, happened, .. } = request;
    let mut attributes: Vec<(&'static str, Json)> = vec![
        ("http.request.method", request.method.as_str().into()),
        ("url.full", redacted(url).into()),
        ("server.address", url.host().into()),
        ("server.port", url.port().into()),
        ("fetchwell.purpose", purpose_word(request.purpose).into()),
    ];
    if let Some(status) = happened.status() {
        attributes.push(("http.response.status_code", status.into()));
    }
    if let Some(answer) = &request.answer {
        let version = version_text(answer.version);
        attributes.extend(version.map(|version| ("network.protocol.version", version.into())));
        let peer = answer.peer.map(|peer| ("network.peer.address", peer.to_string().into()));
        attributes.extend(peer);
        let bytes = i64::try_from(answer.body_bytes).unwrap_or(i64::MAX);
        attributes.push(("http.response.body.size", bytes.into()));
    }
    // By convention this is the status if there is one, else the kind of failure.
    if let Some(failure) = FailureLabel::of(happened) {
        let status = happened.status().map(|status| status.to_string());
        let kind = status.unwrap_or_else(|| failure.word().to_owned());
        attributes.push(("error.type", kind.into()));
    }
    attributes
}

fn version_text(version: http::Version) -> Option<&'static str> {
    match version {
        http::Version::HTTP_10 => Some("1.0"),
        http::Version::HTTP_11 => Some("1.1"),
        http::Version::HTTP_2 => Some("2"),
        _ => None,
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
