//! Reads and sets cookies.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use crate::server::Peer;

/// Names the session of a browser.
pub(super) const SESSION: &str = "fetchwell_session";
/// Holds the color theme.
pub(super) const THEME: &str = "fetchwell_theme";

/// The value of a cookie.
pub(super) fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(found, value)| (found.trim(), value.trim()))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

/// A cookie that scripts cannot read and that other sites cannot cause to be sent. A `max_age_seconds` of 0 deletes it.
///
/// It is marked Secure only if a trusted proxy says that the connection is encrypted. Otherwise nobody could log in
/// over a plain connection.
pub(super) fn set(peer: Peer, name: &str, value: &str, max_age_seconds: u64) -> HeaderValue {
    let secure = if peer.is_encrypted { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={max_age_seconds}{secure}"
    );
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let all = headers(&[
            ("cookie", "a=1; fetchwell_session=x=y"),
            ("cookie", "fetchwell_theme=dark"),
        ]);
        assert_eq!(value(&all, SESSION), Some("x=y"));
        assert_eq!(value(&all, THEME), Some("dark"));
        assert_eq!(value(&all, "b"), None);
    }

    #[test]
    fn cookies_are_for_encrypted_connections_where_there_is_one() {
        let peer = |is_encrypted| Peer { address: [192, 0, 2, 1].into(), is_encrypted };
        let plain = "fetchwell_session=x; Path=/; HttpOnly; SameSite=Strict; Max-Age=60";
        assert_eq!(set(peer(false), SESSION, "x", 60), plain);
        assert_eq!(set(peer(true), SESSION, "x", 60), format!("{plain}; Secure"));
    }
}
