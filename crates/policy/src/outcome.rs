//! What happened to a request, and who is to blame: the left half of the contract's table.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::site::Mark;
use crate::time::Time;

/// What happened, in the end, to a URL. Redirects that were followed are not in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The server answered with this status, and the answer was read whole.
    Answered(u16),
    /// robots.txt disallows it.
    RobotsDisallow,
    /// No connection, or it broke.
    Network(NetworkFault),
    /// It took too long.
    TimedOut(Phase),
    /// The answer went over a limit or made no sense.
    BadAnswer(AnswerFault),
    /// The address guard refused: what and why.
    Refused(String),
    /// The caller's deadline passed before there was an answer.
    DeadlinePassed,
    /// The site was down, or could not be asked for its robots.txt, for longer than we wait.
    SiteStayedDown {
        /// Since when.
        since: Time,
        /// How the last request failed, if this process sent it.
        last_failure: Option<String>,
    },
    /// The site was down, and as many of its probes failed as the URL had attempts left.
    ProbesFailed {
        /// How many failed while the URL waited.
        count: u32,
        /// How the last one failed.
        last: SiteFault,
    },
    /// We must wait longer before the next request than we would wait for a site that is down.
    WaitTooLong {
        /// What caused the wait.
        asked_by: WaitAskedBy,
        /// How long the wait would be.
        wait: Duration,
        /// How long we wait at most.
        most: Duration,
    },
    /// The host's name does not exist, and the host never answered before: the URL is wrong. Only where
    /// a command wants to know the two apart; elsewhere it is a failure of the site, as every name that
    /// can't be looked up.
    NoSuchHost,
    /// We stopped, or lacked something of our own; the URL and the site are innocent.
    OurFault(String),
}

/// How a site failed, in as little as a store needs to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteFault {
    /// No connection, or it broke.
    Network,
    /// It took too long.
    TimedOut,
    /// It answered with this status.
    Answered(u16),
}

/// How a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// No address was found for the name.
    Dns(NameFault),
    /// Nobody listens, or there is no way there.
    ConnectRefused,
    /// The TLS handshake failed.
    Tls(TlsFault),
    /// The connection broke before the answer was whole.
    Reset,
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate is past its time.
    Expired,
    /// The certificate's time has not come.
    NotYetValid,
    /// The certificate is for other names.
    WrongName,
    /// Nobody whom we trust signed the certificate.
    UnknownIssuer,
    /// Something else is wrong with the certificate.
    BadCertificate,
    /// What answers does not speak TLS.
    NotTls,
    /// The handshake was refused, or broke off.
    Handshake,
}

/// How a site asks us to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitAskedBy {
    /// A `Retry-After` header.
    RetryAfter,
    /// A 429, or a `Retry-After`. The site's state does not tell which: after a 429 without the header the wait is our
    /// own back-off.
    Penalty,
    /// The `Crawl-delay` of its robots.txt.
    CrawlDelay,
}

/// Why no address was found for a name, from the surest to the least sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameFault {
    /// There is no such name (NXDOMAIN).
    NoSuchName,
    /// The name is there, without an address.
    NoAddress,
    /// It has more addresses than a web site has.
    TooManyAddresses,
    /// The name server said that it failed or refuses.
    ServerFailed,
    /// The name server's answer can't be read, or leads round in a circle.
    Nonsense,
    /// No name server answered in time.
    TimedOut,
    /// There is no name server, or no way to it.
    NoServer,
    /// We lack what it takes to ask: descriptors, memory, local ports.
    Ours,
}

/// Where the time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking up the name, connecting, or the TLS handshake.
    Connect,
    /// Between two pieces of a body.
    Read,
    /// The whole request, the wait for its first byte included.
    Total,
}

/// What was wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFault {
    /// What came back is not HTTP, or breaks its rules.
    NotHttp,
    /// The body is larger than allowed.
    TooLarge,
    /// The body inflates beyond the allowed ratio.
    Bomb,
    /// The headers are larger than allowed.
    HeadersTooLarge,
    /// The content encoding is unknown or corrupt.
    BadEncoding,
    /// More redirects than allowed.
    TooManyRedirects,
    /// A redirect without a usable target.
    BadRedirect,
    /// The body consists of more compressed frames than allowed.
    TooManyFrames,
    /// Reading the page took longer than allowed.
    TookTooLong,
}

