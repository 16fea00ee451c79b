//! Requests and what comes back: the words that plans and the HTTP client share.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
pub use http::Method;
use tokio::time::Instant;

use crate::budget::Share;

/// One request that a plan wants made.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where to.
    pub url: WebUrl,
    /// How.
    pub method: Method,
    /// What is sent; empty for most methods.
    pub body: Bytes,
    /// Headers besides the client's own.
    pub headers: Vec<(&'static str, String)>,
    /// Whether robots.txt has a say. It has none over itself, over an archive or over a webhook.
    pub obeys_robots: bool,
    /// So much of the body is enough: what comes after is not read, and is no fault.
    pub enough_bytes: Option<usize>,
    /// Only an answer with this status has a body that is wanted; that of another is not read, however
    /// long it is.
    pub wanted_status: Option<u16>,
    /// Time limits of its own.
    pub timeouts: Timeouts,
}

/// Time limits of a request; `None`: the client's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Looking up the name, connecting and the TLS handshake together.
    pub connect: Option<Duration>,
    /// The whole request.
    pub request: Option<Duration>,
}

impl Request {
    /// Whether the body of an answer with this status is to be read.
    pub fn wants_body_of(&self, status: u16) -> bool {
        self.method != Method::HEAD && self.wanted_status.is_none_or(|wanted| wanted == status)
    }

    /// A page, by the rules of its robots.txt.
    pub fn page(url: WebUrl) -> Request {
        let method = Method::GET;
        let body = Bytes::new();
        let headers = Vec::new();
        Request {
            url,
            method,
            body,
            headers,
            obeys_robots: true,
            enough_bytes: None,
            wanted_status: None,
            timeouts: Timeouts::default(),
        }
    }

    /// Something that robots.txt does not govern.
    pub fn ungoverned(url: WebUrl) -> Request {
        Request { obeys_robots: false, ..Request::page(url) }
    }

    /// The same with a header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.headers.push((name, value.into()));
        self
    }

    /// The same for the beginning of a body.
    pub fn with_enough(mut self, bytes: usize) -> Request {
        self.enough_bytes = Some(bytes);
        self
    }

    /// The same for the body of an answer with this status only.
    pub fn with_wanted_status(mut self, status: u16) -> Request {
        self.wanted_status = Some(status);
        self
    }

    /// The same with another method.
    pub fn by(mut self, method: Method) -> Request {
        self.method = method;
        self
    }

    /// The same with a body.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self
    }
}

/// An answer that was read whole, or as far as was wanted, within every limit.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers, as received.
    pub headers: http::HeaderMap,
    /// The body with its content encoding undone; that of a range as it came.
    pub body: Bytes,
    /// The body's share of the budget that all bodies have together; returned when this is dropped.
    pub share: Share,
    /// How it came about, for those who keep a record.
    pub wire: Box<Wire>,
}

/// What was on the wire besides the answer itself.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// The version of HTTP that was spoken.
    pub version: http::Version,
    /// Who answered, where there was a connection.
    pub peer: Option<IpAddr>,
    /// The headers of the request, as sent.
    pub request_headers: http::HeaderMap,
}

impl Answer {
    /// A header as text, when it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Where the answer sends us, when it does: the raw `Location`.
    pub fn redirect(&self) -> Option<&str> {
        matches!(self.status, 301 | 302 | 303 | 307 | 308).then(|| self.header("location"))?
    }
}

/// What became of a request, for its plan.
#[derive(Debug)]
pub struct Outcome {
    /// Whether a request went out, or was at least tried.
    pub was_sent: bool,
    /// What happened.
    pub happened: Happened,
    /// The answer, when there was one: for 4xx and 5xx too.
    pub answer: Option<Answer>,
    /// How long the server asked us to wait.
    pub retry_after: Option<Duration>,
    /// Why it went, or did not go.
    pub why: Why,
    /// Where the time went.
    pub phases: Phases,
}

impl Outcome {
    /// An outcome without a request: the gate said no.
    pub fn unsent(happened: Happened, why: Why) -> Outcome {
        let answer = None;
        let retry_after = None;
        let phases = Phases::default();
        Outcome { was_sent: false, happened, answer, retry_after, why, phases }
    }
}

/// What the gate went by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why {
    /// The robots.txt rule that decided, with its line: `line 3: Disallow: /private/`.
    pub robots: Option<String>,
    /// The interval between requests to the site.
    pub interval: Duration,
    /// Where that interval comes from.
    pub interval_source: &'static str,
    /// When the site last served a page, as far as the store knows.
    pub site_last_served: Option<Time>,
    /// What kept it from going until its deadline passed, in words.
    pub held_up_by: Option<String>,
}

/// Where the time of one request went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// In the store, from acceptance until it was taken.
    pub queued: Duration,
    /// Waiting for the site's robots.txt.
    pub robots: Duration,
    /// Waiting for the site's slot and for a free place in flight.
    pub slot: Duration,
    /// The part of `slot` in which the site's turn had come and no place in flight was free.
    pub place: Duration,
    /// Looking up the name, connecting, the TLS handshake. Zero on a kept connection.
    pub connect: Duration,
    /// From the request head to the answer's head.
    pub first_byte: Duration,
    /// Reading the body.
    pub body: Duration,
    /// From the plan's last step until the sink confirmed.
    pub sink: Duration,
}

/// What an exchange came to.
#[derive(Debug)]
pub enum Exchange {
    /// No request head was written: leave was not given in time. The item asks anew.
    NotSent,
    /// An answer was read whole.
    Answered(Answer),
    /// It failed.
    Failed(Happened),
}

/// Leave to write one request head, asked for at the last moment.
#[async_trait]
pub trait Leave: Send {
    /// Waits for the slot when it is near. `false`: not now; write nothing.
    async fn to_write(&mut self) -> bool;

    /// When it was given; `None`: it does not matter when the head leaves.
    fn given(&self) -> Option<Given> {
        None
    }

    /// The head has only now begun to leave, later than it was given leave for.
    fn left_late(&mut self) {}
}

/// When leave was given.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// When we had it.
    pub at: Instant,
    /// How long before that it may have been decided.
    pub decided_before: Duration,
}

/// The web, as the pipeline sees it: the real one, or a simulated one in tests.
#[async_trait]
pub trait Web: Send + Sync {
    /// Connects, asks for leave, writes the request, and reads the answer within the limits.
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn Leave,
        phases: &mut Phases,
    ) -> Exchange;
}
