//! What may stand in a label: few words, and never a site, a URL or a caller.

use fetchwell_engine::pipeline::Purpose;
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_policy::outcome::{Happened, NetworkFault};

use crate::registry::Labels;

/// Makes an enum whose values are those of a label: each has one word for it.
macro_rules! words {
    ($(#[$about:meta])* $name:ident = $label:literal { $($(#[$meaning:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$meaning])* $value,)* }

        impl $name {
            /// As it stands in a label.
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
    /// A flow of this program.
    DoorName = "door" {
        /// `fetchwell fetch`.
        Fetch = "fetch",
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
        /// Single questions: `explain`, `feeds test`, `commoncrawl find` and `get`.
        Errand = "errand",
    }
}

words! {
    /// How a lease ended.
    Ending = "outcome" {
        /// It has its result.
        Done = "done",
        /// It was not to be fetched.
        Skipped = "skipped",
        /// It is tried again later.
        Retried = "retried",
        /// It was given up.
        Dead = "dead",
        /// It went back as it was.
        HandedBack = "handed_back",
    }
}

impl Ending {
    /// By what became of a lease.
    pub fn of(settlement: &Settlement) -> Ending {
        match settlement {
            Settlement::Done => Ending::Done,
            Settlement::Skipped => Ending::Skipped,
            Settlement::Retry { .. } => Ending::Retried,
            Settlement::Dead { .. } => Ending::Dead,
            Settlement::HandBack { .. } => Ending::HandedBack,
        }
    }
}

words! {
    /// The first digit of an answer's status.
    StatusClass = "status_class" {
        /// Interim answers never count; this is nonsense like 99 or 600.
        Other = "other",
        /// 2xx.
        Success = "2xx",
        /// 3xx.
        Redirect = "3xx",
        /// 4xx.
        ClientError = "4xx",
        /// 5xx.
        ServerError = "5xx",
        /// There was no answer.
        NoAnswer = "none",
    }
}

impl StatusClass {
    /// By what happened to a request.
    pub fn of(happened: &Happened) -> StatusClass {
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
        let purpose = match purpose {
            Purpose::Page => "page",
            Purpose::Robots => "robots",
            Purpose::Probe => "probe",
        };
        vec![purpose, status.word()]
    }
}

words! {
    /// Why a request brought nothing that is wanted.
    Failure = "reason" {
        /// 429.
        RateLimited = "rate_limited",
        /// Any other 4xx.
        ClientError = "client_error",
        /// 5xx.
        ServerError = "server_error",
        /// No address for the name.
        Dns = "dns",
        /// Nobody listens, or there is no way there.
        Connect = "connect",
        /// The TLS handshake.
        Tls = "tls",
        /// The connection broke.
        Reset = "reset",
        /// It took too long.
        Timeout = "timeout",
        /// The answer went over a limit, or made no sense.
        BadAnswer = "bad_answer",
        /// The address guard.
        Refused = "refused",
        /// The program itself.
        Ours = "ours",
    }
}

impl Failure {
    /// By what happened to a request; `None`: it went well, or was never sent.
    pub fn of(happened: &Happened) -> Option<Failure> {
        match happened {
            Happened::Answered(429) => Some(Failure::RateLimited),
            Happened::Answered(400..=499) => Some(Failure::ClientError),
            Happened::Answered(500..) => Some(Failure::ServerError),
            Happened::Network(NetworkFault::Dns(_)) | Happened::NoSuchHost => Some(Failure::Dns),
            Happened::Network(NetworkFault::ConnectRefused) => Some(Failure::Connect),
            Happened::Network(NetworkFault::Tls(_)) => Some(Failure::Tls),
            Happened::Network(NetworkFault::Reset) => Some(Failure::Reset),
            Happened::TimedOut(_) => Some(Failure::Timeout),
            Happened::BadAnswer(_) => Some(Failure::BadAnswer),
            Happened::Refused(_) => Some(Failure::Refused),
            Happened::OurFault(_) => Some(Failure::Ours),
            Happened::Answered(_)
            | Happened::RobotsDisallow
            | Happened::DeadlinePassed
            | Happened::SiteStayedDown { .. }
            | Happened::ProbesFailed { .. }
            | Happened::WaitTooLong { .. } => None,
        }
    }
}

words! {
    /// Why a store did not do what it was asked.
    StoreTrouble = "reason" {
        /// It can't be reached, or is busy.
        Unavailable = "unavailable",
        /// It answered what it never should.
        Damaged = "damaged",
        /// It is not one that can be used.
        Unfit = "unfit",
        /// What was to be written is too large for it.
        TooLarge = "too_large",
        /// This program asked for what makes no sense.
        Bug = "bug",
    }
}

impl StoreTrouble {
    /// By its fault.
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
