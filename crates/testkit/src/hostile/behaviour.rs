//! A hostile behaviour, and the outcomes of a good client.

use fetchwell_engine::web::Method;
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome, NetworkFault};

use super::certificates::Identity;
use super::step::HostileStep;

/// A hostile behaviour.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Its name, which is also a valid host name.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// The transport.
    pub over: Over,
    /// The method of the request that triggers it.
    pub method: Method,
    /// The script of each connection.
    pub script: Vec<HostileStep>,
    /// The outcomes that a good client may have.
    pub good: Vec<Good>,
}

/// The transport of a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both TCP and TLS with a good certificate: the outcome is the same.
    Either,
    /// TLS with this certificate, for HTTP/1.
    Tls(Identity),
    /// TLS with a good certificate, for HTTP/2.
    Http2,
    /// TCP although the client expects TLS.
    NoTls,
}

/// An acceptable outcome of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Good {
    /// 200 with exactly this body.
    Page(&'static [u8]),
    /// A response with this status and any body.
    Status(u16),
    /// The connection failed; attributed to the site.
    Network(NetworkFault),
    /// A timeout; attributed to the site.
    TimedOut,
    /// The response is bad; attributed to the URL.
    BadAnswer(AnswerFault),
    /// It leads to a forbidden destination.
    Refused,
}

impl Good {
    /// Whether this matches the outcome. `body` is that of the response, if there is one.
    pub fn is(self, happened: &FetchOutcome, body: &[u8]) -> bool {
        match (self, happened) {
            (Good::Page(page), FetchOutcome::Answered(200)) => page == body,
            (Good::Status(status), FetchOutcome::Answered(answered)) => status == *answered,
            (Good::Network(fault), FetchOutcome::Network(failed)) => fault == *failed,
            (Good::BadAnswer(fault), FetchOutcome::BadAnswer(found)) => fault == *found,
            (Good::TimedOut, FetchOutcome::TimedOut(_))
            | (Good::Refused, FetchOutcome::Refused(_)) => true,
            _ => false,
        }
    }
}

impl Behaviour {
    /// Whether a timeout is a good outcome. Other behaviours get long limits, because on a busy machine a short one
    /// could run out before the expected outcome.
    pub fn may_time_out(&self) -> bool {
        self.good.contains(&Good::TimedOut)
    }

    /// Over TCP or TLS.
    pub(super) fn new(
        name: &'static str,
        does: &'static str,
        script: Vec<HostileStep>,
    ) -> Behaviour {
        let over = Over::Either;
        let method = Method::GET;
        let good = Vec::new();
        Behaviour { name, does, over, method, script, good }
    }

    /// Reads the request, writes this, and closes the connection.
    pub(super) fn says(name: &'static str, does: &'static str, says: impl Into<Vec<u8>>) -> Self {
        Behaviour::new(name, does, vec![HostileStep::Read, HostileStep::Write(says.into())])
    }

    /// Reads the request, writes this, and then runs a step.
    pub(super) fn begins(
        name: &'static str,
        does: &'static str,
        says: impl Into<Vec<u8>>,
        then: HostileStep,
    ) -> Behaviour {
        Behaviour::new(name, does, vec![HostileStep::Read, HostileStep::Write(says.into()), then])
    }

    pub(super) fn over(mut self, over: Over) -> Behaviour {
        self.over = over;
        self
    }

    pub(super) fn asked_by(mut self, method: Method) -> Behaviour {
        self.method = method;
        self
    }

    pub(super) fn good<const N: usize>(mut self, good: [Good; N]) -> Behaviour {
        self.good.extend(good);
        self
    }

    pub(super) fn page(self, body: &'static [u8]) -> Behaviour {
        self.good([Good::Page(body)])
    }

    pub(super) fn status(self, status: u16) -> Behaviour {
        self.good([Good::Status(status)])
    }

    pub(super) fn bad(self, fault: AnswerFault) -> Behaviour {
        self.good([Good::BadAnswer(fault)])
    }

    pub(super) fn fails(self, fault: NetworkFault) -> Behaviour {
        self.good([Good::Network(fault)])
    }

    pub(super) fn times_out(self) -> Behaviour {
        self.good([Good::TimedOut])
    }
}
