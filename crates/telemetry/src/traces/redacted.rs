//! Removes possible secrets from URLs, as the semantic conventions for `url.full` require.

use fetchwell_policy::url::WebUrl;

/// Names of query parameters whose values are secrets, in lower case.
const SECRET_PARAMETERS: &[&str] = &[
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "awsaccesskeyid",
    "key",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
    "x-goog-signature",
];
const REDACTED: &str = "REDACTED";

/// The URL without secrets. It has no user info, which `WebUrl` refuses.
pub(super) fn redacted(url: &WebUrl) -> String {
    redacted_text(url.as_str())
}

/// The same for a text that may not be a URL; empty if it is not.
pub(super) fn redacted_or_nothing(text: &str) -> String {
    WebUrl::parse(text).map_or_else(|_| String::new(), |url| redacted(&url))
}

fn redacted_text(url: &str) -> String {
    let Some((before, query)) = url.split_once('?') else { return url.to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    });
    format!("{before}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn is_secret(name: &str) -> bool {
    SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_parameters_are_left_out() {
        for (url, expected) in [
            ("http://a.test/p?q=1", "http://a.test/p?q=1"),
            ("http://a.test/?q=1&Token=abc&x", "http://a.test/?q=1&Token=REDACTED&x"),
            ("http://a.test/?sig=a=b", "http://a.test/?sig=REDACTED"),
            ("http://a.test/?X-Amz-Signature=f00", "http://a.test/?X-Amz-Signature=REDACTED"),
            ("http://a.test/token=1", "http://a.test/token=1"),
        ] {
            assert_eq!(redacted_text(url), expected);
        }
        assert_eq!(redacted_or_nothing("http://user:secret@"), "");
    }
}
