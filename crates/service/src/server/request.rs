//! Checks on every request and headers of every response, for all listeners.

use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::uri::Authority;
use http::{HeaderValue, Request, Version};

use super::places::Refusal;
use crate::problem::{Problem, ProblemKind};

/// The Retry-After of refused requests.
const RETRY_SECONDS: u64 = 5;

/// Headers of every response that does not set them itself.
const ALWAYS: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (CACHE_CONTROL, "no-store"),
];

/// Health checks are answered in reserved places, too.
pub(super) fn is_health_check(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz")
}

/// Whether the request names exactly one host (RFC 9112, 3.2; RFC 9113, 8.3.1). With two, we and a proxy in front of us
/// might use different ones. HTTP/1.0 may name none.
pub(super) fn has_one_host<B>(request: &Request<B>) -> bool {
    let mut values = request.headers().get_all(HOST).iter();
    let value = values.next();
    if values.next().is_some() {
        return false;
    }
    let target = request.uri().authority();
    let is_http_2 = request.version() >= Version::HTTP_2;
    match value {
        Some(value) => host(value).is_some_and(|host| {
            !is_http_2
                || target.is_none_or(|target| target.as_str().eq_ignore_ascii_case(host.as_str()))
        }),
        None if is_http_2 => target.is_some(),
        None => request.version() < Version::HTTP_11,
    }
}

fn host(value: &HeaderValue) -> Option<Authority> {
    let host: Authority = value.to_str().ok()?.parse().ok()?;
    (!host.as_str().contains('@')).then_some(host)
}

/// The response to a request without exactly one host.
pub(super) fn bad_host() -> Response {
    closing(Problem::new(ProblemKind::BAD_HOST).into_response())
}

/// The response to a request over a limit.
pub(super) fn over_limit(refusal: Refusal) -> Response {
    let problem = match refusal {
        Refusal::Full => Problem::new(ProblemKind::BUSY).saying(
            "All connections are in use. Try again after the time in the header Retry-After.",
        ),
        Refusal::Address => Problem::new(ProblemKind::TOO_MANY_CONNECTIONS),
    };
    problem.retry_after(RETRY_SECONDS).into_response()
}

/// Closes the connection after this response. HTTP/2 does not have this header, so hyper omits it.
pub(super) fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Adds the headers of every response.
pub(super) fn harden(mut response: Response) -> Response {
    for (name, value) in ALWAYS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_exactly_one_host() {
        let request = |version, uri: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(uri).body(()).unwrap();
            for host in hosts {
                request.headers_mut().append(HOST, host.parse().unwrap());
            }
            has_one_host(&request)
        };
        for (version, uri, hosts, expected) in [
            (Version::HTTP_11, "/", &["a.test:8080"][..], true),
            (Version::HTTP_11, "/", &["[::1]:8080"], true),
            (Version::HTTP_11, "/", &[], false),
            (Version::HTTP_11, "/", &[""], false),
            (Version::HTTP_11, "/", &["a b"], false),
            (Version::HTTP_11, "/", &["me@a.test"], false),
            (Version::HTTP_11, "/", &["a.test", "a.test"], false),
            (Version::HTTP_11, "/", &["a.test", "b.test"], false),
            (Version::HTTP_11, "http://a.test/", &[], false),
            (Version::HTTP_10, "/", &[], true),
            (Version::HTTP_10, "/", &["a.test", "b.test"], false),
            (Version::HTTP_2, "http://a.test/", &[], true),
            (Version::HTTP_2, "http://a.test/", &["A.test"], true),
            (Version::HTTP_2, "http://a.test/", &["b.test"], false),
            (Version::HTTP_2, "/", &["a.test"], true),
            (Version::HTTP_2, "/", &[], false),
        ] {
            assert_eq!(request(version, uri, hosts), expected, "{version:?} {uri} {hosts:?}");
        }
    }
}
