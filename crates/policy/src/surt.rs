//! SURT keys, by which Common Crawl's index is sorted: `com,example)/path` keeps the pages of a domain and its
//! subdomains together.

use crate::url::WebUrl;

/// The key under which Common Crawl's index lists a URL.
///
/// The scheme and a `www.` are dropped, the labels of the host (or the octets of an IPv4 address) are reversed, path
/// and query are lower-cased with as few percent-escapes as possible, empty path segments and an empty query are
/// dropped, and parameters are sorted. Session IDs are kept.
pub fn surt(url: &WebUrl) -> String {
    let mut key = reversed_host(url.host());
    if url.port() != url.scheme().default_port() {
        key.push_str(&format!(":{}", url.port()));
    }
    key.push(')');
    let (path, query) = url.path_and_query().split_once('?').unwrap_or((url.path_and_query(), ""));
    key.push_str(&path_key(path));
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query_key(query));
    }
    key
}

fn reversed_host(host: &str) -> String {
    if host.starts_with('[') {
        return host.to_owned();
    }
    let labels: Vec<&str> =
        without_www(host).rsplit('.').filter(|label| !label.is_empty()).collect();
    labels.join(",")
}

/// Drops `www.`, `www2.` and the like as long as a domain remains; `www.com` is itself a domain.
fn without_www(host: &str) -> &str {
    match host.split_once('.') {
        Some((first, rest)) if is_www(first) && rest.contains('.') => without_www(rest),
        _ => host,
    }
}

fn is_www(label: &str) -> bool {
    label.strip_prefix("www").is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

fn path_key(path: &str) -> String {
    let path = minimally_escaped(path);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    format!("/{}", segments.join("/"))
}

fn query_key(query: &str) -> String {
    let query = minimally_escaped(query);
    let mut parameters: Vec<&str> = query.split('&').collect();
    // Sort by name, then by value: as plain text, `a-b=1` would come before `a=1`.
    parameters.sort_by_key(|parameter| match parameter.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (*parameter, None),
    });
    parameters.join("&")
}

/// Lower-cases the text, and escapes only what an index line cannot contain: spaces, control characters, `#`, `%` and
/// non-ASCII bytes. So `%7E` and `~` give the same key.
fn minimally_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in fully_unescaped(text) {
        match byte {
            0..=b' ' | b'#' | b'%' | 0x80.. => escaped.push_str(&format!("%{byte:02x}")),
            _ => escaped.push(char::from(byte.to_ascii_lowercase())),
        }
    }
    escaped
}

/// Decodes escapes, including those that result from decoding (`%2541` is `%41` is `A`). The output never ends in an
/// escape, so one pass is enough for any depth of nesting.
fn fully_unescaped(text: &str) -> Vec<u8> {
    let mut read = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        read.push(byte);
        while let Some(unescaped) = trailing_escape(&read) {
            read.truncate(read.len() - 3);
            read.push(unescaped);
        }
    }
    read
}

fn trailing_escape(read: &[u8]) -> Option<u8> {
    let &[.., b'%', high, low] = read else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn surt_of(url: &str) -> String {
        surt(&WebUrl::parse(url).unwrap())
    }

    #[test]
    fn keys_are_as_in_the_index() {
        for (url, key) in [
            ("https://www.example.com/a?b=2&a=1", "com,example)/a?a=1&b=2"),
            ("http://example.com/page", "com,example)/page"),
            ("https://subdomain.example.com/path", "com,example,subdomain)/path"),
            ("http://165.22.100.0/", "0,100,22,165)/"),
            ("https://34.203.211.192/robots.txt", "192,211,203,34)/robots.txt"),
            ("http://example.com", "com,example)/"),
            ("https://example.com:443/", "com,example)/"),
            ("http://example.com:8080/", "com,example:8080)/"),
            ("http://example.com:443/", "com,example:443)/"),
            ("http://localhost/", "localhost)/"),
            ("http://www2.example.com/", "com,example)/"),
            ("http://www.www12.example.com/", "com,example)/"),
            ("http://wwwx.example.com/", "com,example,wwwx)/"),
            ("http://my.www.example.com/", "com,example,www,my)/"),
            ("http://www.com/", "com,www)/"),
            ("http://www/", "www)/"),
            ("http://a..example.com/", "com,example,a)/"),
            ("http://bücher.example/", "example,xn--bcher-kva)/"),
            ("http://[2001:db8::1]:8080/a", "[2001:db8::1]:8080)/a"),
            ("http://example.com/A/B.HTML?Q=X", "com,example)/a/b.html?q=x"),
            ("http://example.com/a/", "com,example)/a"),
            ("http://example.com/a//b//", "com,example)/a/b"),
            ("http://example.com/a/?", "com,example)/a"),
            ("http://example.com/?b&a", "com,example)/?a&b"),
            ("http://example.com/?a=2&b&a=1", "com,example)/?a=1&a=2&b"),
            ("http://example.com/?a-b=1&a=1&a", "com,example)/?a&a=1&a-b=1"),
            ("http://example.com/?b=1&&a=1", "com,example)/?&a=1&b=1"),
            ("http://example.com/?a=b=c", "com,example)/?a=b=c"),
            ("http://example.com/x?sid=1&PHPSESSID=2", "com,example)/x?phpsessid=2&sid=1"),
            ("http://example.com/;jsessionid=0A", "com,example)/;jsessionid=0a"),
            ("http://example.com/a b/%7Eme/%28x%29", "com,example)/a%20b/~me/(x)"),
            ("http://example.com/%E4?%E4", "com,example)/%e4?%e4"),
            ("http://example.com/ä", "com,example)/%c3%a4"),
            ("http://example.com/%2541%252541", "com,example)/aa"),
            ("http://example.com/100%/%zz/%2", "com,example)/100%25/%25zz/%252"),
            ("http://example.com/%23%0A", "com,example)/%23%0a"),
        ] {
            assert_eq!(surt_of(url), key, "{url}");
        }
    }

    proptest! {
        #[test]
        fn scheme_www_and_case_do_not_matter(rest in "[ -~é]{0,60}") {
            let key = surt_of(&format!("http://example.com/{rest}"));
            let rest = rest.to_ascii_uppercase();
            prop_assert_eq!(surt_of(&format!("https://www.EXAMPLE.com/{rest}")), key);
        }

        #[test]
        fn keys_fit_in_an_index_line(rest in any::<String>()) {
            if let Ok(url) = WebUrl::parse(&format!("http://example.com/{rest}")) {
                let key = surt(&url);
                prop_assert!(key.bytes().all(|b| (b'!'..0x80).contains(&b)), "{}", key);
                prop_assert!(!key.contains(|c: char| c.is_ascii_uppercase()), "{}", key);
            }
        }
    }
}
