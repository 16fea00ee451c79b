//! URLs that hide an address, a port or a scheme: each ends as what it means, and is judged as that.

use std::net::IpAddr;

use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::url::{Scheme, UrlFault, WebUrl};

/// What stands where the host should be, and the address that it means.
const HIDDEN: [(&str, &str); 64] = [
    // Numbers of every base, and fewer than four of them.
    ("2130706433", "127.0.0.1"),
    ("0x7f000001", "127.0.0.1"),
    ("0X7F000001", "127.0.0.1"),
    ("017700000001", "127.0.0.1"),
    ("00000000000000000017700000001", "127.0.0.1"),
    ("127.1", "127.0.0.1"),
    ("127.0.1", "127.0.0.1"),
    ("0x7f.1", "127.0.0.1"),
    ("0x7f.0x0.0x0.0x1", "127.0.0.1"),
    ("0177.0.0.1", "127.0.0.1"),
    ("0177.0x0.0.01", "127.0.0.1"),
    ("0127.0.0.1", "87.0.0.1"),
    ("127.0x1", "127.0.0.1"),
    ("127.0xffffff", "127.255.255.255"),
    ("0", "0.0.0.0"),
    ("0x", "0.0.0.0"),
    ("0x0", "0.0.0.0"),
    ("00", "0.0.0.0"),
    ("0.0", "0.0.0.0"),
    ("0000.0000.0000.0000", "0.0.0.0"),
    ("4294967295", "255.255.255.255"),
    ("0xffffffff", "255.255.255.255"),
    ("167772161", "10.0.0.1"),
    ("10.1", "10.0.0.1"),
    ("012.1", "10.0.0.1"),
    ("0xa.0x01", "10.0.0.1"),
    ("3232235777", "192.168.1.1"),
    ("192.168.257", "192.168.1.1"),
    ("0xc0.0xa8.0x1.0x1", "192.168.1.1"),
    ("2852039166", "169.254.169.254"),
    ("0xA9FEA9FE", "169.254.169.254"),
    ("0251.0376.0251.0376", "169.254.169.254"),
    ("169.254.43518", "169.254.169.254"),
    ("0xa9.16689662", "169.254.169.254"),
    ("1684301000", "100.100.100.200"),
    // Dots that end it, and dots of other scripts.
    ("127.0.0.1.", "127.0.0.1"),
    ("127.0.0.1...", "127.0.0.1"),
    ("127.1.", "127.0.0.1"),
    ("2130706433.", "127.0.0.1"),
    ("127。0。0。1", "127.0.0.1"),
    ("127．0．0．1", "127.0.0.1"),
    ("127｡0｡0｡1", "127.0.0.1"),
    ("127.0.0.1。", "127.0.0.1"),
    ("127.0.0.1%2e", "127.0.0.1"),
    // Digits of other alphabets, escapes, and characters that vanish.
    ("１２７.０.０.１", "127.0.0.1"),
    ("①②⑦.⓪.⓪.①", "127.0.0.1"),
    ("𝟙𝟚𝟟.𝟘.𝟘.𝟙", "127.0.0.1"),
    ("¹²⁷.⁰.⁰.¹", "127.0.0.1"),
    ("０ｘ７ｆ.1", "127.0.0.1"),
    ("127.0.0.1\u{ad}", "127.0.0.1"),
    ("1\u{200b}27.0.0.1", "127.0.0.1"),
    ("12\t7.0.0.\n1", "127.0.0.1"),
    ("%31%32%37.0.0.1", "127.0.0.1"),
    ("%31%36%39%2e%32%35%34%2e169.254", "169.254.169.254"),
    ("%EF%BC%91%EF%BC%92%EF%BC%97.1", "127.0.0.1"),
    // IPv6, short and long.
    ("[::1]", "::1"),
    ("[0:0:0:0:0:0:0:1]", "::1"),
    ("[0000:0000:0000:0000:0000:0000:0000:0001]", "::1"),
    ("[::]", "::"),
    ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
    ("[::FFFF:7F00:1]", "::ffff:127.0.0.1"),
    ("[::127.0.0.1]", "::127.0.0.1"),
    ("[64:ff9b::169.254.169.254]", "64:ff9b::169.254.169.254"),
    ("[FD00:EC2::254]", "fd00:ec2::254"),
];

