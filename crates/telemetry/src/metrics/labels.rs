//! The values of labels: a fixed set of words, never a site, a URL or a caller.

use fetchwell_engine::pipeline::Purpose;
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault};

use crate::registry::Labels;

/// Defines an enum whose variants are the values of a label.
macro_rules! words {
    ($(#[$about:meta])* $name:ident = $label:literal { $($(#[$meaning:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$meaning])* $value,)* }

        impl $name {
            /// The value of the label.
            pub fn word(self) -> &'static str {
                match self { $($name::$value => $word,)* }
            }
        }

        impl Labels for $name {
            const NAMES: &'static [&'static str] = &[$label];

            fn all() -> Vec<$name> {
                vec![$($name::$value,)*]
            }

            fn values(self) -> Vec<&'static str> {
                vec![self.word()]
            }
        }
    };
}

words! {
    /// The command, or the part of a command, that fetches.
    DoorName = "door" {
        /// `fetchwell fetch`.
        Fetch = "fetch",
        /// `fetchwell crawl`.
        Crawl = "crawl",
        /// The messages of `fetchwell serve`.
        Serve = "serve",
        /// The webhooks of `fetchwell serve`.
        Webhooks = "webhooks",
        /// `fetchwell pages`.
        Pages = "pages",
        /// The sitemaps of `fetchwell schedule`.
        Sitemaps = "sitemaps",
        /// `fetchwell feeds`.
        Feeds = "feeds",
        /// `fetchwell articles`.
        Articles = "articles",
        /// `fetchwell commoncrawl batch`.
        Batch = "commoncrawl_batch",
        /// `fetchwell commoncrawl work`.
        Work = "commoncrawl_work",
        /// Single requests of `explain`, `feeds test`, `commoncrawl find` and `get`.
        Errand = "errand",
    }
}

words! {
    /// How a lease ended.
    EndingLabel = "outcome" {
        /// There is a result.
        Done = "done",
        /// The page must not be fetched.
        Skipped = "skipped",
        /// It is retried later.
        Retried = "retried",
        /// It was given up.
        Dead = "dead",
        /// It was handed back unchanged.
        HandedBack = "handed_back",
    }
}

impl EndingLabel {
    /// The outcome of a settlement.
    pub fn of(settlement: &Settlement) -> EndingLabel {
        match settlement {
            Settlement::Done => EndingLabel::Done,
            Settlement::Skipped => EndingLabel::Skipped,
            Settlement::Retry { .. } => EndingLabel::Retried,
            Settlement::Dead { .. } => EndingLabel::Dead,
            Settlement::HandBack { .. } => EndingLabel::HandedBack,
        }
    }
}

words! {
    /// The class of a response status.
    StatusClass = "status_class" {
        /// An invalid status such as 99 or 600. Interim responses are never counted.
        Other = "other",
        /// 2xx.
        Success = "2xx",
        /// 3xx.
        Redirect = "3xx",
        /// 4xx.
        ClientError = "4xx",
        /// 5xx.
        ServerError = "5xx",
        /// There was no response.
        NoAnswer = "none",
    }
}

impl StatusClass {
    /// The status class of a request.
    pub fn of(happened: &FetchOutcome) -> StatusClass {
        match happened.status() {
            None => StatusClass::NoAnswer,
            Some(200..=299) => StatusClass::Success,
            Some(300..=399) => StatusClass::Redirect,
            Some(400..=499) => StatusClass::ClientError,
            Some(500..=599) => StatusClass::ServerError,
            Some(_) => StatusClass::Other,
        }
    }
}

impl Labels for (Purpose, StatusClass) {
    const NAMES: &'static [&'static str] = &["kind", "status_class"];

    fn all() -> Vec<(Purpose, StatusClass)> {
        let of =
            |purpose: Purpose| StatusClass::all().into_iter().map(move |status| (purpose, status));
        Purpose::ALL.into_iter().flat_map(of).collect()
    }

    fn values(self) -> Vec<&'static str> {
        let (purpose, status) = self;
        vec![purpose_word(purpose), status.word()]
    }
}

/// The purpose of a request as the value of a label.
pub(crate) fn purpose_word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Page => "page",
        Purpose::Robots => "robots",
        Purpose::Probe => "probe",
    }
}

words! {
    /// Why a request failed.
    FailureLabel = "reason" {
        /// 429.
        RateLimited = "rate_limited",
        /// Any other 4xx.
        ClientError = "client_error",
        /// 5xx.
        ServerError = "server_error",
        /// The name could not be resolved.
        Dns = "dns",
        /// The connection was refused, or the host is unreachable.
        Connect = "connect",
        /// The TLS handshake failed.
        Tls = "tls",
        /// The connection broke.
        Reset = "reset",
        /// It took too long.
        Timeout = "timeout",
        /// The response exceeded a limit or was invalid.
        BadAnswer = "bad_answer",
        /// The address guard refused it.
        Refused = "refused",
        /// The program itself failed.
        Ours = "ours",
    }
}

impl FailureLabel {
    /// The failure of a request; `None` if it succeeded or was never sent.
    pub fn of(happened: &FetchOutcome) -> Option<FailureLabel> {
        match happened {
            FetchOutcome::Answered(429) => Some(FailureLabel::RateLimited),
            FetchOutcome::Answered(400..=499) => Some(FailureLabel::ClientError),
            FetchOutcome::Answered(500..) => Some(FailureLabel::ServerError),
            FetchOutcome::Network(NetworkFault::Dns(_)) | FetchOutcome::NoSuchHost => {
                Some(FailureLabel::Dns)
            }
            FetchOutcome::Network(NetworkFault::ConnectRefused) => Some(FailureLabel::Connect),
            FetchOutcome::Network(NetworkFault::Tls(_)) => Some(FailureLabel::Tls),
            FetchOutcome::Network(NetworkFault::Reset) => Some(FailureLabel::Reset),
            FetchOutcome::TimedOut(_) => Some(FailureLabel::Timeout),
            FetchOutcome::BadAnswer(_) => Some(FailureLabel::BadAnswer),
            FetchOutcome::Refused(_) => Some(FailureLabel::Refused),
            FetchOutcome::OurFault(_) => Some(FailureLabel::Ours),
            FetchOutcome::Answered(_)
            | FetchOutcome::RobotsDisallow
            | FetchOutcome::DeadlinePassed
            | FetchOutcome::SiteStayedDown { .. }
            | FetchOutcome::ProbesFailed { .. }
            | FetchOutcome::WaitTooLong { .. } => None,
        }
    }
}

words! {
    /// Why a call to the store failed.
    StoreTrouble = "reason" {
        /// The store cannot be reached, or is busy.
        Unavailable = "unavailable",
        /// The store holds invalid data.
        Damaged = "damaged",
        /// The store cannot be used: wrong version, wrong schema or missing permissions.
        Unfit = "unfit",
        /// The data is too large for the store.
        TooLarge = "too_large",
        /// The program made an invalid call.
        Bug = "bug",
    }
}

impl StoreTrouble {
    /// The reason of a store error.
    pub fn of(fault: &StoreError) -> StoreTrouble {
        match fault.kind() {
            StoreErrorKind::Transient => StoreTrouble::Unavailable,
            StoreErrorKind::Corrupt => StoreTrouble::Damaged,
            StoreErrorKind::Incompatible => StoreTrouble::Unfit,
            StoreErrorKind::TooLarge => StoreTrouble::TooLarge,
            StoreErrorKind::Bug => StoreTrouble::Bug,
        }
    }
}
