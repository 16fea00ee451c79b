//! The outcome of a request, and who is to blame: the left half of the table in the contract.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::time::Time;

/// The final outcome for a URL, with the reason as text. Followed redirects are not included.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FetchOutcome {
    /// The server answered with this status, and the response was read completely.
    #[error("the server answered {0}")]
    Answered(u16),
    /// robots.txt disallows it.
    #[error("robots.txt disallows it")]
    RobotsDisallow,
    /// The connection failed or broke.
    #[error("{0}")]
    Network(NetworkFault),
    /// A timeout expired.
    #[error("{0}")]
    TimedOut(Phase),
    /// The response exceeded a limit or was invalid.
    #[error("{0}")]
    BadAnswer(AnswerFault),
    /// The request was refused, for this reason.
    #[error("refused: {0}")]
    Refused(String),
    /// The caller's deadline passed before there was a response.
    #[error("its deadline passed")]
    DeadlinePassed,
    /// The site was down, or its robots.txt could not be read, for longer than we wait.
    #[error("the site stayed down{}", why(.last_failure.as_deref()))]
    SiteStayedDown {
        /// When the failures began.
        since: Time,
        /// Why the last request failed, if this process sent it.
        last_failure: Option<String>,
    },
    /// The site was down, and as many probes failed as the URL had attempts left.
    #[error("the site is down: failed probes: {count}, the last one: {last}")]
    ProbesFailed {
        /// The number of probes that failed while the URL waited.
        count: u32,
        /// How the last probe failed.
        last: SiteFault,
    },
    /// The wait before the next request would be longer than we wait for a site that is down.
    #[error(
        "the next request to this site must wait {:.0} s ({}), which is longer than --give-up-after ({} s)",
        .wait.as_secs_f64(),
        .asked_by.in_words(),
        .most.as_secs_f64()
    )]
    WaitTooLong {
        /// What causes the wait.
        asked_by: WaitAskedBy,
        /// How long the wait would be.
        wait: Duration,
        /// The longest wait that we accept.
        most: Duration,
    },
    /// The host name does not exist, and the host never answered before, so the URL is wrong. Only used by commands
    /// that make this distinction; otherwise it is a failure of the site, like any other failed lookup.
    #[error("{}", NameFault::NoSuchName)]
    NoSuchHost,
    /// We stopped, or ran out of a resource. Neither the URL nor the site is to blame.
    #[error("not fetched, through no fault of the site: {0}")]
    OurFault(String),
}

/// How a site failed, in a compact form for stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteFault {
    /// The connection failed or broke.
    #[error("no connection, or it broke")]
    Network,
    /// A timeout expired.
    #[error("no answer in time")]
    TimedOut,
    /// It answered with this status.
    #[error("the server answered {0}")]
    Answered(u16),
}

/// How a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NetworkFault {
    /// No address was found for the name.
    #[error("{0}")]
    Dns(NameFault),
    /// The connection was refused, or there is no route.
    #[error("the connection was refused")]
    ConnectRefused,
    /// The TLS handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Tls(TlsFault),
    /// The connection broke before the response was complete.
    #[error("the connection broke")]
    Reset,
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TlsFault {
    /// The certificate has expired.
    #[error("the certificate has expired")]
    Expired,
    /// The certificate is not valid yet.
    #[error("the certificate is not valid yet, by this machine's clock")]
    NotYetValid,
    /// The certificate is for other names.
    #[error("the certificate is for another name")]
    WrongName,
    /// The certificate was not signed by a trusted CA.
    #[error(
        "the certificate's issuer is unknown (self-signed, or an authority that is not trusted); see \
         http.extra_ca_file"
    )]
    UnknownIssuer,
    /// Something else is wrong with the certificate.
    #[error("the certificate is not acceptable")]
    BadCertificate,
    /// The server does not speak TLS.
    #[error("the server does not speak TLS there")]
    NotTls,
    /// The server refused or aborted the handshake.
    #[error("the server refused it or broke it off")]
    Handshake,
}

/// How a site requests a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitAskedBy {
    /// A `Retry-After` header.
    RetryAfter,
    /// A 429 or a `Retry-After`. The state of the site does not say which; after a 429 without the header, the wait is
    /// our own back-off.
    Penalty,
    /// The `Crawl-delay` of its robots.txt.
    CrawlDelay,
}

/// Why no address was found for a name, ordered from the most to the least certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum NameFault {
    /// The name does not exist (NXDOMAIN).
    #[error("the name could not be resolved: it does not exist")]
    NoSuchName,
    /// The name exists, but has no address.
    #[error("the name could not be resolved: it has no address")]
    NoAddress,
    /// The name has more addresses than a web site has.
    #[error("the name could not be resolved: it has more addresses than a web site has")]
    TooManyAddresses,
    /// The name server reported a failure or refused to answer.
    #[error("the name could not be resolved: the name server failed or refuses to answer")]
    ServerFailed,
    /// The name server's answer is invalid or contains a loop.
    #[error("the name could not be resolved: the name server's answer makes no sense")]
    Nonsense,
    /// No name server answered in time.
    #[error("the name could not be resolved: no name server answered within dns.timeout")]
    TimedOut,
    /// There is no name server, or it cannot be reached.
    #[error(
        "the name could not be resolved: no name server can be reached; see dns.servers, or \
         /etc/resolv.conf"
    )]
    NoServer,
    /// We are out of descriptors, memory or local ports.
    #[error("no name can be looked up: this process is out of open files, memory or local ports")]
    Ours,
}