/// Who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nobody: it went well, or was not to be fetched.
    Nobody,
    /// The site is down or overloaded; the URL is innocent.
    Site,
    /// We were too fast for the site.
    Pace,
    /// This URL.
    Url,
    /// Whoever asked for it.
    Caller,
    /// This program.
    Us,
}

impl Happened {
    /// Who is to blame.
    pub fn blame(&self) -> Blame {
        match self {
            Happened::Answered(200..=299 | 304) | Happened::RobotsDisallow => Blame::Nobody,
            Happened::Answered(429) => Blame::Pace,
            Happened::Answered(502..=504) => Blame::Site,
            Happened::Answered(_) | Happened::BadAnswer(_) => Blame::Url,
            Happened::Network(_) | Happened::TimedOut(_) => Blame::Site,
            Happened::SiteStayedDown { .. }
            | Happened::ProbesFailed { .. }
            | Happened::WaitTooLong { .. } => Blame::Site,
            Happened::NoSuchHost => Blame::Url,
            Happened::Refused(_) => Blame::Caller,
            Happened::DeadlinePassed => Blame::Nobody,
            Happened::OurFault(_) => Blame::Us,
        }
    }

    /// What the site's breaker and pace are to learn from it.
    pub fn mark(&self) -> Mark {
        match self {
            Happened::Answered(200..=299 | 304) => Mark::Served,
            Happened::Answered(429) => Mark::Limited,
            Happened::Answered(500..=599) | Happened::Network(_) | Happened::TimedOut(_) => {
                Mark::Failed
            }
            _ => Mark::Neutral,
        }
    }

    /// What a probe's result means. A probe tests whether the site can be reached, not whether it supports
    /// HEAD: any answer but a 5xx means that it is up, and so does 501 (not implemented).
    pub fn probe_mark(&self) -> Mark {
        match self {
            Happened::Answered(501) => Mark::ProbeAnswered,
            Happened::Answered(status @ 500..=599) => {
                Mark::ProbeFailed(SiteFault::Answered(*status))
            }
            Happened::Network(_) => Mark::ProbeFailed(SiteFault::Network),
            Happened::TimedOut(_) => Mark::ProbeFailed(SiteFault::TimedOut),
            _ => Mark::ProbeAnswered,
        }
    }

    /// The status code, when there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Happened::Answered(status)
            | Happened::ProbesFailed { last: SiteFault::Answered(status), .. } => Some(*status),
            _ => None,
        }
    }

    /// Failed probes of the site that counted as attempts of the URL.
    pub fn failed_probes(&self) -> u32 {
        match self {
            Happened::ProbesFailed { count, .. } => *count,
            _ => 0,
        }
    }
}

/// The reason, in words for people.
impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happened::Answered(status) => write!(f, "the server answered {status}"),
            Happened::RobotsDisallow => f.write_str("robots.txt disallows it"),
            Happened::Network(fault) => f.write_str(fault.in_words()),
            Happened::TimedOut(phase) => f.write_str(phase.in_words()),
            Happened::BadAnswer(fault) => f.write_str(fault.in_words()),
            Happened::Refused(why) => write!(f, "refused: {why}"),
            Happened::DeadlinePassed => f.write_str("its deadline passed"),
            Happened::SiteStayedDown { last_failure: None, .. } => {
                f.write_str("the site stayed down")
            }
            Happened::SiteStayedDown { last_failure: Some(failure), .. } => {
                write!(f, "the site stayed down: {failure}")
            }
            Happened::ProbesFailed { count, last } => {
                write!(f, "the site is down: failed probes: {count}, the last one: {last}")
            }
            Happened::WaitTooLong { asked_by, wait, most } => write!(
                f,
                "the next request to this site must wait {:.0} s ({}), which is longer than \
                 --give-up-after ({} s)",
                wait.as_secs_f64(),
                asked_by.in_words(),
                most.as_secs_f64()
            ),
            Happened::NoSuchHost => f.write_str(NameFault::NoSuchName.in_words()),
            Happened::OurFault(why) => write!(f, "not fetched, by no fault of the site: {why}"),
        }
    }
}

impl fmt::Display for SiteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SiteFault::Network => f.write_str("no connection, or it broke"),
            SiteFault::TimedOut => f.write_str("no answer in time"),
            SiteFault::Answered(status) => write!(f, "the server answered {status}"),
        }
    }
}

