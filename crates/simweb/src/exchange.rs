use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};

/// A request to the world.
#[derive(Debug, Clone, Copy)]
pub struct SimRequest<'a> {
    /// The Host header, with or without a port.
    pub host: &'a str,
    /// The method; `HEAD` gets the head only, all others are answered like `GET`.
    pub method: &'a Method,
    /// The path with its query, as sent.
    pub path_and_query: &'a str,
    /// The User-Agent header; empty if there is none.
    pub user_agent: &'a str,
    /// The If-None-Match header; empty if there is none.
    pub if_none_match: &'a str,
}

impl<'a> SimRequest<'a> {
    /// A plain `GET` without a User-Agent.
    pub fn get(host: &'a str, path_and_query: &'a str) -> Self {
        SimRequest { host, method: &Method::GET, path_and_query, user_agent: "", if_none_match: "" }
    }

    pub(crate) fn is_for_robots(&self) -> bool {
        self.path_and_query.split('?').next() == Some("/robots.txt")
    }
}

/// A site's response: what it sends, how fast, and whether it is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimResponse {
    /// The HTTP status; meaningless if the manner sends no head.
    pub status: u16,
    /// All headers; Content-Length is included if there may be a body.
    pub headers: Vec<(String, String)>,
    /// The whole body, empty for `HEAD`.
    pub body: Bytes,
    /// The delay before the first byte.
    pub first_byte_after: Duration,
    /// The time over which the body is spread.
    pub body_over: Duration,
    /// How much of it the client receives.
    pub manner: Truncation,
}

impl SimResponse {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> SimResponse {
        let body = body.into();
        let headers = vec![
            ("content-type".to_owned(), content_type.to_owned()),
            ("content-length".to_owned(), body.len().to_string()),
        ];
        SimResponse {
            status,
            headers,
            body,
            first_byte_after: Duration::ZERO,
            body_over: Duration::ZERO,
            manner: Truncation::Complete,
        }
    }

    /// A short text that names the status, if the status may have a body.
    pub(crate) fn of_status(status: u16) -> SimResponse {
        let mut answer = SimResponse::new(status, "text/plain", format!("status {status}\n"));
        if matches!(status, 204 | 304) {
            // These two have no body in HTTP; with a Content-Length, a client would wait for one.
            answer.headers.clear();
            answer.body.clear();
        }
        answer
    }

    pub(crate) fn redirect(status: u16, location: &str) -> SimResponse {
        SimResponse::of_status(status).with_header("location", location)
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> SimResponse {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Retry-After has whole seconds; they are rounded up, so that a client is never invited too early.
    pub(crate) fn with_retry_after(self, retry_after: Option<Duration>) -> SimResponse {
        match retry_after {
            Some(wait) => self.with_header("retry-after", &wait.as_secs_f64().ceil().to_string()),
            None => self,
        }
    }

    pub(crate) fn with_manner(mut self, manner: Truncation) -> SimResponse {
        self.manner = manner;
        self
    }

    /// The first value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The status that the client receives, if any.
    pub fn visible_status(&self) -> Option<u16> {
        match self.manner {
            Truncation::CutConnection | Truncation::Stall => None,
            Truncation::Complete | Truncation::CutAfterHead | Truncation::CutMidBody { .. } => {
                Some(self.status)
            }
        }
    }
}

/// How far a response gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncation {
    /// The response is complete.
    Complete,
    /// The connection is reset without a response.
    CutConnection,
    /// The head is sent, then the connection is closed.
    CutAfterHead,
    /// The head and a part of the body are sent, then the connection is closed.
    CutMidBody {
        /// How many bytes of the body are sent.
        after_bytes: usize,
    },
    /// The connection stays open, and nothing is ever sent.
    Stall,
}
