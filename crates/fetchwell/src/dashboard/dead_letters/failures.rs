//! Messages that failed, by reason and site.

use askama::Template;
use axum::response::Response;
use fetchwell_engine::oversight::{Failures, Oversight};
use http::Uri;

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
}

/// All groups.
pub(super) async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    uri: &Uri,
    oversight: &dyn Oversight,
) -> Result<Response, Fault> {
    let failures = oversight.failures().await?;
    let messages = failures.groups.iter().map(|group| group.messages).sum();
    let back = uri.path_and_query().map_or("/", |path| path.as_str());
    let content = Page { visitor, back, failures, messages };
    layout::page(dashboard, visitor, uri, (Section::DeadLetters, "Dead letters"), &content)
}
