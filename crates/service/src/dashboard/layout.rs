//! The layout of all pages.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::Uri;

use super::Dashboard;
use super::access::Visitor;
use super::assets::Assets;
use super::fault::PageError;

/// An entry of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Sites,
    Messages,
    DeadLetters,
    Articles,
    CommonCrawl,
    System,
}

impl Section {
    const ALL: [Section; 7] = [
        Section::Overview,
        Section::Sites,
        Section::Messages,
        Section::DeadLetters,
        Section::Articles,
        Section::CommonCrawl,
        Section::System,
    ];

    fn name(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Sites => "Sites",
            Section::Messages => "Messages",
            Section::DeadLetters => "Dead letters",
            Section::Articles => "Articles",
            Section::CommonCrawl => "Common Crawl",
            Section::System => "System",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Section::Overview => "/",
            Section::Sites => "/dashboard/sites",
            Section::Messages => "/dashboard/messages",
            Section::DeadLetters => "/dashboard/dead-letters",
            Section::Articles => "/dashboard/articles",
            Section::CommonCrawl => "/dashboard/common-crawl",
            Section::System => "/dashboard/system",
        }
    }
}

#[derive(Template)]
#[template(path = "layout.html")]
struct Page<'a> {
    assets: &'static Assets,
    title: &'a str,
    section: Section,
    sections: [Section; 7],
    visitor: &'a Visitor,
    door: &'static str,
    version: &'static str,
    /// The page to which a form redirects.
    back: &'a str,
    content: &'a str,
}

/// Renders a page around its content; for an automatic refresh, only the content.
pub(super) fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    uri: &Uri,
    (section, title): (Section, &str),
    content: &impl Template,
) -> Result<Response, PageError> {
    if visitor.is_live {
        return html(content);
    }
    let content = &render(content)?;
    html(&Page {
        assets: Assets::get(),
        title,
        section,
        sections: Section::ALL,
        visitor,
        door: dashboard.subject.door.command(),
        version: env!("CARGO_PKG_VERSION"),
        back: here(uri),
        content,
    })
}

/// The path and query of a page, to which its forms redirect.
pub(super) fn here(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

/// Renders a template as a response.
pub(super) fn html(template: &impl Template) -> Result<Response, PageError> {
    Ok(Html(render(template)?).into_response())
}

fn render(template: &impl Template) -> Result<String, PageError> {
    template.render().map_err(|error| PageError::Internal(error.to_string()))
}