/// The phase in which a request timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Phase {
    /// The name lookup, connecting, or the TLS handshake.
    #[error("connecting took too long")]
    Connect,
    /// Waiting for the next chunk of a body.
    #[error("the server was silent for too long")]
    Read,
    /// The whole request, including the wait for the first byte.
    #[error("the request took too long")]
    Total,
}

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AnswerFault {
    /// It is not HTTP, or violates it.
    #[error("the answer is not HTTP, or breaks its rules")]
    NotHttp,
    /// The body is larger than allowed.
    #[error("the body is larger than http.max_body")]
    TooLarge,
    /// The body inflates beyond the allowed ratio.
    #[error("the body inflates beyond http.max_ratio")]
    Bomb,
    /// The headers are larger than allowed.
    #[error("the headers are larger than http.max_headers")]
    HeadersTooLarge,
    /// The content encoding is unknown or corrupt.
    #[error("the content encoding is unknown or corrupt")]
    BadEncoding,
    /// There are more redirects than allowed.
    #[error("more redirects than http.max_redirects")]
    TooManyRedirects,
    /// A redirect has no usable target.
    #[error("a redirect without a usable target")]
    BadRedirect,
    /// The body consists of more compressed frames than allowed.
    #[error("the body has more compressed frames than http.max_frames")]
    TooManyFrames,
    /// Reading the page took longer than allowed.
    #[error("reading the page took longer than extract.max_time")]
    TookTooLong,
}

/// Who is to blame for an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nobody: the fetch succeeded, robots.txt disallows it, or its deadline passed.
    Nobody,
    /// The site, which is down or overloaded.
    Site,
    /// Our pace, which is too fast for the site.
    Pace,
    /// This URL.
    Url,
    /// The caller that requested it.
    Caller,
    /// This program.
    Us,
}

/// What the result of a request means for the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A page was served.
    Served,
    /// The site failed.
    Failed,
    /// A robots.txt that had failed before failed again. It counts as a failure, but the next page that is served is
    /// not a recovery of the site.
    RobotsFailed,
    /// The site asked for fewer requests (429).
    Limited,
    /// A response that says nothing about the site's health.
    Neutral,
    /// A probe was answered.
    ProbeAnswered,
    /// A probe failed.
    ProbeFailed(SiteFault),
    /// Not a result yet: the head was written later than its permit was spent.
    LeftLate {
        /// The latest time of the write, by the store's clock.
        by: Time,
    },
}

impl FetchOutcome {
    /// Who is to blame for it.
    pub fn blame(&self) -> Blame {
        match self {
            FetchOutcome::Answered(200..=299 | 304) | FetchOutcome::RobotsDisallow => Blame::Nobody,
            FetchOutcome::Answered(429) => Blame::Pace,
            FetchOutcome::Answered(502..=504) => Blame::Site,
            FetchOutcome::Answered(_) | FetchOutcome::BadAnswer(_) => Blame::Url,
            FetchOutcome::Network(_) | FetchOutcome::TimedOut(_) => Blame::Site,
            FetchOutcome::SiteStayedDown { .. }
            | FetchOutcome::ProbesFailed { .. }
            | FetchOutcome::WaitTooLong { .. } => Blame::Site,
            FetchOutcome::NoSuchHost => Blame::Url,
            FetchOutcome::Refused(_) => Blame::Caller,
            FetchOutcome::DeadlinePassed => Blame::Nobody,
            FetchOutcome::OurFault(_) => Blame::Us,
        }
    }

    /// What it means for the site's breaker and pace.
    pub fn mark(&self) -> Mark {
        match self {
            FetchOutcome::Answered(200..=299 | 304) => Mark::Served,
            FetchOutcome::Answered(429) => Mark::Limited,
            FetchOutcome::Answered(500..=599)
            | FetchOutcome::Network(_)
            | FetchOutcome::TimedOut(_) => Mark::Failed,
            _ => Mark::Neutral,
        }
    }

    /// What a probe's result means. A probe tests whether the site can be reached, not whether it supports
    /// HEAD: any answer but a 5xx means that it is up, and so does 501 (not implemented).
    pub fn probe_mark(&self) -> Mark {
        match self {
            FetchOutcome::Answered(501) => Mark::ProbeAnswered,
            FetchOutcome::Answered(status @ 500..=599) => {
                Mark::ProbeFailed(SiteFault::Answered(*status))
            }
            FetchOutcome::Network(_) => Mark::ProbeFailed(SiteFault::Network),
            FetchOutcome::TimedOut(_) => Mark::ProbeFailed(SiteFault::TimedOut),
            _ => Mark::ProbeAnswered,
        }
    }

