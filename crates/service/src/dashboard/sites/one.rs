//! One site.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use fetchwell_policy::url::Site;
use http::Uri;

use super::ordering::offers;
use super::{in_seconds, interval, maybe_seconds, next_try, standing};
use crate::dashboard::Dashboard;
use crate::dashboard::access::Visitor;
use crate::dashboard::fault::PageError;
use crate::dashboard::layout::{self, Section};
use crate::dashboard::offer::Offer;
use crate::dashboard::words;
use crate::sites::SiteRow;

#[derive(Template)]
#[template(path = "site.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    back: &'a str,
    row: &'a SiteRow,
    has_messages: bool,
    offers: Vec<Offer>,
}

pub(in super::super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let site = named(&name)?;
    let row = &dashboard.subject.sites.row(&site).await?;
    let content = Page {
        visitor: &visitor,
        back: layout::here(&uri),
        row,
        has_messages: dashboard.subject.oversight.is_some(),
        offers: offers(row),
    };
    layout::page(&dashboard, &visitor, &uri, (Section::Sites, site.as_str()), &content)
}

/// Parses the name of a site.
pub(super) fn named(name: &str) -> Result<Site, PageError> {
    Site::parse(name).map_err(|_| PageError::NotFound("that is not a site; use HOST or HOST:PORT"))
}