impl NetworkFault {
    fn in_words(self) -> &'static str {
        match self {
            NetworkFault::Dns(fault) => fault.in_words(),
            NetworkFault::ConnectRefused => "the connection was refused",
            NetworkFault::Tls(fault) => fault.in_words(),
            NetworkFault::Reset => "the connection broke",
        }
    }
}

/// The reason, in words for people.
impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_words())
    }
}

impl TlsFault {
    fn in_words(self) -> &'static str {
        match self {
            TlsFault::Expired => "the TLS handshake failed: the certificate has expired",
            TlsFault::NotYetValid => {
                "the TLS handshake failed: the certificate is not valid yet, by this machine's clock"
            }
            TlsFault::WrongName => "the TLS handshake failed: the certificate is for another name",
            TlsFault::UnknownIssuer => {
                "the TLS handshake failed: the certificate's issuer is unknown (self-signed, or an \
                 authority that is not trusted); see http.extra_ca_file"
            }
            TlsFault::BadCertificate => {
                "the TLS handshake failed: the certificate is not acceptable"
            }
            TlsFault::NotTls => "the TLS handshake failed: the server does not speak TLS there",
            TlsFault::Handshake => {
                "the TLS handshake failed: the server refused it or broke it off"
            }
        }
    }
}

impl WaitAskedBy {
    fn in_words(self) -> &'static str {
        match self {
            WaitAskedBy::RetryAfter => "Retry-After",
            WaitAskedBy::Penalty => "429 or Retry-After",
            WaitAskedBy::CrawlDelay => "Crawl-delay",
        }
    }
}

impl NameFault {
    fn in_words(self) -> &'static str {
        match self {
            NameFault::NoSuchName => "the name could not be resolved: it does not exist",
            NameFault::NoAddress => "the name could not be resolved: it has no address",
            NameFault::TooManyAddresses => {
                "the name could not be resolved: it has more addresses than a web site has"
            }
            NameFault::ServerFailed => {
                "the name could not be resolved: the name server failed or refuses to answer"
            }
            NameFault::Nonsense => {
                "the name could not be resolved: the name server's answer makes no sense"
            }
            NameFault::TimedOut => {
                "the name could not be resolved: no name server answered within dns.timeout"
            }
            NameFault::NoServer => {
                "the name could not be resolved: no name server can be reached; \
                 see dns.servers, or /etc/resolv.conf"
            }
            NameFault::Ours => {
                "no name can be looked up: this process is out of open files, memory or local ports"
            }
        }
    }
}

impl Phase {
    fn in_words(self) -> &'static str {
        match self {
            Phase::Connect => "connecting took too long",
            Phase::Read => "the server was silent for too long",
            Phase::Total => "the request took too long",
        }
    }
}

