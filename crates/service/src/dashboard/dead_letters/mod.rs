//! Dead letters by reason and site, and the actions on them.
//!
//! For `pages` these are URLs on a list (`letters`, `group`, `bulk`). For `serve` they are failed messages
//! (`failures`), which keep their results and are retried as new messages.

mod as_of;
pub(super) mod bulk;
mod census;
mod failures;
pub(super) mod group;
mod letters;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::response::IntoResponse;
use fetchwell_engine::ports::error::StoreError;
use futures::stream::BoxStream;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use super::access::Visitor;
use super::fault::PageResult;
use super::layout::{self, Section};

pub(super) use census::Census;

/// The maximum number of groups on the page, largest first. More would not help to see a pattern.
const MOST_GROUPS: usize = 50;

/// The path to which the selected rows are posted.
const BULK: &str = "/dashboard/dead-letters/bulk";

/// Lines of JSON, in chunks.
type Lines = BoxStream<'static, Result<Bytes, StoreError>>;

#[derive(Template)]
#[template(path = "absent_letters.html")]
struct Absent;

pub(super) async fn page(visitor: Visitor) -> PageResult {
    let subject = &visitor.dashboard.subject;
    if let Some(oversight) = &subject.oversight {
        return failures::page(&visitor, &**oversight).await;
    }
    if let Some(letters) = &subject.dead_letters {
        return letters::page(&visitor, letters).await;
    }
    layout::page(&visitor, (Section::DeadLetters, "Dead letters"), &Absent).await
}

/// All dead letters, as lines of JSON.
pub(super) async fn export(visitor: Visitor) -> PageResult {
    let lines = match &visitor.dashboard.subject.oversight {
        Some(oversight) => failures::lines(oversight.clone()),
        None => letters::lines(letters::of(&visitor.dashboard)?.clone()),
    };
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CONTENT_DISPOSITION, "attachment; filename=\"dead-letters.jsonl\""),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}
