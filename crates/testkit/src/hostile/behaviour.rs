//! One way to be hostile, and what a good client makes of it.

use fetchwell_engine::web::Method;
use fetchwell_policy::outcome::{AnswerFault, Happened, NetworkFault};

use super::certificates::Identity;
use super::step::Step;

/// One way to be hostile.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Its name, fit for a host name.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// What it speaks over.
    pub over: Over,
    /// How it must be asked to show itself.
    pub method: Method,
    /// What it does on each connection.
    pub script: Vec<Step>,
    /// What a good client makes of it: one of these.
    pub good: Vec<Good>,
}

/// What a behaviour speaks over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// TCP, and TLS with a good certificate likewise: the outcome is the same.
    Either,
    /// TLS with this certificate, for HTTP/1.
    Tls(Identity),
    /// TLS with a good certificate, for HTTP/2.
    Http2,
    /// TCP where the client expects TLS.
    NoTls,
}

/// An outcome that a good client may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Good {
    /// 200 with exactly this body.
    Page(&'static [u8]),
    /// An answer with this status, whatever its body.
    Status(u16),
    /// The connection failed; blamed on the site.
    Network(NetworkFault),
    /// Some time ran out; blamed on the site.
    TimedOut,
    /// The answer is bad; blamed on the URL.
    BadAnswer(AnswerFault),
    /// It leads where we do not go.
    Refused,
}

impl Good {
    /// Whether this is what happened. `body` is that of the answer, if there was one.
    pub fn is(self, happened: &Happened, body: &[u8]) -> bool {
        match (self, happened) {
            (Good::Page(page), Happened::Answered(200)) => page == body,
            (Good::Status(status), Happened::Answered(answered)) => status == *answered,
            (Good::Network(fault), Happened::Network(failed)) => fault == *failed,
            (Good::BadAnswer(fault), Happened::BadAnswer(found)) => fault == *found,
            (Good::TimedOut, Happened::TimedOut(_)) | (Good::Refused, Happened::Refused(_)) => true,
            _ => false,
        }
    }
}

impl Behaviour {
    /// Whether a timeout is a good outcome. Other behaviours get long limits, because on a busy machine a short one could run
    /// out before the expected outcome.
    pub fn may_time_out(&self) -> bool {
        self.good.contains(&Good::TimedOut)
    }

    /// Over TCP or TLS.
    pub(super) fn new(name: &'static str, does: &'static str, script: Vec<Step>) -> Behaviour {
        let over = Over::Either;
        let method = Method::GET;
        let good = Vec::new();
        Behaviour { name, does, over, method, script, good }
    }

    /// Reads the request, writes this, and closes the connection.
    pub(super) fn says(name: &'static str, does: &'static str, says: impl Into<Vec<u8>>) -> Self {
        Behaviour::new(name, does, vec![Step::Read, Step::Write(says.into())])
    }

    /// Reads the request, writes this, and then does that.
    pub(super) fn begins(
        name: &'static str,
        does: &'static str,
        says: impl Into<Vec<u8>>,
        then: Step,
    ) -> Behaviour {
        Behaviour::new(name, does, vec![Step::Read, Step::Write(says.into()), then])
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
