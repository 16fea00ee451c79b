//! Checks that a request to change something comes from a page of the dashboard.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};

/// Whether the browser says that the request comes from a page of the dashboard. Without such a header it is refused.
pub(super) fn is_ours(headers: &HeaderMap, uri: &Uri) -> bool {
    comes_from_us(headers, uri) == Some(true)
}

/// Whether the request comes from a page of another site. Browsers always send the origin of a form; a client that
/// sends none is a program, which has no session that others could misuse.
pub(super) fn is_others(headers: &HeaderMap, uri: &Uri) -> bool {
    comes_from_us(headers, uri) == Some(false)
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
            let uri = Uri::from_static("/x");
            assert_eq!(comes_from_us(&headers, &uri), expected, "{pairs:?}");
            assert_eq!(is_ours(&headers, &uri), expected == Some(true));
            assert_eq!(is_others(&headers, &uri), expected == Some(false));
        }
    }
}
