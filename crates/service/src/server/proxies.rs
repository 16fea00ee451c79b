//! Determines the client of a request: the other end of the connection, or the one that a trusted proxy names.
//!
//! Any client can send `X-Forwarded-For`, so it is trusted only from `api.trusted_proxies`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::HeaderMap;
use http::header::FORWARDED;
use http::request::Parts;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// The client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Whether a trusted proxy says that the client's connection is encrypted.
    pub(crate) is_encrypted: bool,
}

impl Peer {
    /// The client of a request, as set by [`serve`](super::serve).
    pub(crate) fn of(parts: &Parts) -> Peer {
        let unknown = Peer { address: Ipv4Addr::UNSPECIFIED.into(), is_encrypted: false };
        parts.extensions.get::<Peer>().copied().unwrap_or(unknown)
    }
}

/// What counts as one address: an IPv4 address or a /64 network of IPv6, since one client usually has all of a /64.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

/// The network as text.
pub(crate) fn network_name(address: IpAddr) -> String {
    match network_of(address) {
        IpAddr::V6(network) => format!("{network}/64"),
        IpAddr::V4(ip) => ip.to_string(),
    }
}

/// The proxies whose headers are trusted.
pub(super) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    pub(super) fn new(networks: Vec<IpNet>) -> TrustedProxies {
        TrustedProxies(networks)
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request with these headers over a connection from this address.
    pub(super) fn peer(&self, connected: IpAddr, headers: &HeaderMap) -> Peer {
        let connected = connected.to_canonical();
        if !self.contains(connected) {
            return Peer { address: connected, is_encrypted: false };
        }
        let elements = forwarded_elements(headers);
        let standard = self.client(elements.iter().rev().map(|one| one.client));
        let common = self.client(forwarded_for(headers));
        let address = match (standard, common) {
            // A proxy sets one of the two and passes on the other unchanged. It is unknown which one it set, so if they
            // differ neither is trusted.
            (Some(one), Some(other)) if one != other => connected,
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => connected,
        };
        let is_encrypted = elements.last().is_some_and(|one| one.is_encrypted)
            || last_value(headers, FORWARDED_PROTO).eq_ignore_ascii_case("https");
        Peer { address, is_encrypted }
    }

    /// The first address, counted from the nearest proxy, that is not a trusted proxy itself. Everything before it was
    /// written by an untrusted client.
    fn client(&self, nearest_first: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut client = None;
        for hop in nearest_first {
            // A proxy that names no client counts as the client itself.
            let Some(address) = hop else { break };
            client = Some(address);
            if !self.contains(address) {
                break;
            }
        }
        client
    }
}

/// The addresses of `X-Forwarded-For`, nearest first.
fn forwarded_for(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    // A line that is not text counts as an invalid address.
    lines.flat_map(|line| line.to_str().unwrap_or("?").rsplit(',')).map(|text| node(text.trim()))
}

/// The last value of a list header; empty if there is none.
fn last_value<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let line = headers.get_all(name).iter().next_back();
    let line = line.and_then(|line| line.to_str().ok()).unwrap_or_default();
    line.rsplit(',').next().unwrap_or_default().trim()
}

/// One element of `Forwarded`, written by one proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element {
    client: Option<IpAddr>,
    is_encrypted: bool,
}

/// All elements of `Forwarded` (RFC 7239), nearest last; none if the header is invalid.
fn forwarded_elements(headers: &HeaderMap) -> Vec<Element> {
    let mut elements = Vec::new();
    for line in headers.get_all(FORWARDED) {
        let line = line.to_str().ok().and_then(|line| split_outside_quotes(line, ','));
        let Some(texts) = line else { return Vec::new() };
        elements.extend(texts.into_iter().map(element));
    }
    elements
}

fn element(text: &str) -> Element {
    let mut element = Element { client: None, is_encrypted: false };
    for pair in split_outside_quotes(text, ';').unwrap_or_default() {
        let Some((name, value)) = pair.split_once('=') else { continue };
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "for" => element.client = node(value),
            "proto" => element.is_encrypted = value.eq_ignore_ascii_case("https"),
            _ => {}
        }
    }
    element
}

/// Splits at separators outside of quotes; `None` if a quote is not closed.
fn split_outside_quotes(text: &str, separator: char) -> Option<Vec<&str>> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if char == separator && !is_quoted => {
                pieces.push(text.get(begin..at)?);
                begin = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(text.get(begin..)?);
    (!is_quoted).then_some(pieces)
}