impl AnswerFault {
    fn in_words(self) -> &'static str {
        match self {
            AnswerFault::NotHttp => "the answer is not HTTP, or breaks its rules",
            AnswerFault::TooLarge => "the body is larger than http.max_body",
            AnswerFault::Bomb => "the body inflates beyond http.max_ratio",
            AnswerFault::HeadersTooLarge => "the headers are larger than http.max_headers",
            AnswerFault::BadEncoding => "the content encoding is unknown or corrupt",
            AnswerFault::TooManyRedirects => "more redirects than http.max_redirects",
            AnswerFault::BadRedirect => "a redirect without a usable target",
            AnswerFault::TooManyFrames => {
                "the body has more compressed frames than http.max_frames"
            }
            AnswerFault::TookTooLong => "reading the page took longer than extract.max_time",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contracts_table_row_by_row() {
        use Blame::*;
        let rows: &[(Happened, Blame, Mark)] = &[
            (Happened::Answered(200), Nobody, Mark::Served),
            (Happened::Answered(204), Nobody, Mark::Served),
            (Happened::RobotsDisallow, Nobody, Mark::Neutral),
            (Happened::Network(NetworkFault::ConnectRefused), Site, Mark::Failed),
            (Happened::Network(NetworkFault::Dns(NameFault::NoSuchName)), Site, Mark::Failed),
            (Happened::Network(NetworkFault::Tls(TlsFault::Expired)), Site, Mark::Failed),
            (Happened::Network(NetworkFault::Reset), Site, Mark::Failed),
            (Happened::TimedOut(Phase::Connect), Site, Mark::Failed),
            (Happened::TimedOut(Phase::Read), Site, Mark::Failed),
            (Happened::Answered(502), Site, Mark::Failed),
            (Happened::Answered(503), Site, Mark::Failed),
            (Happened::Answered(504), Site, Mark::Failed),
            (Happened::Answered(429), Pace, Mark::Limited),
            (Happened::Answered(500), Url, Mark::Failed),
            (Happened::Answered(501), Url, Mark::Failed),
            (Happened::Answered(599), Url, Mark::Failed),
            (Happened::Answered(403), Url, Mark::Neutral),
            (Happened::Answered(408), Url, Mark::Neutral),
            (Happened::Answered(425), Url, Mark::Neutral),
            (Happened::Answered(404), Url, Mark::Neutral),
            (Happened::Answered(410), Url, Mark::Neutral),
            (Happened::BadAnswer(AnswerFault::NotHttp), Url, Mark::Neutral),
            (Happened::BadAnswer(AnswerFault::TooLarge), Url, Mark::Neutral),
            (Happened::BadAnswer(AnswerFault::TooManyRedirects), Url, Mark::Neutral),
            (Happened::BadAnswer(AnswerFault::TookTooLong), Url, Mark::Neutral),
            (Happened::OurFault(String::new()), Us, Mark::Neutral),
            (Happened::Refused(String::new()), Caller, Mark::Neutral),
            (Happened::DeadlinePassed, Nobody, Mark::Neutral),
            (Happened::ProbesFailed { count: 3, last: SiteFault::Network }, Site, Mark::Neutral),
            (Happened::NoSuchHost, Url, Mark::Neutral),
            (wait_too_long(WaitAskedBy::RetryAfter), Site, Mark::Neutral),
        ];
        for (happened, blame, mark) in rows {
            assert_eq!((happened.blame(), happened.mark()), (*blame, *mark), "{happened:?}");
        }
    }

    fn wait_too_long(asked_by: WaitAskedBy) -> Happened {
        let wait = Duration::from_secs(3_600);
        Happened::WaitTooLong { asked_by, wait, most: Duration::from_secs(600) }
    }

    #[test]
    fn a_wait_that_is_too_long_says_who_asks_for_it_and_how_long_it_is() {
        for (asked_by, name) in [
            (WaitAskedBy::RetryAfter, "(Retry-After)"),
            (WaitAskedBy::Penalty, "(429 or Retry-After)"),
            (WaitAskedBy::CrawlDelay, "(Crawl-delay)"),
        ] {
            let reason = wait_too_long(asked_by).to_string();
            for part in ["3600 s", name, "--give-up-after (600 s)"] {
                assert!(reason.contains(part), "{reason}");
            }
        }
    }

    #[test]
    fn every_status_is_classified() {
        for status in 0..=u16::MAX {
            let happened = Happened::Answered(status);
            let served = (200..300).contains(&status) || status == 304;
            assert_eq!(happened.blame() == Blame::Nobody, served, "{status}");
            assert_eq!(happened.mark() == Mark::Served, served, "{status}");
            let five_hundreds = (500..600).contains(&status);
            assert_eq!(happened.mark() == Mark::Failed, five_hundreds, "{status}");
            let fails_a_probe = five_hundreds && status != 501;
            let probed = match fails_a_probe {
                true => Mark::ProbeFailed(SiteFault::Answered(status)),
                false => Mark::ProbeAnswered,
            };
            assert_eq!(happened.probe_mark(), probed, "{status}");
        }
    }

    #[test]
    fn a_probe_fails_by_the_fault_that_is_kept_of_it() {
        let refused = Happened::Network(NetworkFault::ConnectRefused);
        assert_eq!(refused.probe_mark(), Mark::ProbeFailed(SiteFault::Network));
        let silent = Happened::TimedOut(Phase::Read);
        assert_eq!(silent.probe_mark(), Mark::ProbeFailed(SiteFault::TimedOut));
        for up in [405, 501].map(Happened::Answered) {
            assert_eq!(up.probe_mark(), Mark::ProbeAnswered, "{up:?}");
        }
        let down = Happened::ProbesFailed { count: 3, last: SiteFault::Answered(503) };
        assert_eq!((down.status(), down.failed_probes()), (Some(503), 3));
    }
}
