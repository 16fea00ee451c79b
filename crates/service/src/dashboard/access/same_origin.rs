//! Checks that a request to change something comes from a page of the dashboard.

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Uri};

use crate::dashboard::fault::PageError;

/// Refuses a request unless the browser says that it comes from a page of the dashboard.
pub(super) fn check_is_ours(parts: &Parts) -> Result<(), PageError> {
    refuse_unless(comes_from_us(&parts.headers, &parts.uri) == Some(true))
}

/// Refuses a request from a page of another site. Browsers always send the origin of a form; a client that sends none
/// is a program, which has no session that others could misuse.
pub(super) fn check_is_not_others(parts: &Parts) -> Result<(), PageError> {
    refuse_unless(comes_from_us(&parts.headers, &parts.uri) != Some(false))
}

fn refuse_unless(is_good: bool) -> Result<(), PageError> {
    let why = "the request did not come from a page of the dashboard";
    if is_good { Ok(()) } else { Err(PageError::Forbidden(why.to_owned())) }
}

/// `None` if the request does not say.
fn comes_from_us(headers: &HeaderMap, uri: &Uri) -> Option<bool> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    // Browsers send this on encrypted connections and to localhost, and scripts cannot forge it.
    if let Some(site) = text("sec-fetch-site") {
        return Some(site == "same-origin");
    }
    let origin = text(ORIGIN.as_str())?;
    let host = uri.authority().map(http::uri::Authority::as_str).or_else(|| text(HOST.as_str()));
    let origin = origin.split_once("://").map(|(_, origin)| origin);
    Some(matches!((origin, host), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host)))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn only_pages_of_ours_are_believed() {
        for (pairs, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], Some(true)),
            (&[("sec-fetch-site", "same-site")], Some(false)),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://a.test:8080")], Some(false)),
            (&[("sec-fetch-site", "none")], Some(false)),
            (&[("origin", "http://a.test:8080")], Some(true)),
            (&[("origin", "https://A.test:8080")], Some(true)),
            (&[("origin", "http://a.test")], Some(false)),
            (&[("origin", "http://evil.test:8080")], Some(false)),
            (&[("origin", "null")], Some(false)),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("a.test:8080"));
            for (name, value) in pairs {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let (mut parts, ()) = http::Request::get("/x").body(()).unwrap().into_parts();
            parts.headers = headers;
            assert_eq!(comes_from_us(&parts.headers, &parts.uri), expected, "{pairs:?}");
            assert_eq!(check_is_ours(&parts).is_ok(), expected == Some(true));
            assert_eq!(check_is_not_others(&parts).is_err(), expected == Some(false));
        }
    }
}
