//! Sites: their state, for viewers and operators, and orders for them, from operators only.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request};
use fetchwell_engine::ports::sites::{Condition, SITES_PER_PAGE, SiteQuery};
use fetchwell_policy::orders::Order;
use fetchwell_policy::url::Site;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::fields::pointer;
use super::identity::{ActingOperator, Identity, Viewer};
use super::json::Json;
use super::parameters::limit;
use super::problems::{
    BodyProblems, CallerProblems, OperatorProblems, QueryProblems, SiteProblems, StoreProblems,
    ViewerProblems,
};
use super::respond::json;
use super::{Api, ApiResult, PathName, body, parameters};
use crate::problem::{FieldError, PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::sites::{Obeyed, RowsPage, SiteRow};

const DEFAULT_LIMIT: usize = 100;
const MAX_BODY_BYTES: u64 = 1_024;

/// No site has a longer name than this.
const MAX_NAME_BYTES: usize = 300;

/// The error for an invalid condition.
const CONDITIONS: &str = "must be paused, rated, breaker-open, resting, limited or failed";

/// The routes for sites.
pub(super) fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(sites))
        .routes(routes!(site))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(set_rate))
        .routes(routes!(reset_breaker))
        .routes(routes!(refetch_robots))
}

/// The rate of a site.
#[derive(ToSchema)]
#[schema(as = SiteRate)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for its schema: it is read by hand")]
struct RateBody {
    /// Requests per second; null removes the override, so that the settings apply again. 0 disables pacing,
    /// which is only for sites that you own.
    #[schema(required, minimum = 0, maximum = 10000, example = 0.5)]
    rate: Option<f64>,
}

