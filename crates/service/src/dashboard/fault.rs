//! Renders a page, or an error page if that fails.

use askama::Template;
use axum::response::{Html, IntoResponse, Redirect, Response};
use fetchwell_engine::ports::error::StoreError;
use http::StatusCode;
use tracing::{error, warn};
use url::form_urlencoded;

use super::assets::{ASSETS, Assets};

/// The response of a page, or why it cannot be shown.
pub(super) type PageResult = Result<Response, PageError>;

/// Why a page cannot be shown.
#[derive(Debug)]
pub(super) enum PageError {
    /// The user is not logged in.
    LogIn {
        /// The requested page.
        wanted: String,
    },
    /// The user may not do this, for this reason.
    Forbidden(String),
    /// There is no such page or object; the text is a hint.
    NotFound(&'static str),
    /// The request is invalid.
    BadRequest(&'static str),
    /// The store could not be reached.
    Store(StoreError),
    /// A bug.
    Internal(String),
}

impl From<StoreError> for PageError {
    fn from(fault: StoreError) -> PageError {
        PageError::Store(fault)
    }
}

#[derive(Template)]
#[template(path = "fault.html")]
struct FaultPage<'a> {
    assets: &'static Assets,
    title: &'a str,
    text: &'a str,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, title, text) = match self {
            PageError::LogIn { wanted } => return log_in(&wanted),
            PageError::Forbidden(why) => (StatusCode::FORBIDDEN, "Not allowed", sentence(&why)),
            PageError::NotFound(hint) => (StatusCode::NOT_FOUND, "Not found", sentence(hint)),
            PageError::BadRequest(why) => (StatusCode::BAD_REQUEST, "Bad request", sentence(why)),
            PageError::Store(fault) => {
                warn!("could not show a page of the dashboard: {fault}");
                let text = "The store could not be reached. The log has the error; run `fetchwell doctor` for details.";
                (StatusCode::SERVICE_UNAVAILABLE, "Store unavailable", text.to_owned())
            }
            PageError::Internal(why) => {
                error!("could not render a page of the dashboard: {why}");
                let text = "Could not render the page. See the log.";
                (StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text.to_owned())
            }
        };
        let page = html(&FaultPage { assets: &ASSETS, title, text: &text });
        (status, page.unwrap_or_else(|_| title.into_response())).into_response()
    }
}

/// Renders a template as a response.
pub(super) fn html(template: &impl Template) -> PageResult {
    Ok(Html(render(template)?).into_response())
}

pub(super) fn render(template: &impl Template) -> Result<String, PageError> {
    template.render().map_err(|error| PageError::Internal(error.to_string()))
}

fn log_in(wanted: &str) -> Response {
    let to: String = form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
    Redirect::to(&format!("/dashboard/login?to={to}")).into_response()
}

/// Turns a reason into a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
