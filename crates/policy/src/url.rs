//! URLs in canonical form, and the two keys derived from them: the [`Site`], which is paced, and the [`Origin`], whose
//! robots.txt applies.

use std::borrow::Borrow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

// The leading colons distinguish the `url` crate from this module.
use ::url::{Host, ParseError, Position, Url};
use serde::{Deserialize, Serialize};

/// The maximum length of a URL, before and after canonicalisation.
pub const MAX_URL_BYTES: usize = 8192;

/// The maximum length of a host, which is that of a DNS name.
pub const MAX_HOST_BYTES: usize = 253;

/// A canonical http or https URL.
///
/// The host is lower-case ASCII (IDNA) without trailing dots, a default port and the fragment are
/// dropped, and the path is at least `/`. It has no user info and no port that browsers block.
/// Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebUrl(Arc<Url>);

impl WebUrl {
    /// Parses an absolute URL. ASCII white space around it is ignored.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        resolve(None, text)
    }

    /// Resolves a reference found on this page, such as a link or a `Location` header.
    pub fn join(&self, reference: &str) -> Result<Self, UrlFault> {
        resolve(Some(&self.0), reference)
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// http or https.
    pub fn scheme(&self) -> Scheme {
        if self.0.scheme() == "https" { Scheme::Https } else { Scheme::Http }
    }

    /// The host; an IPv6 literal keeps its brackets.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The address, if the host is an IPv4 or IPv6 literal instead of a name.
    pub fn host_ip(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }

    /// The port to connect to, explicit or default.
    pub fn port(&self) -> u16 {
        self.0.port().unwrap_or(self.scheme().default_port())
    }

    /// The path and query for the request line and for matching robots.txt rules.
    pub fn path_and_query(&self) -> &str {
        &self.0[Position::BeforePath..Position::AfterQuery]
    }

    /// The URL without the parameters whose name and value `is_dropped` accepts; all else stays byte for byte. `None` if
    /// there are none.
    pub fn without_parameters(&self, is_dropped: impl Fn(&str, &str) -> bool) -> Option<Self> {
        let (before, query) = self.as_str().split_once('?')?;
        let is_kept = |part: &&str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            !is_dropped(name, value)
        };
        let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
        if kept.len() == query.split('&').count() {
            return None;
        }
        let rest = kept.join("&");
        let shorter = if rest.is_empty() { before.to_owned() } else { format!("{before}?{rest}") };
        Self::parse(&shorter).ok()
    }

    /// The site whose pace and breaker apply to this URL.
    pub fn site(&self) -> Site {
        let host = self.host();
        match self.port() {
            // The default ports of both schemes are dropped, because one host must never get two paces.
            80 | 443 => Site(host.into()),
            port => Site(format!("{host}:{port}").into()),
        }
    }

    /// The origin whose robots.txt applies to this URL.
    pub fn origin(&self) -> Origin {
        let mut root = Url::clone(&self.0);
        root.set_path("/");
        root.set_query(None);
        Origin { root: Self(Arc::new(root)) }
    }

    /// The key of that origin for lookups in a map by [`Origin`], without allocating one.
    pub fn origin_key(&self) -> &str {
        let root_ends = self.0[..Position::BeforePath].len() + "/".len();
        &self.as_str()[..root_ends]
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WebUrl {
    type Err = UrlFault;

    fn from_str(text: &str) -> Result<Self, UrlFault> {
        Self::parse(text)
    }
}

/// The supported schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// The default port of the scheme.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The unit of pacing, with one pace and one breaker: a canonical host, with its port unless that is 80 or 443. Clones
/// share the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Site(Arc<str>);

impl Site {
    /// Parses operator input: `example.com`, `Example.com:8080` or a full URL.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        let url = if text.contains("://") {
            WebUrl::parse(text)
        } else {
            WebUrl::parse(&format!("http://{}", text.trim_ascii()))
        };
        Ok(url?.site())
    }

    /// A key for something else that is paced like a site. It cannot be mistaken for a web site, because no host
    /// contains an `@`.
    pub fn apart(realm: &str, name: &str) -> Self {
        Self(format!("{realm}@{name}").into())
    }

    /// The site as text, such as `example.com` or `example.com:8080`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Site {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Site {
    type Error = UrlFault;

    fn try_from(text: String) -> Result<Self, UrlFault> {
        Self::parse(&text)
    }
}

impl From<Site> for String {
    fn from(site: Site) -> Self {
        site.as_str().to_owned()
    }
}

/// Scheme, host and port: the scope of one robots.txt.
// Stored as the URL of its root, so that deriving URLs from it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    root: WebUrl,
}

