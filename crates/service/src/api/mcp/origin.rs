//! Checks where a request comes from. A web page that a user opens must not reach a server on the user's machine, not
//! even by DNS rebinding (changing the address of the page's own hostname).

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Uri};

use crate::problem::{Problem, ProblemKind};

/// Checks `Host` and `Origin`. The host must be an IP address (which cannot be rebound), `localhost`, or one of
/// `allowed`. The origin must have the same host and port, or a host in `allowed`.
pub(super) fn check(parts: &Parts, allowed: &[String]) -> Result<(), Problem> {
    let host = match parts.headers.get(HOST) {
        Some(value) => authority(value),
        None => parts.uri.authority().cloned(),
    };
    let is_allowed =
        |host: &str| allowed.iter().any(|allowed| allowed.trim().eq_ignore_ascii_case(host));
    let host = host.filter(|host| is_here(host.host()) || is_allowed(host.host()));
    let host = host.ok_or_else(|| {
        Problem::new(ProblemKind::BAD_HOST).saying(
            "The Host header is neither an IP address nor localhost. If it is a hostname of this server, add it to \
             `mcp.allowed_hosts`.",
        )
    })?;
    let mut origins = parts.headers.get_all(ORIGIN).iter();
    let is_own = |origin: &HeaderValue| {
        let origin: Option<Uri> = origin.to_str().ok().and_then(|text| text.parse().ok());
        let origin = origin.as_ref().and_then(Uri::authority);
        origin.is_some_and(|origin| {
            origin.as_str().eq_ignore_ascii_case(host.as_str()) || is_allowed(origin.host())
        })
    };
    if !origins.all(is_own) {
        return Err(Problem::new(ProblemKind::FOREIGN_ORIGIN));
    }
    Ok(())
}

fn authority(value: &HeaderValue) -> Option<Authority> {
    value.to_str().ok()?.parse().ok()
}

fn is_here(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    address.parse::<std::net::IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_page_from_elsewhere_cannot_reach_the_server() {
        for (host, origin, expected) in [
            ("127.0.0.1:8080", None, true),
            ("[::1]:8080", None, true),
            ("192.168.1.5", None, true),
            ("LocalHost:8080", None, true),
            ("Fetch.example:443", None, true),
            ("evil.test:8080", None, false),
            ("localhost.evil.test", None, false),
            ("127.0.0.1.evil.test", None, false),
            ("sub.fetch.example", None, false),
            ("", None, false),
            ("localhost:8080", Some("http://localhost:8080"), true),
            ("localhost:8080", Some("http://LOCALHOST:8080"), true),
            ("localhost:8080", Some("https://fetch.example"), true),
            ("fetch.example", Some("https://fetch.example"), true),
            ("localhost:8080", Some("http://localhost:3000"), false),
            ("127.0.0.1:8080", Some("http://evil.test"), false),
            ("127.0.0.1:8080", Some("null"), false),
            ("127.0.0.1:8080", Some(""), false),
            ("127.0.0.1:8080", Some("http://127.0.0.1:8080.evil.test"), false),
            ("evil.test", Some("http://evil.test"), false),
        ] {
            let mut request = Request::new(());
            request.headers_mut().insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                request.headers_mut().insert(ORIGIN, origin.parse().unwrap());
            }
            let (parts, ()) = request.into_parts();
            let is_fine = check(&parts, &["fetch.example".to_owned()]).is_ok();
            assert_eq!(is_fine, expected, "{host} {origin:?}");
        }
    }

    #[test]
    fn over_http_2_the_host_is_in_the_target() {
        for (target, expected) in [("http://127.0.0.1/mcp", true), ("http://evil.test/mcp", false)]
        {
            let (parts, ()) = Request::get(target).body(()).unwrap().into_parts();
            assert_eq!(check(&parts, &[]).is_ok(), expected, "{target}");
        }
    }
}
