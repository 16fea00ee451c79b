//! The address guard: which addresses may be connected to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Permits public addresses, and those that the operator allowed.
#[derive(Clone, Debug, Default)]
pub struct AddressGuard {
    allowed: Vec<IpNet>,
}

impl AddressGuard {
    /// A guard that also permits these ranges. If an IPv6 address embeds an IPv4 address, both must be permitted:
    /// allowing NAT64 gives access to the public internet through it, but not to private networks behind it.
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// Whether this address may be connected to.
    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        self.check_range(address)?;
        embedded_ipv4(address).map_or(Ok(()), |inner| self.check_range(inner.into()))
    }

    /// Whether a name with these addresses may be fetched. One refused address is enough to refuse them all, since a
    /// name that mixes public and private addresses is an attempt to get past the guard. An empty list is not refused:
    /// there is nothing to connect to, and the resolver reports that better.
    pub fn check_all(&self, addresses: &[IpAddr]) -> Result<(), Refusal> {
        addresses.iter().try_for_each(|&address| self.check(address))
    }

    fn check_range(&self, address: IpAddr) -> Result<(), Refusal> {
        match special_range(address) {
            Some((range, kind)) if !self.allows(address) => Err(Refusal { address, range, kind }),
            _ => Ok(()),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|range| range.contains(&address))
    }
}

/// Why an address may not be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {kind} ({range}); allow it with --allow-private {range}")]
pub struct Refusal {
    /// The address that was refused.
    pub address: IpAddr,
    /// The special range that contains it.
    pub range: IpNet,
    /// What the range is for, with its article: `a loopback address`.
    pub kind: &'static str,
}

/// Whether an address is an ordinary public one or embeds one, regardless of what the operator allowed.
pub fn is_public(address: IpAddr) -> bool {
    let is_ordinary = |address| special_range(address).is_none();
    is_ordinary(address) || embedded_ipv4(address).is_some_and(|inner| is_ordinary(inner.into()))
}

/// The IPv4 address that is embedded in an IPv6 one, to which a translator or tunnel would forward.
fn embedded_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        // The unspecified and the loopback address embed nothing.
        [0, 0, 0, 0, 0, 0] if g == 0 && h <= 1 => None,
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] => Some(joined(g, h)),
        [0x64, 0xff9b, 0, 0, 0, 0] | [0x64, 0xff9b, 1, _, _, _] => Some(joined(g, h)),
        [0x2002, high, low, _, _, _] => Some(joined(high, low)),
        // Teredo inverts the bits of the address to hide it from NATs.
        [0x2001, 0, _, _, _, _] => Some(joined(!g, !h)),
        _ => None,
    }
}

fn special_range(address: IpAddr) -> Option<(IpNet, &'static str)> {
    let listed = SPECIAL_RANGES.iter().find(|(range, _)| range.contains(&address));
    listed.copied().or_else(|| match address {
        IpAddr::V6(v6) if !GLOBAL_UNICAST.contains(&v6) => {
            Some((IpNet::from(address), "outside 2000::/3, the public part of IPv6"))
        }
        _ => None,
    })
}

const GLOBAL_UNICAST: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The IANA special-purpose address registries, and special ranges from other registries (multicast, IPv4-compatible
/// and IPv4-translated addresses). Blocks that IANA calls globally reachable are included, because they serve
/// infrastructure and not web sites. The first match counts, so a range comes before the one that contains it.
const SPECIAL_RANGES: [(IpNet, &str); 42] = [
    (v4([0, 0, 0, 0], 8), "an address of \"this network\""),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([100, 64, 0, 0], 10), "a shared address behind a carrier's NAT"),
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    (v4([168, 63, 129, 16], 32), "the host service of the Azure cloud"),
    (v4([169, 254, 0, 0], 16), "a link-local address, as cloud metadata services have"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 0, 0, 0], 24), "an address for IETF protocols"),
    (v4([192, 0, 2, 0], 24), "a documentation address"),
    (v4([192, 31, 196, 0], 24), "an AS112 DNS sink"),
    (v4([192, 52, 193, 0], 24), "a multicast tunnel relay"),
    (v4([192, 88, 99, 0], 24), "a 6to4 relay"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([192, 175, 48, 0], 24), "an AS112 DNS sink"),
    (v4([198, 18, 0, 0], 15), "a benchmarking address"),
    (v4([198, 51, 100, 0], 24), "a documentation address"),
    (v4([203, 0, 113, 0], 24), "a documentation address"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([255, 255, 255, 255], 32), "the broadcast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "the unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "an IPv4-compatible address"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "an IPv4-mapped address"),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), "an IPv4-translated address"),
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), "a NAT64 address"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "a local NAT64 address"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "a discard-only address"),
    (v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64), "a dummy address"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "a Teredo address"),
    (v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), "a benchmarking address"),
    (v6([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28), "an ORCHID, not an address to dial"),
    (v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28), "an ORCHID, not an address to dial"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "an address for IETF protocols"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "a documentation address"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "a 6to4 address"),
    (v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), "an AS112 DNS sink"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "a documentation address"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "a segment-routing identifier"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a unique local address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

