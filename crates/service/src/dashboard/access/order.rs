//! An order: a form that an operator sent from a page of the dashboard.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Redirect, Response};
use fetchwell_engine::ports::error::StoreError;

use super::form::Form;
use super::same_origin::check_is_ours;
use super::sessions::Notice;
use super::visitor::Visitor;
use crate::dashboard::Dashboard;
use crate::dashboard::fault::PageError;
use crate::server::Peer;
use crate::sites::Operator;

/// An authorized order. It can only be extracted from a request of an operator.
pub(in super::super) struct Order {
    pub(in super::super) form: Form,
    pub(in super::super) by: Visitor,
    from: String,
}

impl FromRequest<Arc<Dashboard>> for Order {
    type Rejection = PageError;

    async fn from_request(
        request: Request,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Order, PageError> {
        let (mut parts, body) = request.into_parts();
        check_is_ours(&parts)?;
        let by = Visitor::from_request_parts(&mut parts, dashboard).await?;
        if !by.may_act() {
            let who =
                format!("{} has read-only access; actions need the role operator", by.caller.name);
            return Err(PageError::Forbidden(who));
        }
        let form = Form::read(body).await?;
        // The CSRF token is random and belongs to one session, so the time of the comparison reveals nothing useful.
        if form.text("csrf") != Some(&by.csrf) {
            let why = "the page belongs to another session; reload it and try again";
            return Err(PageError::Forbidden(why.to_owned()));
        }
        Ok(Order { form, by, from: Peer::of(&parts).address.to_string() })
    }
}

impl Order {
    /// The operator who gave the order, and the address.
    pub(in super::super) fn operator(&self) -> Operator {
        Operator { name: self.by.caller.name.clone(), from: self.from.clone() }
    }

    /// Records the action in the audit log.
    pub(in super::super) async fn note(
        &self,
        action: &str,
        detail: String,
    ) -> Result<(), StoreError> {
        let Visitor { dashboard, caller, .. } = &self.by;
        dashboard.subject.audit.note(&caller.name, action, detail, &self.from).await
    }

    /// Redirects to the page of the form, which shows that the order was carried out.
    pub(in super::super) fn told(&self, text: String) -> Response {
        self.back(Notice { is_good: true, text })
    }

    /// Redirects to the page of the form, which shows why the order was not carried out.
    pub(in super::super) fn not_done(&self, text: String) -> Response {
        self.back(Notice { is_good: false, text })
    }

    fn back(&self, notice: Notice) -> Response {
        if let Some(session) = &self.by.session {
            self.by.dashboard.sessions.say(session, notice);
        }
        Redirect::to(local(self.form.text("back").unwrap_or("/"))).into_response()
    }
}

/// The path if it belongs to the dashboard, else `/`, so that no form can redirect elsewhere.
pub(super) fn local(path: &str) -> &str {
    let is_ours = path == "/" || path.starts_with("/?") || path.starts_with("/dashboard/");
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_ours && is_plain { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_leads_elsewhere() {
        for path in ["/", "/?a=b", "/dashboard/sites?text=%C3%A4"] {
            assert_eq!(local(path), path);
        }
        for path in [
            "//evil.test/",
            "https://evil.test",
            "",
            "/dashboardx",
            "/dashboard/\r\nx: y",
            "/\\evil.test",
        ] {
            assert_eq!(local(path), "/");
        }
    }
}