impl Origin {
    /// Parses `https://example.com`, or takes the origin of any longer URL.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        Ok(WebUrl::parse(text)?.origin())
    }

    /// http or https.
    pub fn scheme(&self) -> Scheme {
        self.root.scheme()
    }

    /// The host; an IPv6 literal keeps its brackets.
    pub fn host(&self) -> &str {
        self.root.host()
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.root.port()
    }

    /// The site that this origin belongs to.
    pub fn site(&self) -> Site {
        self.root.site()
    }

    /// The URL of the root, which probes request.
    pub fn root_url(&self) -> WebUrl {
        self.root.clone()
    }

    /// The URL of this origin's robots.txt.
    pub fn robots_url(&self) -> WebUrl {
        let mut robots = Url::clone(&self.root.0);
        robots.set_path("/robots.txt");
        WebUrl(Arc::new(robots))
    }
}

/// Borrows the same text as [`WebUrl::origin_key`].
impl Borrow<str> for Origin {
    fn borrow(&self) -> &str {
        self.root.as_str()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root.0[..Position::BeforePath])
    }
}

/// Why a text is not a URL that may be fetched. No message repeats the URL, because it may contain a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// Longer than [`MAX_URL_BYTES`].
    #[error("the URL has {bytes} bytes, more than {MAX_URL_BYTES}; shorten it")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not a URL by the URL standard.
    #[error("not a valid URL ({0}); write it as https://host/path")]
    Unparsable(#[source] ParseError),
    /// Neither http nor https.
    #[error("URLs that begin with `{0}:` are not fetched; use http:// or https://")]
    UnsupportedScheme(String),
    /// `user@` or `user:password@` before the host.
    #[error("the URL has a user name or password before its host; take it out, with the `@`")]
    UserInfo,
    /// The host is empty or consists only of dots.
    #[error("the URL names no host; write it as https://host/path")]
    EmptyHost,
    /// Longer than [`MAX_HOST_BYTES`].
    #[error("the host has {bytes} bytes, more than {MAX_HOST_BYTES}; check for a typing error")]
    HostTooLong {
        /// Its length.
        bytes: usize,
    },
    /// A port of another protocol, which browsers refuse too.
    #[error("port {0} is blocked, as in browsers: it serves another protocol; use another port")]
    BlockedPort(u16),
}

impl From<ParseError> for UrlFault {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::EmptyHost => Self::EmptyHost,
            other => Self::Unparsable(other),
        }
    }
}

fn resolve(base: Option<&Url>, text: &str) -> Result<WebUrl, UrlFault> {
    let text = text.trim_ascii();
    check_length(text)?;
    if skips_the_host(text) {
        return Err(UrlFault::EmptyHost);
    }
    let mut url = Url::options().base_url(base).parse(text)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlFault::UnsupportedScheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlFault::UserInfo);
    }
    settle_host(&mut url)?;
    if let Some(port) = url.port().filter(|port| BLOCKED_PORTS.contains(port)) {
        return Err(UrlFault::BlockedPort(port));
    }
    url.set_fragment(None);
    // Percent-encoding and Punycode lengthen a URL, so the result is checked as well.
    check_length(url.as_str())?;
    Ok(WebUrl(Arc::new(url)))
}

fn check_length(text: &str) -> Result<(), UrlFault> {
    let bytes = text.len();
    if bytes > MAX_URL_BYTES { Err(UrlFault::TooLong { bytes }) } else { Ok(()) }
}

/// The URL standard skips surplus slashes and takes `x` as the host of `http:///x`. Such a URL comes from a template
/// with a missing host, and `x` was meant to be a path.
fn skips_the_host(text: &str) -> bool {
    text.split_once("///").is_some_and(|(before, _)| {
        ["", "http:", "https:"].iter().any(|scheme| before.eq_ignore_ascii_case(scheme))
    })
}

/// Drops trailing dots and parses the host again, because `127.0.0.1..` is a name by the URL standard, but an address
/// without the dots, and the address guard must see it as one.
fn settle_host(url: &mut Url) -> Result<(), UrlFault> {
    let written = url.host_str().unwrap_or_default();
    let host = written.trim_end_matches('.');
    if host.is_empty() {
        return Err(UrlFault::EmptyHost);
    }
    if host.len() > MAX_HOST_BYTES {
        return Err(UrlFault::HostTooLong { bytes: host.len() });
    }
    if host.len() < written.len() {
        let host = host.to_owned();
        url.set_host(Some(&host))?;
    }
    Ok(())
}

