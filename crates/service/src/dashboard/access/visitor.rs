//! The user who views a page.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use fetchwell_engine::ports::inbox::{Caller, Role};
use http::Uri;
use http::request::Parts;
use url::form_urlencoded::{self, Serializer};

use super::authenticator::{Authenticator, ONLOOKER};
use super::cookies;
use super::form::Form;
use super::sessions::Notice;
use crate::dashboard::Dashboard;
use crate::dashboard::fault::PageError;

/// The color theme of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Theme {
    /// The theme of the system.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    pub(in super::super) fn as_str(self) -> &'static str {
        match self {
            Theme::Auto => "auto",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    pub(super) fn parse(word: &str) -> Theme {
        let all = [Theme::Light, Theme::Dark];
        all.into_iter().find(|theme| theme.as_str() == word).unwrap_or_default()
    }

    /// The theme in the cookie of a request.
    pub(super) fn of(parts: &Parts) -> Theme {
        cookies::value(&parts.headers, cookies::THEME).map(Theme::parse).unwrap_or_default()
    }
}

/// Marks a request of an automatic refresh.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct IsLive;

/// A user who may view the dashboard, with the request for one of its pages.
pub(in super::super) struct Visitor {
    pub(in super::super) dashboard: Arc<Dashboard>,
    pub(in super::super) caller: Caller,
    pub(in super::super) theme: Theme,
    /// The CSRF token of the session; empty if there is no login.
    pub(in super::super) csrf: String,
    /// The outcome of the last order.
    pub(in super::super) notice: Option<Notice>,
    /// Whether this is an automatic refresh of the page.
    pub(in super::super) is_live: bool,
    pub(super) session: Option<String>,
    uri: Uri,
}

impl Visitor {
    /// Whether this user may change something.
    pub(in super::super) fn may_act(&self) -> bool {
        self.session.is_some() && self.caller.role == Role::Operator
    }

    /// Whether this user can log out.
    pub(in super::super) fn is_logged_in(&self) -> bool {
        self.session.is_some()
    }

    /// The parameters of the page.
    pub(in super::super) fn query(&self) -> Form {
        Form::of_query(&self.uri)
    }

    /// The path and query of the page, to which its forms redirect.
    pub(in super::super) fn back(&self) -> &str {
        here(&self.uri)
    }

    /// The path and query of the page with this parameter set, or removed.
    pub(in super::super) fn here_with(&self, name: &str, value: Option<&str>) -> String {
        with_parameter(&self.uri, name, value)
    }
}

/// The path and query of a URL with this parameter set, or removed.
fn with_parameter(uri: &Uri, name: &str, value: Option<&str>) -> String {
    let query = uri.query().unwrap_or_default();
    let others = form_urlencoded::parse(query.as_bytes()).filter(|(found, _)| found != name);
    let mut pairs = Serializer::new(String::new());
    pairs.extend_pairs(others);
    if let Some(value) = value {
        pairs.append_pair(name, value);
    }
    match pairs.finish() {
        query if query.is_empty() => uri.path().to_owned(),
        query => format!("{}?{query}", uri.path()),
    }
}

fn here(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

impl FromRequestParts<Arc<Dashboard>> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Visitor, PageError> {
        let theme = Theme::of(parts);
        let is_live = parts.extensions.get::<IsLive>().is_some();
        let uri = parts.uri.clone();
        let dashboard = dashboard.clone();
        if matches!(dashboard.subject.authenticator, Authenticator::Nobody) {
            let caller = Caller { name: ONLOOKER.to_owned(), role: Role::Viewer };
            let csrf = String::new();
            let notice = None;
            let session = None;
            return Ok(Visitor { dashboard, caller, theme, csrf, notice, is_live, session, uri });
        }
        let wanted = here(&uri).to_owned();
        let id = cookies::value(&parts.headers, cookies::SESSION);
        let found = id.and_then(|id| Some((id, dashboard.sessions.find(id, !is_live)?)));
        let Some((id, session)) = found else { return Err(PageError::LogIn { wanted }) };
        let caller = dashboard.subject.authenticator.caller_of(&session.token).await?;
        let Some(caller) = caller.filter(|caller| caller.role != Role::Caller) else {
            dashboard.sessions.close(id);
            return Err(PageError::LogIn { wanted });
        };
        // An automatic refresh must not consume the notice of a page that the user opens.
        let may_say = !is_live && parts.method == http::Method::GET;
        let notice = may_say.then(|| dashboard.sessions.take_notice(id)).flatten();
        let csrf = session.csrf;
        let session = Some(id.to_owned());
        Ok(Visitor { dashboard, caller, theme, csrf, notice, is_live, session, uri })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_set_or_removed_and_the_others_stay() {
        let uri: Uri = "/dashboard/messages?state=failed&select=all&text=%C3%A4".parse().unwrap();
        let without = "/dashboard/messages?state=failed&text=%C3%A4";
        assert_eq!(with_parameter(&uri, "select", None), without);
        assert_eq!(with_parameter(&uri, "select", Some("all")), format!("{without}&select=all"));
        assert_eq!(with_parameter(&"/?select=all".parse().unwrap(), "select", None), "/");
    }
}
