use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};

use crate::exchange::Request;

/// One request as its site saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// When the request head had been read: since the world's start, or since the Unix epoch in
    /// a record written by the `simweb` program.
    #[serde(rename = "at_us", with = "microseconds")]
    pub at: Duration,
    /// The name of the site's script; for a stray, the host that was asked for.
    pub site: Arc<str>,
    /// The method of the request.
    #[serde(with = "method_text")]
    pub method: Method,
    /// The path with its query.
    pub path: Box<str>,
    /// The status that was sent; none when the site cut the connection or stalled.
    pub status: Option<u16>,
    /// The User-Agent header, empty when there was none.
    pub user_agent: Arc<str>,
    /// What was asked for.
    pub kind: HitKind,
}

/// What a hit asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// Anything that is not one of the others.
    Page,
    /// `/robots.txt`.
    Robots,
    /// A `HEAD` request, whatever its path.
    Head,
    /// A host that the world does not have.
    Stray,
}

impl HitKind {
    pub(crate) fn of(request: &Request<'_>) -> HitKind {
        if request.method == Method::HEAD {
            HitKind::Head
        } else if request.is_for_robots() {
            HitKind::Robots
        } else {
            HitKind::Page
        }
    }
}

mod microseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(u64::try_from(at.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

mod method_text {
    use http::Method;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(method: &Method, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(method.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Method, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}
