//! The layout of all pages.

use askama::Template;
use axum::response::{Html, IntoResponse};

use super::access::Visitor;
use super::assets::{ASSETS, Assets};
use super::fault::{PageResult, html, render};
use super::status;

/// An entry of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Sites,
    Messages,
    DeadLetters,
    Articles,
    CommonCrawl,
    Callers,
    System,
}

impl Section {
    /// Every entry, with its name and its path.
    const ALL: [(Section, &'static str, &'static str); 8] = [
        (Section::Overview, "Overview", "/"),
        (Section::Sites, "Sites", "/dashboard/sites"),
        (Section::Messages, "Messages", "/dashboard/messages"),
        (Section::DeadLetters, "Dead letters", "/dashboard/dead-letters"),
        (Section::Articles, "Articles", "/dashboard/articles"),
        (Section::CommonCrawl, "Common Crawl", "/dashboard/common-crawl"),
        (Section::Callers, "Callers", "/dashboard/callers"),
        (Section::System, "System", "/dashboard/system"),
    ];
}

#[derive(Template)]
#[template(path = "layout.html")]
struct Page<'a> {
    assets: &'static Assets,
    title: &'a str,
    section: Section,
    visitor: &'a Visitor,
    door: &'static str,
    version: &'static str,
    status: &'a str,
    content: &'a str,
}

/// Renders a page around its content; for an automatic refresh, only the status and the content.
pub(super) async fn page(
    visitor: &Visitor,
    (section, title): (Section, &str),
    content: &(impl Template + Sync),
) -> PageResult {
    let content = &render(content)?;
    let status = &render(&*status::status(&visitor.dashboard).await)?;
    if visitor.is_live {
        return Ok(Html(format!("{status}\n{content}")).into_response());
    }
    html(&Page {
        assets: &ASSETS,
        title,
        section,
        visitor,
        door: visitor.dashboard.subject.door.command(),
        version: env!("CARGO_PKG_VERSION"),
        status,
        content,
    })
}
