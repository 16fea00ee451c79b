//! Requests and responses: the types that plans and the HTTP client share.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
pub use http::Method;
use tokio::time::Instant;

use crate::budget::Share;

/// A request from a plan.
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
    /// Whether robots.txt applies. It does not apply to itself, to an archive or to a webhook.
    pub obeys_robots: bool,
    /// Read only this much of the body. A longer body is not an error.
    pub enough_bytes: Option<usize>,
    /// Read the body only if the response has this status.
    pub wanted_status: Option<u16>,
    /// Timeouts for this request.
    pub timeouts: Timeouts,
}

/// The `Accept` of those who want Markdown: sites that have their pages as Markdown, too, may send that.
pub const PREFER_MARKDOWN: &str =
    "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, */*;q=0.5";

/// The timeouts of a request; `None` for the client's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// For the name lookup, connecting and the TLS handshake together.
    pub connect: Option<Duration>,
    /// For the whole request.
    pub request: Option<Duration>,
}

impl Request {
    /// Whether to read the body of a response with this status.
    pub fn wants_body_of(&self, status: u16) -> bool {
        self.method != Method::HEAD && self.wanted_status.is_none_or(|wanted| wanted == status)
    }

    /// A request for a page, which obeys robots.txt.
    pub fn page(url: WebUrl) -> Request {
        Request {
            url,
            method: Method::GET,
            body: Bytes::new(),
            headers: Vec::new(),
            obeys_robots: true,
            enough_bytes: None,
            wanted_status: None,
            timeouts: Timeouts::default(),
        }
    }

    /// A request to which robots.txt does not apply.
    pub fn ungoverned(url: WebUrl) -> Request {
        Request { obeys_robots: false, ..Request::page(url) }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.headers.push((name, value.into()));
        self
    }

    /// Limits how much of the body is read.
    pub fn with_enough(mut self, bytes: usize) -> Request {
        self.enough_bytes = Some(bytes);
        self
    }

    /// Reads the body only if the response has this status.
    pub fn with_wanted_status(mut self, status: u16) -> Request {
        self.wanted_status = Some(status);
        self
    }

    /// Sets the method.
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

/// A response that was read completely, or as far as requested, within all limits.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The headers as received.
    pub headers: http::HeaderMap,
    /// The decoded body; for a range request, the body as received.
    pub body: Bytes,
    /// The body's share of the byte budget of all bodies. It is returned when this is dropped.
    pub share: Share,
    /// Details of the exchange, for archives.
    pub wire: Box<Wire>,
}

/// Details of an exchange besides the response itself.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// The version of HTTP that was used.
    pub version: http::Version,
    /// The address of the server, if there was a connection.
    pub peer: Option<IpAddr>,
    /// The request headers as sent.
    pub request_headers: http::HeaderMap,
}

impl Answer {
    /// The value of a header, if it exists and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The raw `Location` of a redirect.
    pub fn redirect(&self) -> Option<&str> {
        matches!(self.status, 301 | 302 | 303 | 307 | 308).then(|| self.header("location"))?
    }
}

/// The outcome of a request, for its plan.
#[derive(Debug)]
pub struct Outcome {
    /// Whether a request was sent, or at least attempted.
    pub was_sent: bool,
    /// What happened.
    pub happened: FetchOutcome,
    /// The response, if there was one, also for 4xx and 5xx.
    pub answer: Option<Answer>,
    /// The server's `Retry-After`.
    pub retry_after: Option<Duration>,
    /// Why the request was sent or not.
    pub why: Why,
    /// How long each phase took.
    pub phases: Phases,
}

impl Outcome {
    /// The outcome if the gate refused to send the request.
    pub fn unsent(happened: FetchOutcome, why: Why) -> Outcome {
        let answer = None;
        let retry_after = None;
        let phases = Phases::default();
        Outcome { was_sent: false, happened, answer, retry_after, why, phases }
    }
}

/// What the gate based its decision on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why {
    /// The robots.txt rule that decided, with its line: `line 3: Disallow: /private/`.
    pub robots: Option<String>,
    /// The interval between requests to the site.
    pub interval: Duration,
    /// The origin of that interval.
    pub interval_source: &'static str,
    /// When the site last served a page, as far as the store knows.
    pub site_last_served: Option<Time>,
    /// What delayed it until its deadline passed, as text.
    pub held_up_by: Option<String>,
}

/// How long each phase of a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// In the store, from acceptance until the job was taken.
    pub queued: Duration,
    /// Waiting for the site's robots.txt.
    pub robots: Duration,
    /// Waiting for the site's slot, and for room under the limit on requests in flight.
    pub slot: Duration,
    /// The part of `slot` in which the site's slot had come, but the limit on requests in flight was reached.
    pub place: Duration,
    /// The name lookup, connecting and the TLS handshake. Zero on a reused connection.
    pub connect: Duration,
    /// From the request head to the response head.
    pub first_byte: Duration,
    /// Reading the body.
    pub body: Duration,
    /// From the last step of the plan until the sink confirmed.
    pub sink: Duration,
}

/// The result of an exchange.
#[derive(Debug)]
pub enum Exchange {
    /// No request was sent: permission did not come in time, or a reused connection had died. The caller asks again.
    NotSent,
    /// A response was read.
    Answered(Answer),
    /// The exchange failed.
    Failed(FetchOutcome),
}

/// Permission to write one request head, requested at the last moment.
#[async_trait]
pub trait SendPermit: Send {
    /// Waits for the slot if it is near. Returns `false` if the head must not be written now.
    async fn to_write(&mut self) -> bool;

    /// When permission was given; `None` if the time of the write does not matter.
    fn given(&self) -> Option<PermitTime> {
        None
    }

    /// Called if the head was written later than permitted.
    fn left_late(&mut self) {}
}

/// When permission was given.
#[derive(Clone, Copy, Debug)]
pub struct PermitTime {
    /// When we received it.
    pub at: Instant,
    /// How long before that the decision may have been made.
    pub decided_before: Duration,
    /// A head that would leave later than this after `at` is not written, because the next head could follow too
    /// closely.
    pub in_time: Duration,
}

/// The web as seen by the pipeline: the real one, or a simulated one in tests.
#[async_trait]
pub trait Web: Send + Sync {
    /// Connects, asks for permission, writes the request, and reads the response within the limits.
    async fn exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange;
}
