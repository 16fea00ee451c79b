//! Dead letters by reason and site, and the actions on them.
//!
//! For `pages` these are URLs on a list (`letters`, `group`). For `serve` they are failed messages (`failures`), which
//! keep their results and are retried as new messages.

mod as_of;
mod census;
mod failures;
pub(super) mod group;
mod letters;

use std::sync::Arc;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use fetchwell_engine::ports::error::StoreError;
use futures::stream::BoxStream;
use http::Uri;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use super::Dashboard;
use super::access::Visitor;
use super::fault::PageError;
use super::layout::{self, Section};

pub(super) use census::Census;

/// The maximum number of groups on the page, largest first. More would not help to see a pattern.
const MOST_GROUPS: usize = 50;

/// Lines of JSON, in chunks.
type Lines = BoxStream<'static, Result<Bytes, StoreError>>;

#[derive(Template)]
#[template(path = "absent_letters.html")]
struct Absent;

pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
    uri: Uri,
) -> Result<Response, PageError> {
    if let Some(oversight) = &dashboard.subject.oversight {
        return failures::page(&dashboard, &visitor, &uri, &**oversight).await;
    }
    if let Some(letters) = &dashboard.subject.dead_letters {
        return letters::page(&dashboard, &visitor, &uri, letters).await;
    }
    layout::page(&dashboard, &visitor, &uri, (Section::DeadLetters, "Dead letters"), &Absent)
}

/// All dead letters, as lines of JSON.
pub(super) async fn export(
    State(dashboard): State<Arc<Dashboard>>,
    _visitor: Visitor,
) -> Result<Response, PageError> {
    let lines = match &dashboard.subject.oversight {
        Some(oversight) => failures::lines(oversight.clone()),
        None => letters::lines(letters::of(&dashboard)?.clone()),
    };
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CONTENT_DISPOSITION, "attachment; filename=\"dead-letters.jsonl\""),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}
