//! The parts of a request besides its body: version, caller and public URL.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use http::HeaderMap;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

use super::error::FirecrawlError;
use crate::api::body::Whole;
use crate::api::identity::Identity;
use crate::api::{Api, body};
use crate::problem::Problem;
use crate::server::Peer;

/// The version of Firecrawl's API. The versions differ in their defaults and in the format of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    /// Its part of a path.
    pub(super) fn path(self) -> &'static str {
        match self {
            Version::V1 => "/v1",
            Version::V2 => "/v2",
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Version {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Version, Infallible> {
        let is_first = parts.uri.path().starts_with(Version::V1.path());
        Ok(if is_first { Version::V1 } else { Version::V2 })
    }
}

/// A caller with a valid token.
pub(super) struct Caller(pub(super) Identity);

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = FirecrawlError;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &Arc<Api>,
    ) -> Result<Caller, FirecrawlError> {
        Ok(Caller(Identity::from_request_parts(parts, api).await?))
    }
}

/// Reads the body of a request that sends messages, and returns it with the headers.
pub(super) async fn read_body(
    api: &Api,
    identity: &Identity,
    request: Request,
    most_bytes: u64,
) -> Result<(HeaderMap, Whole), Problem> {
    identity.check_may_send()?;
    let (parts, body) = request.into_parts();
    let whole = body::read(&api.memory, &parts.headers, body, most_bytes).await?;
    Ok((parts.headers, whole))
}

/// The URL at which the client reaches this service, without a trailing slash: that of the setting, or else the host of
/// the request. Trusting the Host header is safe, because only the same client sees the URL.
pub(super) struct PublicUrl(pub(super) String);

impl FromRequestParts<Arc<Api>> for PublicUrl {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &Arc<Api>,
    ) -> Result<PublicUrl, Infallible> {
        let of_request = || of_request(parts);
        Ok(PublicUrl(api.rules.public_url.clone().unwrap_or_else(of_request)))
    }
}

/// Empty if the request names no host, as HTTP/1.0 allows. URLs in the response are then relative.
fn of_request(parts: &Parts) -> String {
    let named = parts.headers.get(HOST).and_then(|value| value.to_str().ok());
    let host = parts.uri.authority().map(Authority::as_str).or(named);
    let scheme = if Peer::of(parts).is_encrypted { "https" } else { "http" };
    host.map(|host| format!("{scheme}://{host}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_public_url_is_the_one_that_the_client_used() {
        for (uri, host, is_encrypted, expected) in [
            ("/v2/map", Some("a.test:8080"), false, "http://a.test:8080"),
            ("/v2/map", Some("a.test"), true, "https://a.test"),
            ("http://b.test/v2/map", None, false, "http://b.test"),
            ("/v2/map", None, false, ""),
        ] {
            let mut request = http::Request::get(uri);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            parts.extensions.insert(Peer { address: Ipv4Addr::LOCALHOST.into(), is_encrypted });
            assert_eq!(of_request(&parts), expected);
        }
    }
}
