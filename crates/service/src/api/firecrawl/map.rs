//! `POST /v2/map`: the pages of a site.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;

use super::FirecrawlResult;
use super::fields::{Fields, count};
use super::options::{DEFAULT_TIMEOUT, timeout};
use super::other_options::OTHER_OPTIONS;
use super::request::{Caller, Version, read_body};
use super::scrape::MAX_BODY_BYTES;
use crate::api::json::Json;
use crate::api::respond::json;
use crate::api::site_map::{
    DEFAULT_MAX_AGE, MAX_MAPPED, MAX_SEARCH_BYTES, MapRequest, MappedLink, Sitemaps,
};
use crate::api::{Api, body, values};
use crate::problem::{Problem, ProblemKind};
use crate::server::until_sent;

const DEFAULT_LIMIT: usize = 5_000;

/// The JSON overhead of a link.
const BYTES_PER_LINK: usize = 64;

#[derive(Serialize)]
struct Mapped<L> {
    success: bool,
    links: Vec<L>,
}

#[derive(Serialize)]
struct Link {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Lists the pages of a site.
pub(super) async fn map(
    State(api): State<Arc<Api>>,
    version: Version,
    Caller(identity): Caller,
    request: Request,
) -> FirecrawlResult {
    api.charge(&identity.caller, 1)?;
    let asked = {
        let (_, whole) = read_body(&api, &identity, request, MAX_BODY_BYTES).await?;
        asked(&body::json(&whole.bytes)?, version)?
    };
    let links = api.map_site(&identity, asked).await?;
    let bytes: usize = links.iter().map(bytes_of).sum();
    let share = api.memory.take(bytes as u64).await?;
    Ok(until_sent(answer(version, links), share))
}

fn bytes_of(link: &MappedLink) -> usize {
    let texts = [&link.title, &link.description];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    link.url.len() + texts + BYTES_PER_LINK
}

/// Version 1 lists URLs only.
fn answer(version: Version, links: Vec<MappedLink>) -> Response {
    match version {
        Version::V1 => {
            let links = links.into_iter().map(|link| link.url).collect();
            json(&Mapped { success: true, links })
        }
        Version::V2 => {
            let link = |MappedLink { url, title, description }| Link { url, title, description };
            let links = links.into_iter().map(link).collect();
            json(&Mapped { success: true, links })
        }
    }
}

fn asked(json: &Json<'_>, version: Version) -> Result<MapRequest, Problem> {
    let is_new = version == Version::V2;
    let mut fields = Fields::of(json)?;
    let url = fields.need("url", text);
    let search = fields.take("search", search);
    let limit = fields.take("limit", count(1, MAX_MAPPED as u64));
    let include_subdomains = fields.take("includeSubdomains", values::switch);
    let leave_out_queries = fields.take("ignoreQueryParameters", values::switch);
    let is_uncached = fields.take("ignoreCache", values::switch).unwrap_or_default();
    let wait = fields.take("timeout", timeout());
    let sitemaps = match version {
        Version::V1 => {
            let only = fields.take("sitemapOnly", values::switch).unwrap_or_default();
            let skip = fields.take("ignoreSitemap", values::switch).unwrap_or_default();
            if only && skip {
                fields.fault("/sitemapOnly", "contradicts ignoreSitemap");
            }
            if only {
                Sitemaps::Only
            } else if skip {
                Sitemaps::Skip
            } else {
                Sitemaps::Include
            }
        }
        Version::V2 => fields.take("sitemap", sitemaps).unwrap_or_default(),
    };
    fields.finish(&OTHER_OPTIONS)?;
    Ok(MapRequest {
        // Without an error there is a URL.
        url: url.ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?,
        search,
        limit: limit.unwrap_or(DEFAULT_LIMIT),
        include_subdomains: include_subdomains.unwrap_or(is_new),
        sitemaps,
        leave_out_queries: leave_out_queries.unwrap_or(is_new),
        max_age: if is_uncached { Duration::ZERO } else { DEFAULT_MAX_AGE },
        wait: wait.unwrap_or(DEFAULT_TIMEOUT),
    })
}

fn sitemaps(value: &Json<'_>) -> Result<Sitemaps, String> {
    match value.as_str() {
        Some("include") => Ok(Sitemaps::Include),
        Some("skip") => Ok(Sitemaps::Skip),
        Some("only") => Ok(Sitemaps::Only),
        _ => Err("must be \"include\", \"skip\" or \"only\"".to_owned()),
    }
}

fn search(value: &Json<'_>) -> Result<String, String> {
    let words = text(value)?;
    if words.len() > MAX_SEARCH_BYTES {
        return Err(format!("has more than {MAX_SEARCH_BYTES} bytes"));
    }
    Ok(words)
}

fn text(value: &Json<'_>) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| "is not a string; put it in quotes".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(version: Version, changes: &Value) -> Result<MapRequest, String> {
        let mut body = json!({"url": "http://a.test/"});
        for (name, value) in changes.as_object().unwrap() {
            body[name] = value.clone();
        }
        let text = body.to_string();
        asked(&serde_json::from_str(&text).unwrap(), version).map_err(|problem| problem.text())
    }

    #[test]
    fn defaults_are_those_of_the_version() {
        for (version, is_new) in [(Version::V1, false), (Version::V2, true)] {
            let request = read(version, &json!({})).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!((request.include_subdomains, request.leave_out_queries), (is_new, is_new));
            assert_eq!((request.limit, request.sitemaps), (DEFAULT_LIMIT, Sitemaps::Include));
        }
    }

    #[test]
    fn each_version_names_the_sitemaps_in_its_own_way() {
        for (version, changes, expected) in [
            (Version::V1, json!({"sitemapOnly": true}), Sitemaps::Only),
            (Version::V1, json!({"ignoreSitemap": true}), Sitemaps::Skip),
            (Version::V2, json!({"sitemap": "only"}), Sitemaps::Only),
            (Version::V2, json!({"sitemap": "skip"}), Sitemaps::Skip),
        ] {
            assert_eq!(read(version, &changes).map(|request| request.sitemaps), Ok(expected));
        }
        for (version, changes, said) in [
            (
                Version::V1,
                json!({"sitemapOnly": true, "ignoreSitemap": true}),
                "sitemapOnly contradicts",
            ),
            (Version::V1, json!({"sitemap": "only"}), "sitemap is not a known option"),
            (Version::V2, json!({"ignoreSitemap": true}), "ignoreSitemap is not a known option"),
            (Version::V2, json!({"sitemap": "all"}), "sitemap must be"),
            (
                Version::V2,
                json!({"limit": 100_001}),
                "limit must be a whole number from 1 to 100000",
            ),
            (Version::V2, json!({"url": null}), "url is missing"),
            (Version::V2, json!({"search": "a ".repeat(129)}), "search has more than 256 bytes"),
            (Version::V2, json!({"location": {}}), "location is not supported"),
        ] {
            let fault = read(version, &changes).map(|_| ()).unwrap_err();
            assert!(fault.starts_with(said), "{fault}");
        }
    }
}