/// An address, with or without a port. Proxies may send `unknown` or an obfuscated identifier instead.
fn node(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    bare.parse().ok().or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let value = HeaderValue::from_str(value).unwrap();
            headers.append(HeaderName::from_static(name), value);
        }
        headers
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn trusted() -> TrustedProxies {
        TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
    }

    #[test]
    fn nobody_else_is_believed() {
        let forged = headers(&[
            ("x-forwarded-for", "198.51.100.1"),
            ("forwarded", "for=198.51.100.1;proto=https"),
            ("x-forwarded-proto", "https"),
        ]);
        let stranger = Peer { address: ip("192.0.2.7"), is_encrypted: false };
        assert_eq!(trusted().peer(ip("192.0.2.7"), &forged), stranger);
        assert_eq!(trusted().peer(ip("::ffff:192.0.2.7"), &forged), stranger);
        assert_eq!(
            TrustedProxies::new(Vec::new()).peer(ip("10.0.0.1"), &forged).address,
            ip("10.0.0.1")
        );
    }

    #[test]
    fn a_trusted_proxy_names_the_client() {
        for (pairs, client) in [
            (&[("x-forwarded-for", "198.51.100.1")][..], "198.51.100.1"),
            (&[("x-forwarded-for", "198.51.100.1:4711")], "198.51.100.1"),
            (&[("x-forwarded-for", "2001:db8::1")], "2001:db8::1"),
            (&[("x-forwarded-for", "[2001:db8::1]:4711")], "2001:db8::1"),
            (&[("x-forwarded-for", "::ffff:198.51.100.1")], "198.51.100.1"),
            // The client wrote the first one itself.
            (&[("x-forwarded-for", "203.0.113.9, 198.51.100.1")], "198.51.100.1"),
            (
                &[("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "198.51.100.1")],
                "198.51.100.1",
            ),
            (
                &[("x-forwarded-for", "203.0.113.9, 198.51.100.1, 10.0.0.2, fd00::3")],
                "198.51.100.1",
            ),
            (&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
            (&[("x-forwarded-for", "198.51.100.1, unknown")], "10.0.0.1"),
            (&[("x-forwarded-for", "198.51.100.1, unknown, 10.0.0.2")], "10.0.0.2"),
            (&[("x-forwarded-for", "")], "10.0.0.1"),
            (&[], "10.0.0.1"),
            (&[("forwarded", "for=198.51.100.1")], "198.51.100.1"),
            (&[("forwarded", "proto=https;FOR=\"[2001:db8::1]:4711\";by=10.0.0.1")], "2001:db8::1"),
            (&[("forwarded", "for=203.0.113.9, for=198.51.100.1;host=\"a,b;c\"")], "198.51.100.1"),
            (&[("forwarded", "for=_hidden")], "10.0.0.1"),
            (&[("forwarded", "for=\"198.51.100.1, for=203.0.113.9")], "10.0.0.1"),
            (
                &[("forwarded", "for=198.51.100.1"), ("x-forwarded-for", "198.51.100.1")],
                "198.51.100.1",
            ),
            (&[("forwarded", "for=203.0.113.9"), ("x-forwarded-for", "198.51.100.1")], "10.0.0.1"),
        ] {
            assert_eq!(
                trusted().peer(ip("10.0.0.1"), &headers(pairs)).address,
                ip(client),
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn a_trusted_proxy_says_whether_the_client_came_encrypted() {
        for (pairs, is_encrypted) in [
            (&[("x-forwarded-proto", "https")][..], true),
            (&[("x-forwarded-proto", "HTTPS")], true),
            (&[("x-forwarded-proto", "https, http")], false),
            (&[("x-forwarded-proto", "http"), ("x-forwarded-proto", "https")], true),
            (&[("forwarded", "for=198.51.100.1;proto=HTTPS")], true),
            (&[("forwarded", "for=198.51.100.1;proto=\"https\"")], true),
            (&[("forwarded", "proto=https, proto=http")], false),
            (&[], false),
        ] {
            let peer = trusted().peer(ip("10.0.0.1"), &headers(pairs));
            assert_eq!(peer.is_encrypted, is_encrypted, "{pairs:?}");
        }
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        assert_eq!(network_of(ip("2001:db8::1")), network_of(ip("2001:db8::2:3:4:5")));
        assert_ne!(network_of(ip("2001:db8::1")), network_of(ip("2001:db8:0:1::1")));
        assert_eq!(network_of(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
        assert_eq!(network_name(ip("2001:db8::1")), "2001:db8::/64");
        assert_eq!(network_name(ip("192.0.2.1")), "192.0.2.1");
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_it_panic(text in "[ -~]{0,80}") {
            let text = text.as_str();
            let all = headers(&[("forwarded", text), ("x-forwarded-for", text)]);
            trusted().peer(ip("10.0.0.1"), &all);
        }
    }
}
