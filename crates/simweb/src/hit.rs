use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};

use crate::exchange::SimRequest;

/// A request, as recorded by its site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// When the request arrived: since the start of the world, or since the Unix epoch in a record written by the
    /// `simweb` program.
    #[serde(rename = "at_us", with = "microseconds")]
    pub at: Duration,
    /// The name of the site's script; for a stray, the requested host.
    pub site: Arc<str>,
    /// The method of the request.
    #[serde(with = "method_text")]
    pub method: Method,
    /// The path with its query.
    pub path: Box<str>,
    /// The status that was sent; `None` if the site cut the connection or stalled.
    pub status: Option<u16>,
    /// The User-Agent header; empty if there is none.
    pub user_agent: Arc<str>,
    pub kind: HitKind,
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// Any other request.
    Page,
    /// `/robots.txt`.
    Robots,
    /// A `HEAD` request for any path.
    Head,
    /// A host that the world does not have.
    Stray,
}

impl HitKind {
    pub(crate) fn of(request: &SimRequest<'_>) -> HitKind {
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
