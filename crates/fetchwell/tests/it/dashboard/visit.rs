//! A browser's side of the talk: cookies, forms, and what a page says.

use std::net::SocketAddr;

use url::form_urlencoded::Serializer;

use crate::client::{self, Response};

/// What a browser says of a form that stands on a page of the same origin.
pub(crate) const FROM_US: (&str, &str) = ("origin", "http://fetchwell.test");

/// Somebody who looks at a dashboard.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) at: SocketAddr,
    /// '' before the login.
    pub(crate) cookie: String,
}

impl Visitor {
    pub(crate) fn stranger(at: SocketAddr) -> Visitor {
        Visitor { at, cookie: String::new() }
    }

    /// Logs in, which must work.
    pub(crate) async fn log_in(at: SocketAddr, token: &str) -> Visitor {
        let stranger = Visitor::stranger(at);
        let answer = stranger.post("/dashboard/login", &[("token", token)], &[FROM_US]).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some("/")),
            "{}",
            text(&answer)
        );
        let cookie = answer.header("set-cookie").expect("a cookie").split(';').next().unwrap();
        Visitor { at, cookie: cookie.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], "").await
    }

    /// A page that must be there.
    pub(crate) async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
        text(&answer)
    }

    /// Sends a form of a page, with what that page hides in it.
    pub(crate) async fn submit(
        &self,
        page: &str,
        action: &str,
        fields: &[(&str, &str)],
    ) -> Response {
        let csrf = csrf(&self.page(page).await);
        let all = [&[("csrf", csrf.as_str()), ("back", page)], fields].concat();
        self.post(action, &all, &[FROM_US]).await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Response {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        self.send("POST", path, &[&kind, headers].concat(), &body).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let own = [("cookie", self.cookie.as_str())];
        client::raw(self.at, &client::request(method, path, &[&own, headers].concat(), body)).await
    }
}

/// What every form of a page holds.
pub(crate) fn csrf(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a form");
    rest.split('"').next().unwrap().to_owned()
}

/// What a hidden field of a page says.
pub(crate) fn hidden(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).expect("a field");
    rest.split('"').next().unwrap().to_owned()
}

pub(crate) fn text(answer: &Response) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}