    /// The status code, if there was a response.
    pub fn status(&self) -> Option<u16> {
        match self {
            FetchOutcome::Answered(status)
            | FetchOutcome::ProbesFailed { last: SiteFault::Answered(status), .. } => Some(*status),
            _ => None,
        }
    }

    /// The number of failed probes of the site that counted as attempts of the URL.
    pub fn failed_probes(&self) -> u32 {
        match self {
            FetchOutcome::ProbesFailed { count, .. } => *count,
            _ => 0,
        }
    }
}

/// The last failure of a site, to follow the text that says that it stayed down.
fn why(last_failure: Option<&str>) -> String {
    last_failure.map(|failure| format!(": {failure}")).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contracts_table_row_by_row() {
        use Blame::*;
        let rows: &[(FetchOutcome, Blame, Mark)] = &[
            (FetchOutcome::Answered(200), Nobody, Mark::Served),
            (FetchOutcome::Answered(204), Nobody, Mark::Served),
            (FetchOutcome::RobotsDisallow, Nobody, Mark::Neutral),
            (FetchOutcome::Network(NetworkFault::ConnectRefused), Site, Mark::Failed),
            (FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName)), Site, Mark::Failed),
            (FetchOutcome::Network(NetworkFault::Tls(TlsFault::Expired)), Site, Mark::Failed),
            (FetchOutcome::Network(NetworkFault::Reset), Site, Mark::Failed),
            (FetchOutcome::TimedOut(Phase::Connect), Site, Mark::Failed),
            (FetchOutcome::TimedOut(Phase::Read), Site, Mark::Failed),
            (FetchOutcome::Answered(502), Site, Mark::Failed),
            (FetchOutcome::Answered(503), Site, Mark::Failed),
            (FetchOutcome::Answered(504), Site, Mark::Failed),
            (FetchOutcome::Answered(429), Pace, Mark::Limited),
            (FetchOutcome::Answered(500), Url, Mark::Failed),
            (FetchOutcome::Answered(501), Url, Mark::Failed),
            (FetchOutcome::Answered(599), Url, Mark::Failed),
            (FetchOutcome::Answered(403), Url, Mark::Neutral),
            (FetchOutcome::Answered(408), Url, Mark::Neutral),
            (FetchOutcome::Answered(425), Url, Mark::Neutral),
            (FetchOutcome::Answered(404), Url, Mark::Neutral),
            (FetchOutcome::Answered(410), Url, Mark::Neutral),
            (FetchOutcome::BadAnswer(AnswerFault::NotHttp), Url, Mark::Neutral),
            (FetchOutcome::BadAnswer(AnswerFault::TooLarge), Url, Mark::Neutral),
            (FetchOutcome::BadAnswer(AnswerFault::TooManyRedirects), Url, Mark::Neutral),
            (FetchOutcome::BadAnswer(AnswerFault::TookTooLong), Url, Mark::Neutral),
            (FetchOutcome::OurFault(String::new()), Us, Mark::Neutral),
            (FetchOutcome::Refused(String::new()), Caller, Mark::Neutral),
            (FetchOutcome::DeadlinePassed, Nobody, Mark::Neutral),
            (
                FetchOutcome::ProbesFailed { count: 3, last: SiteFault::Network },
                Site,
                Mark::Neutral,
            ),
            (FetchOutcome::NoSuchHost, Url, Mark::Neutral),
            (wait_too_long(WaitAskedBy::RetryAfter), Site, Mark::Neutral),
        ];
        for (happened, blame, mark) in rows {
            assert_eq!((happened.blame(), happened.mark()), (*blame, *mark), "{happened:?}");
        }
    }

    fn wait_too_long(asked_by: WaitAskedBy) -> FetchOutcome {
        let wait = Duration::from_secs(3_600);
        FetchOutcome::WaitTooLong { asked_by, wait, most: Duration::from_secs(600) }
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
            let happened = FetchOutcome::Answered(status);
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
        let refused = FetchOutcome::Network(NetworkFault::ConnectRefused);
        assert_eq!(refused.probe_mark(), Mark::ProbeFailed(SiteFault::Network));
        let silent = FetchOutcome::TimedOut(Phase::Read);
        assert_eq!(silent.probe_mark(), Mark::ProbeFailed(SiteFault::TimedOut));
        for up in [405, 501].map(FetchOutcome::Answered) {
            assert_eq!(up.probe_mark(), Mark::ProbeAnswered, "{up:?}");
        }
        let down = FetchOutcome::ProbesFailed { count: 3, last: SiteFault::Answered(503) };
        assert_eq!((down.status(), down.failed_probes()), (Some(503), 3));
    }
}