const fn v4([a, b, c, d]: [u8; 4], prefix_bits: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_bits))
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix_bits: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix_bits))
}

/// Maps the hosts of a pattern to an address, instead of DNS: `*.test=127.0.0.1:8099`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveRule {
    /// A host, `*.` and a suffix, or `*`; in lower case.
    pub pattern: String,
    /// The address to connect to.
    pub address: IpAddr,
    /// The port to connect to; `None` for the port of the URL.
    pub port: Option<u16>,
}

impl ResolveRule {
    /// Whether the rule applies to this host.
    pub fn matches(&self, host: &str) -> bool {
        match self.pattern.strip_prefix('*') {
            Some("") => true,
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => self.pattern == host,
        }
    }
}

impl fmt::Display for ResolveRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}=", self.pattern)?;
        match self.port {
            Some(port) => write!(out, "{}", SocketAddr::new(self.address, port)),
            None => write!(out, "{}", self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each range with addresses in it: its first, its last, and what people meet in between.
    const REFUSED: [(&str, &[&str]); 46] = [
        ("0.0.0.0/8", &["0.0.0.0", "0.0.0.1", "0.255.255.255"]),
        ("10.0.0.0/8", &["10.0.0.0", "10.1.2.3", "10.255.255.255"]),
        ("100.64.0.0/10", &["100.64.0.0", "100.100.100.200", "100.127.255.255"]),
        ("127.0.0.0/8", &["127.0.0.0", "127.0.0.1", "127.0.0.53", "127.255.255.255"]),
        ("168.63.129.16/32", &["168.63.129.16"]),
        ("169.254.0.0/16", &["169.254.0.0", "169.254.169.254", "169.254.255.255"]),
        ("172.16.0.0/12", &["172.16.0.0", "172.17.0.1", "172.31.255.255"]),
        ("192.0.0.0/24", &["192.0.0.0", "192.0.0.9", "192.0.0.192", "192.0.0.255"]),
        ("192.0.2.0/24", &["192.0.2.0", "192.0.2.255"]),
        ("192.31.196.0/24", &["192.31.196.0", "192.31.196.255"]),
        ("192.52.193.0/24", &["192.52.193.0", "192.52.193.255"]),
        ("192.88.99.0/24", &["192.88.99.0", "192.88.99.1", "192.88.99.255"]),
        ("192.168.0.0/16", &["192.168.0.0", "192.168.1.1", "192.168.255.255"]),
        ("192.175.48.0/24", &["192.175.48.0", "192.175.48.255"]),
        ("198.18.0.0/15", &["198.18.0.0", "198.19.255.255"]),
        ("198.51.100.0/24", &["198.51.100.0", "198.51.100.255"]),
        ("203.0.113.0/24", &["203.0.113.0", "203.0.113.255"]),
        ("224.0.0.0/4", &["224.0.0.0", "224.0.0.1", "239.255.255.255"]),
        ("240.0.0.0/4", &["240.0.0.0", "255.255.255.254"]),
        ("255.255.255.255/32", &["255.255.255.255"]),
        ("::/128", &["::"]),
        ("::1/128", &["::1"]),
        ("::/96", &["::2", "::127.0.0.1", "::8.8.8.8", "::255.255.255.255"]),
        ("::ffff:0:0/96", &["::ffff:0.0.0.0", "::ffff:127.0.0.1", "::ffff:8.8.8.8"]),
        ("::ffff:0:0:0/96", &["::ffff:0:10.0.0.1", "::ffff:0:8.8.8.8"]),
        ("64:ff9b::/96", &["64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8"]),
        ("64:ff9b:1::/48", &["64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:808:808"]),
        ("100::/64", &["100::", "100::ffff:ffff:ffff:ffff"]),
        ("100:0:0:1::/64", &["100:0:0:1::1"]),
        ("2001::/32", &["2001::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"]),
        ("2001:2::/48", &["2001:2::", "2001:2:0:ffff::"]),
        ("2001:10::/28", &["2001:10::", "2001:1f:ffff::"]),
        ("2001:20::/28", &["2001:20::", "2001:2f:ffff::"]),
        ("2001::/23", &["2001:1::1", "2001:3::", "2001:4:112::", "2001:30::", "2001:1ff:ffff::"]),
        ("2001:db8::/32", &["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"]),
        ("2002::/16", &["2002::", "2002:7f00:1::", "2002:808:808::1", "2002:ffff:ffff::"]),
        ("2620:4f:8000::/48", &["2620:4f:8000::", "2620:4f:8000:ffff::"]),
        ("3fff::/20", &["3fff::", "3fff:fff:ffff::"]),
        ("5f00::/16", &["5f00::", "5f00:ffff::"]),
        ("fc00::/7", &["fc00::", "fd00:ec2::254", "fd20:ce::254", "fdff:ffff::"]),
        ("fe80::/10", &["fe80::", "fe80::1", "febf:ffff::"]),
        ("ff00::/8", &["ff00::", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]),
        ("fec0::1/128", &["fec0::1"]),
        ("64:ff9b:2::/128", &["64:ff9b:2::"]),
        ("1fff:ffff::/128", &["1fff:ffff::"]),
        ("4000::/128", &["4000::"]),
    ];

    /// The neighbours of the special ranges, and some well-known addresses.
    const PUBLIC: [&str; 56] = [
        "1.0.0.0",
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.1.255",
        "192.0.3.0",
        "192.31.195.255",
        "192.31.197.0",
        "192.52.192.255",
        "192.52.194.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "192.175.47.255",
        "192.175.49.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2000::",
        "2000:ffff::1",
        "2001:200::",
        "2001:4860:4860::8888",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::",
        "2400:cb00::1",
        "2606:4700:4700::1111",
        "2620:4f:7fff::",
        "2620:4f:8001::",
        "2620:fe::fe",
        "2800:3f0::1",
        "2a00:1450:4001::200e",
        "2c0f:fb50::1",
        "2001:67c:2e8::1",
        "3ffe:ffff::",
        "3fff:1000::",
        "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ];

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn range(text: &str) -> IpNet {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn special_addresses_are_refused_by_their_range() {
        let guard = AddressGuard::default();
        for (text, addresses) in REFUSED {
            for member in addresses {
                let refusal = guard.check(address(member)).unwrap_err();
                assert_eq!(refusal.range, range(text), "{member}");
            }
        }
        let cases = REFUSED.iter().map(|(_, addresses)| addresses.len()).sum::<usize>();
        assert!(cases >= 100, "{cases}");
    }

    #[test]
    fn public_addresses_pass() {
        for text in PUBLIC {
            assert_eq!(AddressGuard::default().check(address(text)), Ok(()));
            assert!(is_public(address(text)), "{text}");
        }
    }

    #[test]
    fn every_special_range_is_in_the_table() {
        for (special, kind) in SPECIAL_RANGES {
            assert!(REFUSED.iter().any(|(text, _)| range(text) == special), "{special} {kind}");
            assert_eq!(special, special.trunc(), "{kind}");
        }
    }

    #[test]
    fn following_the_advice_of_each_refusal_opens_the_address() {
        for member in REFUSED.iter().flat_map(|(_, addresses)| addresses.iter()) {
            let mut allowed = Vec::new();
            while let Err(refusal) = AddressGuard::new(allowed.clone()).check(address(member)) {
                let advice = refusal.to_string();
                let (_, advised) = advice.split_once("--allow-private ").unwrap();
                assert!(!allowed.contains(&range(advised)), "{member}: {advice}");
                allowed.push(range(advised));
            }
            assert!((1..=2).contains(&allowed.len()), "{member}: {allowed:?}");
        }
    }

    #[test]
    fn a_refusal_says_why_and_what_to_do() {
        assert_eq!(
            AddressGuard::default().check(address("127.0.0.1")).unwrap_err().to_string(),
            "127.0.0.1 is a loopback address (127.0.0.0/8); \
             allow it with --allow-private 127.0.0.0/8"
        );
    }

    #[test]
    fn an_allowed_range_opens_nothing_else() {
        let guard = AddressGuard::new(vec![range("127.0.0.0/8"), range("10.1.0.0/16")]);
        for allowed in ["127.0.0.1", "127.9.9.9", "10.1.2.3", "8.8.8.8"] {
            assert_eq!(guard.check(address(allowed)), Ok(()));
        }
        let wrapped = ["::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::"];
        for refused in ["10.2.0.0", "192.168.0.1", "::1"].into_iter().chain(wrapped) {
            assert!(guard.check(address(refused)).is_err(), "{refused}");
        }
    }

    /// Each IPv6 form around an IPv4 address, and the range that holds the form.
    const AROUND: [(&str, &str, &str); 8] = [
        ("::ffff:127.0.0.1", "::ffff:0:0/96", "127.0.0.1"),
        ("::10.0.0.1", "::/96", "10.0.0.1"),
        ("::ffff:0:169.254.169.254", "::ffff:0:0:0/96", "169.254.169.254"),
        ("64:ff9b::192.168.1.1", "64:ff9b::/96", "192.168.1.1"),
        ("64:ff9b:1::172.16.0.1", "64:ff9b:1::/48", "172.16.0.1"),
        ("2002:7f00:1::", "2002::/16", "127.0.0.1"),
        ("2002:a00:1::8.8.8.8", "2002::/16", "10.0.0.1"),
        ("2001:0:808:808::f5ff:fffe", "2001::/32", "10.0.0.1"),
    ];

    #[test]
    fn an_address_around_another_needs_leave_for_both() {
        for (text, form, inner) in AROUND {
            let outer = address(text);
            let both = vec![range(form), address(inner).into()];
            let refusal = AddressGuard::new(vec![range(form)]).check(outer).unwrap_err();
            assert_eq!(refusal.address, address(inner), "{text}");
            let refusal = AddressGuard::new(vec![both[1]]).check(outer).unwrap_err();
            assert_eq!(refusal.range, range(form), "{text}");
            assert_eq!(AddressGuard::new(both).check(outer), Ok(()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn in_a_form_that_is_allowed_the_inner_address_decides(
            inner in any::<Ipv4Addr>(), noise in any::<u128>(), kind in 0..7usize,
        ) {
            let low = u128::from(u32::from(inner));
            let high = u128::from(u32::from(inner)) << 80;
            let (outer, form) = [
                (0xffff << 32 | low, "::ffff:0:0/96"),
                (0xffff << 48 | low, "::ffff:0:0:0/96"),
                (0x64_ff9b << 96 | low, "64:ff9b::/96"),
                (0x64_ff9b_0001 << 80 | noise >> 48 & !0xffff_ffff | low, "64:ff9b:1::/48"),
                (0x2002 << 112 | high | noise >> 48, "2002::/16"),
                (0x2001 << 112 | noise >> 32 & !0xffff_ffff | !low & 0xffff_ffff, "2001::/32"),
                (low.max(2), "::/96"),
            ][kind];
            let outer = IpAddr::V6(Ipv6Addr::from_bits(outer));
            let inner = if kind == 6 { Ipv4Addr::from_bits(u32::from(inner).max(2)) } else { inner };
            prop_assert!(range(form).contains(&outer), "{outer} {form}");
            prop_assert!(AddressGuard::default().check(outer).is_err());
            let through = AddressGuard::new(vec![range(form)]).check(outer);
            prop_assert_eq!(through, AddressGuard::default().check(inner.into()));
        }
    }

    #[test]
    fn allowing_a_translator_reaches_the_public_internet_through_it() {
        for (form, text) in [
            ("64:ff9b::/96", "64:ff9b::8.8.8.8"),
            ("::ffff:0:0/96", "::ffff:8.8.8.8"),
            ("2002::/16", "2002:808:808::1"),
        ] {
            assert_eq!(AddressGuard::new(vec![range(form)]).check(address(text)), Ok(()));
            assert!(is_public(address(text)), "{text}: it must be paced like any public address");
        }
        for private in ["127.0.0.1", "::1", "::", "64:ff9b::10.0.0.1", "fd00::1", "2002:a00:1::"] {
            assert!(!is_public(address(private)), "{private}");
        }
    }

    #[test]
    fn one_bad_address_spoils_them_all() {
        let guard = AddressGuard::default();
        let [public, other, private] = ["8.8.8.8", "2606:4700::1", "10.0.0.1"].map(address);
        assert_eq!(guard.check_all(&[]), Ok(()));
        assert_eq!(guard.check_all(&[public, other]), Ok(()));
        let refusal = guard.check_all(&[public, private, other]).unwrap_err();
        assert_eq!(refusal.address, private);
    }

    #[test]
    fn patterns_match_names_and_suffixes() {
        let rule = |pattern: &str| ResolveRule {
            pattern: pattern.into(),
            address: IpAddr::from([127, 0, 0, 1]),
            port: None,
        };
        for (pattern, host, expected) in [
            ("a.test", "a.test", true),
            ("a.test", "b.a.test", false),
            ("*.test", "a.test", true),
            ("*.test", "a.b.test", true),
            ("*.test", "test", false),
            ("*.test", ".test", false),
            ("*", "anything", true),
        ] {
            assert_eq!(rule(pattern).matches(host), expected, "{pattern} {host}");
        }
    }
}
