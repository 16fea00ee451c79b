//! Login with a token, logout, and the choice of a color theme.

use std::sync::Arc;

use askama::Template;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Redirect};
use fetchwell_engine::ports::inbox::{Caller, Role, TokenHash};
use http::StatusCode;
use http::header::{RETRY_AFTER, SET_COOKIE};
use sha2::{Digest, Sha256};

use super::cookies;
use super::form::Form;
use super::order::local;
use super::same_origin::{check_is_not_others, check_is_ours};
use super::sessions::LIFETIME;
use super::visitor::{Theme, Visitor};
use crate::dashboard::Dashboard;
use crate::dashboard::assets::{ASSETS, Assets};
use crate::dashboard::fault::{PageError, PageResult, html};
use crate::server::Peer;

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    assets: &'static Assets,
    theme: Theme,
    door: &'static str,
    has_callers: bool,
    to: &'a str,
    fault: Option<String>,
}

/// Shows the login form.
pub(in super::super) async fn form(
    State(dashboard): State<Arc<Dashboard>>,
    request: Request,
) -> PageResult {
    let (mut parts, _) = request.into_parts();
    let query = Form::of_query(&parts.uri);
    let to = local(query.text("to").unwrap_or("/")).to_owned();
    if Visitor::from_request_parts(&mut parts, &dashboard).await.is_ok() {
        return Ok(Redirect::to(&to).into_response());
    }
    page(&dashboard, Theme::of(&parts), &to, None)
}

/// Checks the token and opens a session.
pub(in super::super) async fn log_in(
    State(dashboard): State<Arc<Dashboard>>,
    request: Request,
) -> PageResult {
    let (parts, body) = request.into_parts();
    check_is_not_others(&parts)?;
    let peer = Peer::of(&parts);
    let from = peer.address;
    let theme = Theme::of(&parts);
    let form = Form::read(body).await?;
    let to = local(form.text("to").unwrap_or("/"));
    let hash: Option<TokenHash> =
        form.text("token").map(|text| Sha256::digest(text.as_bytes()).into());
    let refused = |status: StatusCode, fault: String| -> PageResult {
        Ok((status, page(&dashboard, theme, to, Some(fault))?).into_response())
    };
    let Dashboard { subject, sessions, attempts, .. } = &*dashboard;
    let authenticator = &subject.authenticator;
    let caller = match &hash {
        Some(hash) => {
            let lookup = authenticator.caller_of(hash);
            attempts.look_up(authenticator.account(None), from, lookup).await?
        }
        None => None,
    };
    let account = authenticator.account(caller.as_ref());
    if let Some(wait) = attempts.wait(account, from) {
        let seconds = wait.as_secs() + 1;
        let fault = format!("Too many failed logins from {from}. Try again in {seconds} s.");
        let wait = [(RETRY_AFTER, seconds.to_string())];
        return Ok((wait, refused(StatusCode::TOO_MANY_REQUESTS, fault)?).into_response());
    }
    match (caller, hash) {
        (Some(Caller { name, role: Role::Caller }), _) => {
            refused(StatusCode::FORBIDDEN, for_viewers(&name))
        }
        (Some(caller), Some(hash)) => {
            let id = sessions.open(hash).map_err(|error| PageError::Internal(error.to_string()))?;
            let address = from.to_string();
            subject.audit.note(&caller.name, "log_in", "dashboard".to_owned(), &address).await?;
            let cookie = cookies::set(peer, cookies::SESSION, &id, LIFETIME.as_secs());
            Ok(([(SET_COOKIE, cookie)], Redirect::to(to)).into_response())
        }
        (None, _) | (_, None) => {
            attempts.failed(authenticator.account(None), from);
            subject.auth_failures.note(from, "a login to the dashboard");
            let fault = "This token is unknown or was revoked.".to_owned();
            refused(StatusCode::UNAUTHORIZED, fault)
        }
    }
}

fn for_viewers(name: &str) -> String {
    format!(
        "This is the token of {name}, a caller, and is valid only for the API. The dashboard is \
         for viewers and operators. To create such a token, run: fetchwell callers add NAME --role \
         viewer"
    )
}

/// Ends the session.
pub(in super::super) async fn log_out(
    State(dashboard): State<Arc<Dashboard>>,
    request: Request,
) -> PageResult {
    let (parts, _) = request.into_parts();
    check_is_ours(&parts)?;
    if let Some(id) = cookies::value(&parts.headers, cookies::SESSION) {
        dashboard.sessions.close(id);
    }
    let cookie = cookies::set(Peer::of(&parts), cookies::SESSION, "", 0);
    Ok(([(SET_COOKIE, cookie)], Redirect::to("/dashboard/login")).into_response())
}

/// Stores the color theme in a cookie. It affects only this browser, so no session is needed.
pub(in super::super) async fn choose_theme(request: Request) -> PageResult {
    const A_YEAR_IN_SECONDS: u64 = 365 * 86_400;
    let (parts, body) = request.into_parts();
    check_is_ours(&parts)?;
    let form = Form::read(body).await?;
    let theme = form.text("theme").map(Theme::parse).unwrap_or_default();
    let cookie = cookies::set(Peer::of(&parts), cookies::THEME, theme.as_str(), A_YEAR_IN_SECONDS);
    Ok(([(SET_COOKIE, cookie)], Redirect::to(local(form.text("back").unwrap_or("/"))))
        .into_response())
}

fn page(dashboard: &Dashboard, theme: Theme, to: &str, fault: Option<String>) -> PageResult {
    let door = dashboard.subject.door.command();
    let has_callers = dashboard.subject.has_callers();
    html(&LoginPage { assets: &ASSETS, theme, door, has_callers, to, fault })
}