/// List known sites
///
/// Sorted by name, each with its pace, the source of that pace, and what its next page waits for.
#[utoipa::path(
    get,
    path = "/sites",
    operation_id = "sites",
    tag = "Sites",
    params(
        ("after" = Option<String>, Query, description = "return sites after this name: `next` of an earlier response", pattern = "^[!-~]{1,300}$"),
        ("text" = Option<String>, Query, description = "text in the name", max_length = 300),
        ("condition" = Option<String>, Query, description = "the condition: paused, rated, breaker-open, resting, limited or failed", pattern = "^(paused|rated|breaker-open|resting|limited|failed)$"),
        ("limit" = Option<u32>, Query, description = "maximum number of results, 1 to 200 (default 100)", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "sites, or none", body = RowsPage),
        CallerProblems, ViewerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn sites(Viewer(api): Viewer, RawQuery(query): RawQuery) -> ApiResult {
    let query = read_query(query.as_deref().unwrap_or_default())?;
    Ok(json(&api.stored(api.on.sites.page(&query).await)?))
}

/// Get the state of a site
///
/// Also works for a site that was never fetched from.
#[utoipa::path(
    get,
    path = "/sites/{site}",
    operation_id = "site",
    tag = "Sites",
    params(("site" = String, Path, description = "the host, with its port unless that is 80 or 443", example = "shop.example")),
    responses(
        (status = 200, description = "the site", body = SiteRow),
        CallerProblems, ViewerProblems, SiteProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn site(Viewer(api): Viewer, name: PathName) -> ApiResult {
    Ok(json(&api.stored(api.on.sites.row(&named(name)?).await)?))
}

/// Send nothing to a site until it is resumed
///
/// Its URLs wait; deadlines of messages still pass. Requests in flight finish.
#[utoipa::path(
    post,
    path = "/sites/{site}/pause",
    operation_id = "site_pause",
    tag = "Sites",
    params(("site" = String, Path, description = "the host, with its port unless that is 80 or 443", example = "shop.example")),
    responses(
        (status = 200, description = "the new state of the site", body = Obeyed),
        CallerProblems, OperatorProblems, SiteProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn pause(operator: ActingOperator, name: PathName) -> ApiResult {
    operator.order(name, Order::Pause).await
}

/// Resume a paused site
///
/// Requests resume at its pace, without a burst.
#[utoipa::path(
    post,
    path = "/sites/{site}/resume",
    operation_id = "site_resume",
    tag = "Sites",
    params(("site" = String, Path, description = "the host, with its port unless that is 80 or 443", example = "shop.example")),
    responses(
        (status = 200, description = "the new state of the site", body = Obeyed),
        CallerProblems, OperatorProblems, SiteProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn resume(operator: ActingOperator, name: PathName) -> ApiResult {
    operator.order(name, Order::Resume).await
}

/// Set the rate of a site
///
/// Overrides the settings of every process on the store; never faster than a Crawl-delay.
#[utoipa::path(
    post,
    path = "/sites/{site}/set-rate",
    operation_id = "site_set_rate",
    tag = "Sites",
    params(("site" = String, Path, description = "the host, with its port unless that is 80 or 443", example = "shop.example")),
    request_body = RateBody,
    responses(
        (status = 200, description = "the new state of the site", body = Obeyed),
        (status = 413, description = "the body is over 1 KiB", body = ProblemBody, content_type = PROBLEM_JSON),
        (status = 422, description = "the rate is missing or invalid", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, OperatorProblems, SiteProblems, BodyProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn set_rate(operator: ActingOperator, name: PathName, request: Request) -> ApiResult {
    let (parts, body) = request.into_parts();
    let whole = body::read(&operator.api.memory, &parts.headers, body, MAX_BODY_BYTES).await?;
    let rate = rate_in(&body::json(&whole.bytes)?)?;
    let order = match rate {
        None => Order::ClearInterval,
        Some(rate) => operator.api.on.sites.order_of_rate(rate).map_err(bad_rate)?,
    };
    operator.order(name, order).await
}

/// Close the breaker of a site
///
/// Does not wait for a probe. If the site is still down, its next failures open the breaker again.
#[utoipa::path(
    post,
    path = "/sites/{site}/reset-breaker",
    operation_id = "site_reset_breaker",
    tag = "Sites",
    params(("site" = String, Path, description = "the host, with its port unless that is 80 or 443", example = "shop.example")),
    responses(
        (status = 200, description = "the new state of the site", body = Obeyed),
        CallerProblems, OperatorProblems, SiteProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn reset_breaker(operator: ActingOperator, name: PathName) -> ApiResult {
    operator.order(name, Order::ResetBreaker).await
}

/// Read a site's robots.txt again
///
/// Discards the cached file; it is read again before the next page.
#[utoipa::path(
    post,
    path = "/sites/{site}/refetch-robots",
    operation_id = "site_refetch_robots",
    tag = "Sites",
    params(("site" = String, Path, description = "the host, with its port unless that is 80 or 443", example = "shop.example")),
    responses(
        (status = 200, description = "the new state of the site", body = Obeyed),
        CallerProblems, OperatorProblems, SiteProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn refetch_robots(operator: ActingOperator, name: PathName) -> ApiResult {
    operator.order(name, Order::ForgetRobots).await
}

impl ActingOperator {
    async fn order(&self, name: PathName, order: Order) -> ApiResult {
        let api = &self.api;
        let Identity { caller, from, .. } = &self.identity;
        api.charge(caller, 1)?;
        let by = crate::sites::Operator { name: caller.name.clone(), from: from.clone() };
        Ok(json(&api.stored(api.on.sites.order(&named(name)?, order, &by).await)?))
    }
}

/// Parses the site in the path. Anything beyond host and port is refused.
fn named(name: PathName) -> Result<Site, Problem> {
    let name = name.ok().map(|Path(text)| text);
    let site = name.filter(|text| !text.contains(['/', '\\', '?', '#', '@']));
    let site = site.and_then(|text| Site::parse(&text).ok());
    site.ok_or_else(|| {
        Problem::new(ProblemKind::NOT_FOUND).saying(
            "This is not the name of a site; use a host, with its port unless that is 80 or 443.",
        )
    })
}

fn read_query(query: &str) -> Result<SiteQuery, Problem> {
    let mut asked = SiteQuery { most: DEFAULT_LIMIT, ..SiteQuery::default() };
    parameters::read(query, |name, value| {
        match name {
            "after" if is_name(value) => asked.after = Some(value.to_owned()),
            "after" => return Err(("after", "must be a name: `next` of an earlier response")),
            "text" if value.chars().count() <= MAX_NAME_BYTES => {
                asked.text = Some(value.to_lowercase());
            }
            "text" => return Err(("text", "must have at most 300 characters")),
            "condition" => {
                let condition = Condition::parse(value).ok_or(("condition", CONDITIONS))?;
                asked.condition = Some(condition);
            }
            "limit" => {
                asked.most = limit(value, SITES_PER_PAGE).ok_or(("limit", "must be 1 to 200"))?;
            }
            // Unknown parameters are ignored.
            _ => {}
        }
        Ok(())
    })?;
    Ok(asked)
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The rate in a body; `None` removes the override, so that the settings apply again.
fn rate_in(body: &Json<'_>) -> Result<Option<f64>, Problem> {
    let Some(fields) = body.as_object() else {
        return Err(Problem::invalid(vec![FieldError::at("", "must be an object with a rate")]));
    };
    let unknown = fields.names().filter(|name| *name != "rate");
    let errors: Vec<FieldError> =
        unknown.map(|name| FieldError::at(pointer(&[name]), "is not a known field")).collect();
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    match fields.get("rate") {
        Some(Json::Null) => Ok(None),
        Some(Json::Number(rate)) => Ok(rate.as_f64()),
        Some(_) => Err(bad_rate("must be a number, or null".to_owned())),
        None => Err(bad_rate("is missing; send requests per second, or null".to_owned())),
    }
}

fn bad_rate(detail: String) -> Problem {
    Problem::invalid(vec![FieldError::at("/rate", detail)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_strictly() {
        let read = |query: &str| {
            let asked = read_query(query).ok()?;
            Some((asked.after, asked.text, asked.condition, asked.most))
        };
        let text = |text: &str| Some(text.to_owned());
        for (query, expected) in [
            ("", Some((None, None, None, 100))),
            ("after=a.test&text=SHOP&limit=200", Some((text("a.test"), text("shop"), None, 200))),
            ("condition=paused&other=1", Some((None, None, Some(Condition::Paused), 100))),
            ("condition=asleep", None),
            ("limit=0", None),
            ("limit=201", None),
            ("limit=%2B1", None),
            ("after=", None),
            ("after=a%00", None),
        ] {
            assert_eq!(read(query), expected, "{query}");
        }
    }

    #[test]
    fn a_path_names_a_host_and_no_more_than_that() {
        for (name, expected) in [
            ("shop.test", Some("shop.test")),
            ("SHOP.test:8080", Some("shop.test:8080")),
            ("shop.test/x", None),
            ("http://shop.test", None),
            ("shop.test?x", None),
            ("webhook@shop.test", None),
            ("", None),
            ("a b", None),
        ] {
            let site = named(Ok(Path(name.to_owned()))).ok();
            assert_eq!(site.as_ref().map(Site::as_str), expected, "{name}");
        }
    }

    #[test]
    fn a_rate_is_a_number_or_null_and_nothing_else() {
        for (body, expected) in [
            (r#"{"rate": 0.5}"#, Some(Some(0.5))),
            (r#"{"rate": 2}"#, Some(Some(2.0))),
            (r#"{"rate": null}"#, Some(None)),
            (r#"{"rate": "2"}"#, None),
            ("{}", None),
            ("[]", None),
            (r#"{"rate": 1, "burst": 2}"#, None),
        ] {
            let json = serde_json::from_str(body).unwrap();
            assert_eq!(rate_in(&json).ok(), expected, "{body}");
        }
    }
}
