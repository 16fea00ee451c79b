//! Whether a request to change something comes from a page of ours.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};

/// As the browser says. One that says nothing about it is not believed.
pub(super) fn is_ours(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    // Browsers say this on encrypted connections and to their own machine; nothing can forge it.
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let host = uri.authority().map(http::uri::Authority::as_str).or_else(|| text(HOST.as_str()));
    let origin = text(ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
    matches!((origin, host), (Some((_, origin)), Some(host)) if origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn only_pages_of_ours_are_believed() {
        for (pairs, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://a.test:8080")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "http://a.test:8080")], true),
            (&[("origin", "https://A.test:8080")], true),
            (&[("origin", "http://a.test")], false),
            (&[("origin", "http://evil.test:8080")], false),
            (&[("origin", "null")], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("a.test:8080"));
            for (name, value) in pairs {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(is_ours(&headers, &Uri::from_static("/x")), expected, "{pairs:?}");
        }
    }
}
