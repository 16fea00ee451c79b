//! `POST /v2/scrape`: one page.

use std::sync::Arc;

use axum::extract::{Request, State};
use serde::Serialize;

use super::FirecrawlResult;
use super::document::Document;
use super::fields::Fields;
use super::options::ScrapeOptions;
use super::other_options::OTHER_OPTIONS;
use super::request::{Caller, Version, read_body};
use crate::api::fields::{FetchRequest, Judge};
use crate::api::json::Json;
use crate::api::respond::json;
use crate::api::{Api, body, values};
use crate::problem::{Problem, ProblemKind};
use crate::server::until_sent;

pub(super) const MAX_BODY_BYTES: u64 = 64 << 10;

#[derive(Serialize)]
struct Scraped {
    success: bool,
    data: Document,
}

/// Reads a page, from the store if it was fetched recently.
pub(super) async fn scrape(
    State(api): State<Arc<Api>>,
    version: Version,
    Caller(identity): Caller,
    request: Request,
) -> FirecrawlResult {
    api.charge(&identity.caller, 1)?;
    let (message, wait) = {
        let (_, whole) = read_body(&api, &identity, request, MAX_BODY_BYTES).await?;
        let json = body::json(&whole.bytes)?;
        let (message, options) = asked(&json, version, &api.judge())?;
        (message, options.timeout)
    };
    let page = api.read_page(&identity, message, wait).await?;
    let data = Document::of(page.outbox, page.age)?;
    Ok(until_sent(json(&Scraped { success: true, data }), page.share))
}

/// Reads the request.
fn asked(
    json: &Json<'_>,
    version: Version,
    judge: &Judge<'_>,
) -> Result<(FetchRequest, ScrapeOptions), Problem> {
    let mut fields = Fields::of(json)?;
    let url = fields.need("url", |value| values::web_url(value, judge.guard));
    let options = ScrapeOptions::take(&mut fields, version);
    fields.finish(&OTHER_OPTIONS)?;
    // Without an error there is a URL.
    let (url, site) = url.ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?;
    Ok((options.message(url, site, judge.default_deadline), options))
}