#[test]
fn a_hidden_address_is_the_literal_that_it_means_and_guarded_as_such() {
    let page = WebUrl::parse("https://example.com/page").unwrap();
    for (host, meant) in HIDDEN {
        let meant: IpAddr = meant.parse().unwrap();
        let direct = WebUrl::parse(&format!("http://{host}:8080/x")).unwrap();
        let redirected = page.join(&format!("//{host}/x")).unwrap();
        let backslashed = page.join(&format!("\\\\{host}\\x")).unwrap();
        for url in [direct, redirected, backslashed] {
            assert_eq!(url.host_ip(), Some(meant), "{host}: {url}");
            let is_refused = AddressGuard::default().check(meant).is_err();
            assert_eq!(is_refused, meant != IpAddr::from([87, 0, 0, 1]), "{host}: {url}");
        }
    }
}

#[test]
fn what_is_nearly_an_address_is_none_and_no_name_either() {
    for host in [
        "4294967296",
        "256.0.0.1",
        "127.0.0.256",
        "1.2.3.4.5",
        "0x100000000",
        "08.0.0.1",
        "name.127",
        "name.0x7f",
        "127.0.0.1.127",
        "127..0.1",
        "127.0.0.1%00",
        "127.0.0.1%0a",
        "127.0.0.1%20",
        "127.0.0.1%2f",
        "127.0.0.1%23",
        "[::1%25lo]",
        "[::1%lo]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[::ffff:127.1]",
        "[::ffff:0x7f.0.0.1]",
        "[::1]x",
        "[127.0.0.1]",
        "[v1.x]",
    ] {
        let url = format!("http://{host}/");
        assert!(matches!(WebUrl::parse(&url), Err(UrlFault::Unparsable(_))), "{url}");
    }
}

#[test]
fn the_host_is_what_stands_after_all_tricks() {
    for (written, host) in [
        ("http://example.com\\@127.0.0.1/", Some("example.com")),
        ("http://example.com/@127.0.0.1/", Some("example.com")),
        ("http://example.com?@127.0.0.1/", Some("example.com")),
        ("http://example.com#@127.0.0.1/", Some("example.com")),
        ("http:127.0.0.1", Some("127.0.0.1")),
        ("http:/127.0.0.1", Some("127.0.0.1")),
        ("http:\\\\127.0.0.1", Some("127.0.0.1")),
        ("http://127.0.0.1:80\\@example.com/", Some("127.0.0.1")),
        ("http://example.com@127.0.0.1/", None),
        ("http://example.com%40127.0.0.1/", None),
        ("http://example.com:80@127.0.0.1/", None),
        ("http://example.com:@127.0.0.1/", None),
        ("http://127.0.0.1@example.com/", None),
        ("https://:@127.0.0.1/", Some("127.0.0.1")),
    ] {
        let found = WebUrl::parse(written).ok();
        assert_eq!(found.as_ref().map(WebUrl::host), host, "{written}");
    }
}

#[test]
fn other_schemes_are_refused_directly_and_by_redirect() {
    let page = WebUrl::parse("https://example.com/page").unwrap();
    for written in [
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "ftp://example.com/",
        "gopher://127.0.0.1:6379/_x",
        "dict://127.0.0.1:11211/stat",
        "ldap://127.0.0.1/",
        "jar:http://127.0.0.1!/",
        "ws://example.com/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "blob:https://example.com/x",
        "view-source:http://example.com/",
        "unix:/run/docker.sock",
    ] {
        let is_refused =
            |url: Result<WebUrl, _>| matches!(url, Err(UrlFault::UnsupportedScheme(_)));
        assert!(is_refused(WebUrl::parse(written)), "{written}");
        assert!(is_refused(page.join(written)), "{written}");
    }
    assert_eq!(WebUrl::parse("HtTpS://example.com").unwrap().scheme(), Scheme::Https);
}

/// "Bad port" in the Fetch standard (block bad port, step 4), first to last.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

#[test]
fn exactly_the_ports_that_browsers_block_are_refused_directly_and_by_redirect() {
    let page = WebUrl::parse("https://example.com/page").unwrap();
    for port in 0..=u16::MAX {
        let expected = BAD_PORTS.contains(&port).then_some(UrlFault::BlockedPort(port));
        let written = format!("http://example.com:{port}/");
        assert_eq!(WebUrl::parse(&written).err(), expected);
        assert_eq!(page.join(&written).err(), expected);
    }
    assert_eq!(page.join("//example.com:00025/"), Err(UrlFault::BlockedPort(25)));
    assert_eq!(page.join("//127.1:6000"), Err(UrlFault::BlockedPort(6000)));
}