/// The "bad ports" of the WHATWG Fetch standard: a request to such a port could be interpreted as a command of another
/// protocol.
const BLOCKED_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::Error as ValueError;

    use super::*;

    fn url(text: &str) -> WebUrl {
        WebUrl::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
    }

    #[test]
    fn urls_are_canonicalised() {
        let long_path = format!("http://a/{}", "x".repeat(MAX_URL_BYTES - 9));
        for (written, canonical) in [
            ("http://example.com", "http://example.com/"),
            (" \t\r\nhttp://example.com/\n ", "http://example.com/"),
            ("HTTP://EXAMPLE.com./A/b", "http://example.com/A/b"),
            ("http://example.com.../", "http://example.com/"),
            ("http://example.com\u{3002}/", "http://example.com/"),
            ("http://example.com:80/", "http://example.com/"),
            ("https://example.com:443/", "https://example.com/"),
            ("https://example.com.:443/", "https://example.com/"),
            ("https://example.com:/", "https://example.com/"),
            ("http://example.com:443/", "http://example.com:443/"),
            ("https://example.com:08080/", "https://example.com:8080/"),
            ("http://example.com/a#part", "http://example.com/a"),
            ("http://example.com?a=1#", "http://example.com/?a=1"),
            ("http://example.com/?", "http://example.com/?"),
            ("http://example.com/a/./b/../c", "http://example.com/a/c"),
            ("http://example.com/%2e%2E/c", "http://example.com/c"),
            ("http://example.com//a//b", "http://example.com//a//b"),
            ("http://example.com\\a\\b", "http://example.com/a/b"),
            ("http://example.com/a\nb", "http://example.com/ab"),
            ("http://example.com/a b?c d", "http://example.com/a%20b?c%20d"),
            ("http://example.com/%7Eme/%zz", "http://example.com/%7Eme/%zz"),
            ("http://example.com/ä?ö", "http://example.com/%C3%A4?%C3%B6"),
            ("http://a/x///y", "http://a/x///y"),
            ("http://a/?u=http:///x", "http://a/?u=http:///x"),
            ("http://@example.com/", "http://example.com/"),
            ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
            ("https://faß.de/", "https://xn--fa-hia.de/"),
            ("https://例え.テスト/", "https://xn--r8jz45g.xn--zckzah/"),
            ("http://ｅｘａｍｐｌｅ.com/", "http://example.com/"),
            ("http://ex%61mple.com/", "http://example.com/"),
            ("http://under_score.example.com/", "http://under_score.example.com/"),
            ("http://127.0.0.1", "http://127.0.0.1/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://017700000001/", "http://127.0.0.1/"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://127.0.0.1./", "http://127.0.0.1/"),
            ("http://127.1..:8080/", "http://127.0.0.1:8080/"),
            ("http://１２７.0.0.1/", "http://127.0.0.1/"),
            ("http://[::1]/", "http://[::1]/"),
            ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
            ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
            (&long_path, &long_path),
        ] {
            assert_eq!(url(written).as_str(), canonical, "{written}");
            assert_eq!(url(canonical).as_str(), canonical, "{canonical} again");
        }
    }

    #[test]
    fn what_may_not_be_fetched_is_refused() {
        let too_long = format!("http://a/{}", "x".repeat(MAX_URL_BYTES - 8));
        let grows_too_long = format!("http://a/{}", "ä".repeat(MAX_URL_BYTES / 4));
        let long_host = format!("http://{}.com/", "a".repeat(250));
        let scheme = |name: &str| UrlFault::UnsupportedScheme(name.to_owned());
        for (written, fault) in [
            ("", UrlFault::Unparsable(ParseError::RelativeUrlWithoutBase)),
            ("example.com", UrlFault::Unparsable(ParseError::RelativeUrlWithoutBase)),
            ("/path", UrlFault::Unparsable(ParseError::RelativeUrlWithoutBase)),
            ("http://exa mple.com", UrlFault::Unparsable(ParseError::IdnaError)),
            ("http://exa<mple.com", UrlFault::Unparsable(ParseError::IdnaError)),
            ("http://a:b/", UrlFault::Unparsable(ParseError::InvalidPort)),
            ("http://a:65536/", UrlFault::Unparsable(ParseError::InvalidPort)),
            ("http://[::1/", UrlFault::Unparsable(ParseError::InvalidIpv6Address)),
            ("http://256.1.1.1/", UrlFault::Unparsable(ParseError::InvalidIpv4Address)),
            ("http://256.1.1.1../", UrlFault::Unparsable(ParseError::InvalidIpv4Address)),
            ("javascript:alert(1)", scheme("javascript")),
            ("ftp://example.com/", scheme("ftp")),
            ("file:///etc/passwd", scheme("file")),
            ("data:text/html,x", scheme("data")),
            ("mailto:me@example.com", scheme("mailto")),
            ("example.com:8080", scheme("example.com")),
            ("http://user@host/", UrlFault::UserInfo),
            ("http://user:secret@host/", UrlFault::UserInfo),
            ("http://:secret@host/", UrlFault::UserInfo),
            ("http://a@b@host/", UrlFault::UserInfo),
            ("http://", UrlFault::EmptyHost),
            ("http:///x", UrlFault::EmptyHost),
            ("HTTPS:////x", UrlFault::EmptyHost),
            ("http://?x", UrlFault::EmptyHost),
            ("http://./", UrlFault::EmptyHost),
            ("http://../", UrlFault::EmptyHost),
            ("http://:8080/", UrlFault::EmptyHost),
            ("http://example.com:0/", UrlFault::BlockedPort(0)),
            ("http://example.com:22/", UrlFault::BlockedPort(22)),
            ("https://example.com:6667/", UrlFault::BlockedPort(6667)),
            ("http://example.com:10080/", UrlFault::BlockedPort(10080)),
            (&too_long, UrlFault::TooLong { bytes: MAX_URL_BYTES + 1 }),
            (&grows_too_long, UrlFault::TooLong { bytes: 9 + MAX_URL_BYTES / 4 * 6 }),
            (&long_host, UrlFault::HostTooLong { bytes: 254 }),
        ] {
            assert_eq!(WebUrl::parse(written), Err(fault), "{written}");
        }
    }

    #[test]
    fn a_fault_says_what_to_do_and_keeps_secrets() {
        let message = WebUrl::parse("http://user:secret@host/").unwrap_err().to_string();
        assert!(message.contains("take it out"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn a_url_knows_its_parts() {
        let page = url("https://Example.com:8443/a/b?c=d#e");
        assert_eq!(page.scheme(), Scheme::Https);
        assert_eq!(page.host(), "example.com");
        assert_eq!(page.host_ip(), None);
        assert_eq!(page.port(), 8443);
        assert_eq!(page.path_and_query(), "/a/b?c=d");
        assert_eq!(page.to_string(), "https://example.com:8443/a/b?c=d");
        assert_eq!("https://example.com:8443/a/b?c=d".parse(), Ok(page));
        assert_eq!(url("http://a").port(), 80);
        assert_eq!(url("https://a").port(), 443);
        assert_eq!(url("http://a").path_and_query(), "/");
    }

    #[test]
    fn literal_hosts_are_addresses() {
        for (written, address) in [
            ("http://192.168.1.1/", "192.168.1.1"),
            ("http://0xC0A80101/", "192.168.1.1"),
            ("http://10.1..../", "10.0.0.1"),
            ("http://[::1]:8080/", "::1"),
            ("http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1"),
        ] {
            assert_eq!(url(written).host_ip(), address.parse().ok(), "{written}");
        }
    }

    #[test]
    fn references_are_resolved() {
        let base = url("https://example.com/a/b?c#d");
        for (reference, resolved) in [
            ("", "https://example.com/a/b?c"),
            ("#x", "https://example.com/a/b?c"),
            ("x", "https://example.com/a/x"),
            (" ../x ", "https://example.com/x"),
            ("/x", "https://example.com/x"),
            ("?x", "https://example.com/a/b?x"),
            ("//Other.example./x", "https://other.example/x"),
            ("http://other.example:80", "http://other.example/"),
        ] {
            let joined = base.join(reference).map(|url| url.to_string());
            assert_eq!(joined.as_deref(), Ok(resolved), "{reference}");
        }
        assert_eq!(base.join("//user@other.example/"), Err(UrlFault::UserInfo));
        assert_eq!(base.join("//other.example:25/"), Err(UrlFault::BlockedPort(25)));
        assert_eq!(base.join("///x"), Err(UrlFault::EmptyHost));
        assert!(matches!(base.join("javascript:x"), Err(UrlFault::UnsupportedScheme(_))));
        assert!(matches!(base.join(&"x".repeat(9000)), Err(UrlFault::TooLong { .. })));
    }

    #[test]
    fn one_host_is_one_site() {
        for (written, site) in [
            ("http://EXAMPLE.com.", "example.com"),
            ("https://example.com:443", "example.com"),
            ("https://example.com", "example.com"),
            ("https://example.com:80", "example.com"),
            ("http://example.com:443", "example.com"),
            ("http://example.com:8080", "example.com:8080"),
            ("https://example.com:8080", "example.com:8080"),
            ("http://www.example.com", "www.example.com"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(url(written).site().as_str(), site, "{written}");
        }
    }

    #[test]
    fn operators_may_type_a_site_as_they_like() {
        for (typed, site) in [
            ("example.com", "example.com"),
            (" Example.com:8080 ", "example.com:8080"),
            ("example.com.:443", "example.com"),
            ("https://bücher.example/x", "xn--bcher-kva.example"),
            ("[::1]:8080", "[::1]:8080"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(Site::parse(typed).map(String::from).as_deref(), Ok(site), "{typed}");
        }
        for typed in ["", "a b", "user@example.com", "ftp://example.com", "example.com:25", "::1"] {
            assert!(Site::parse(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn a_site_is_found_by_its_text() {
        let rates = HashMap::from([(url("https://example.com/a").site(), 1)]);
        assert_eq!(rates.get("example.com"), Some(&1));
    }

    #[test]
    fn a_stored_site_is_read_as_if_it_were_typed() {
        let read =
            |text: &str| Site::deserialize(IntoDeserializer::<ValueError>::into_deserializer(text));
        assert_eq!(read("EXAMPLE.com.:443"), Ok(url("http://example.com").site()));
        assert!(read("user@example.com").is_err());
    }

    #[test]
    fn origins_differ_by_scheme_host_and_port() {
        for (written, origin, robots) in [
            ("https://Example.com/a?b", "https://example.com", "https://example.com/robots.txt"),
            ("http://a:8080/?b", "http://a:8080", "http://a:8080/robots.txt"),
            ("https://a:80", "https://a:80", "https://a:80/robots.txt"),
            ("http://[::1]/", "http://[::1]", "http://[::1]/robots.txt"),
        ] {
            let found = url(written).origin();
            assert_eq!(found.to_string(), origin);
            assert_eq!(found.robots_url(), url(robots));
            assert_eq!(found.root_url(), url(origin));
            assert_eq!(found.site(), url(written).site());
            let known = HashSet::from([found.clone()]);
            assert_eq!(known.get(url(written).origin_key()), Some(&found));
            assert_eq!(Origin::parse(origin), Ok(found));
        }
        assert_ne!(Origin::parse("http://a"), Origin::parse("https://a"));
        assert!(Origin::parse("a").is_err());
    }

    #[test]
    fn blocked_ports_are_in_order_and_spare_the_web() {
        assert!(BLOCKED_PORTS.is_sorted_by(|a, b| a < b));
        for port in [80, 443, 8000, 8080, 8443] {
            assert!(!BLOCKED_PORTS.contains(&port), "{port}");
        }
    }

    /// Texts that are often, but not always, URLs: arbitrary ones would nearly all be refused.
    fn likely_url() -> impl Strategy<Value = String> {
        let host = r"[a-zA-Z0-9._\-äßÉ例。．１]{1,24}|\[[0-9a-f:.]{2,20}\]|[0-9x.]{1,16}";
        let rest = r"(/[ -~äé\t\n]{0,30})?(\?[ -~ä]{0,30})?(#[ -~]{0,9})?";
        (r"https?:/{1,2}", host, r"\.{0,2}(:[0-9]{0,5})?", rest)
            .prop_map(|(start, host, port, rest)| format!("{start}{host}{port}{rest}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            drop(WebUrl::parse(&text));
            drop(Site::parse(&text));
            drop(Origin::parse(&text));
        }

        #[test]
        fn joining_never_panics(base in likely_url(), reference in any::<String>()) {
            if let Ok(base) = WebUrl::parse(&base) {
                drop(base.join(&reference));
            }
        }

        #[test]
        fn canonical_urls_stay_as_they_are(text in likely_url()) {
            if let Ok(url) = WebUrl::parse(&text) {
                prop_assert_eq!(WebUrl::parse(url.as_str()), Ok(url.clone()));
                prop_assert_eq!(url.join(url.as_str()), Ok(url.clone()));
                prop_assert_eq!(Site::parse(url.site().as_str()), Ok(url.site()));
                prop_assert_eq!(Site::parse(url.as_str()), Ok(url.site()));
                prop_assert_eq!(Origin::parse(&url.origin().to_string()), Ok(url.origin()));
            }
        }

        #[test]
        fn canonical_urls_keep_their_word(text in likely_url()) {
            if let Ok(url) = WebUrl::parse(&text) {
                prop_assert!(url.as_str().is_ascii() && url.as_str().len() <= MAX_URL_BYTES);
                prop_assert!(!url.host().is_empty() && !url.host().ends_with('.'));
                prop_assert!(!url.host().contains(|c: char| c.is_ascii_uppercase()));
                prop_assert!(url.path_and_query().starts_with('/'));
                prop_assert!(!url.as_str().contains('#'));
            }
        }
    }
}
