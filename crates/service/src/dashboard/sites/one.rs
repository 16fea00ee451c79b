//! One site.

use askama::Template;
use axum::extract::Path;
use fetchwell_policy::url::Site;

use super::ordering::offers;
use super::{in_seconds, interval, maybe_seconds, next_try, standing};
use crate::dashboard::access::Visitor;
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::layout::{self, Section};
use crate::dashboard::offer::Offer;
use crate::dashboard::words;
use crate::sites::SiteRow;

#[derive(Template)]
#[template(path = "site.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    row: &'a SiteRow,
    has_messages: bool,
    offers: Vec<Offer>,
}

pub(in super::super) async fn page(visitor: Visitor, Path(name): Path<String>) -> PageResult {
    let subject = &visitor.dashboard.subject;
    let site = named(&name)?;
    let row = &subject.sites.row(&site).await?;
    let content = Page {
        visitor: &visitor,
        row,
        has_messages: subject.oversight.is_some(),
        offers: offers(row),
    };
    layout::page(&visitor, (Section::Sites, site.as_str()), &content).await
}

/// Parses the name of a site.
pub(super) fn named(name: &str) -> Result<Site, PageError> {
    Site::parse(name).map_err(|_| PageError::NotFound("that is not a site; use HOST or HOST:PORT"))
}
