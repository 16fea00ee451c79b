//! Messages that failed, by reason and site.

use askama::Template;
use axum::response::Response;
use fetchwell_engine::oversight::{Failures, Oversight};
use http::Uri;

use super::MOST_GROUPS;
use crate::dashboard::Dashboard;
use crate::dashboard::access::Visitor;
use crate::dashboard::fault::Fault;
use crate::dashboard::layout::{self, Section};
use crate::dashboard::words::{self, shell};

#[derive(Template)]
#[template(path = "failures.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    back: &'a str,
    failures: Failures,
    messages: u64,
    more: usize,
}

/// The largest groups.
pub(super) async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    uri: &Uri,
    oversight: &dyn Oversight,
) -> Result<Response, Fault> {
    let mut failures = oversight.failures().await?;
    let messages = failures.groups.iter().map(|group| group.messages).sum();
    let more = failures.groups.len().saturating_sub(MOST_GROUPS);
    failures.groups.truncate(MOST_GROUPS);
    let back = uri.path_and_query().map_or("/", |path| path.as_str());
    let content = Page { visitor, back, failures, messages, more };
    layout::page(dashboard, visitor, uri, (Section::DeadLetters, "Dead letters"), &content)
}
