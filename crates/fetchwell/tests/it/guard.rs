//! The built program in a network where every address answers: it goes where it may, and nowhere else.

use std::collections::HashMap;
use std::net::IpAddr;

use fetchwell_testkit::canary::Canary;
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::dns::{DnsServer, Script};
use fetchwell_testkit::namespace;
use serde_json::Value;

/// Where the harmless names are.
pub(crate) const HOME: &str = "93.184.216.34";

/// Each URL, what becomes of it, and a part of the reason.
pub(crate) const CASES: [(&str, &str, &str); 49] = [
    ("http://ok.test/", "fetched", ""),
    ("http://93.184.216.34/", "fetched", ""),
    ("http://1572395042/", "fetched", ""),
    ("http://0x5d.0xb8.0xd8.0x22/", "fetched", ""),
    ("http://five.test/hops?5", "fetched", ""),
    ("http://six.test/hops?6", "url_failure", "more redirects than http.max_redirects"),
    ("http://to-ok.test/to?http://ok.test/", "fetched", ""),
    ("http://pinned.test/", "fetched", ""),
    ("http://127.0.0.1/", "refused", "a loopback address"),
    ("http://2130706433/", "refused", "a loopback address"),
    ("http://0x7f.1/", "refused", "a loopback address"),
    ("http://0177.0.0.1/", "refused", "a loopback address"),
    ("http://127.1/", "refused", "a loopback address"),
    ("http://127.0.0.1./", "refused", "a loopback address"),
    ("http://１２７.0.0.1/", "refused", "a loopback address"),
    ("http://127。0。0。1/", "refused", "a loopback address"),
    ("http://%31%32%37.0.0.1/", "refused", "a loopback address"),
    ("http://0/", "refused", "this network"),
    ("http://localhost/", "refused", "a loopback address"),
    ("http://sub.localhost/", "refused", "a loopback address"),
    ("http://inside.test/", "refused", "a private address"),
    ("http://10.1/", "refused", "a private address"),
    ("http://192.168.257/", "refused", "a private address"),
    ("http://169.254.169.254/latest/meta-data/", "refused", "a link-local address"),
    ("http://0xA9FEA9FE/", "refused", "a link-local address"),
    ("http://100.100.100.200/", "refused", "a shared address"),
    ("http://168.63.129.16/", "refused", "the host service"),
    ("http://255.255.255.255/", "refused", "the broadcast address"),
    ("http://[::1]/", "refused", "a loopback address"),
    ("http://[::]/", "refused", "the unspecified address"),
    ("http://[::ffff:8.8.8.8]/", "refused", "an IPv4-mapped address"),
    ("http://[::8.8.8.8]/", "refused", "an IPv4-compatible address"),
    ("http://[64:ff9b::8.8.8.8]/", "refused", "a NAT64 address"),
    ("http://[2002:808:808::1]/", "refused", "a 6to4 address"),
    ("http://[fd00:ec2::254]/", "refused", "a unique local address"),
    ("http://[::1%25lo]/", "refused", "not a valid URL"),
    ("http://user:secret@ok.test/", "refused", "a user name or password"),
    ("ftp://ok.test/", "refused", "not fetched"),
    ("http://ok.test:22/", "refused", "port 22 is blocked"),
    ("http://bad.test/", "refused", "a private address"),
    ("http://mixed.test/", "refused", "a loopback address"),
    ("http://a.to.test/to?http://10.0.0.1/", "refused", "a private address"),
    ("http://b.to.test/to?http://0x7f.1/", "refused", "a loopback address"),
    ("http://c.to.test/to?//mixed.test/", "refused", "a loopback address"),
    ("http://d.to.test/to?http://ok.test:6000/", "refused", "port 6000 is blocked"),
    ("http://e.to.test/to?http://me:secret@ok.test/", "refused", "a user name or password"),
    ("http://robots.test/", "fetched", ""),
    ("http://nosuch.test/", "url_failure", "it does not exist"),
    ("http://fails.test/", "site_failure", "the name server failed"),
];

/// The URLs that are refused.
pub(crate) fn refused() -> impl Iterator<Item = &'static str> {
    CASES.into_iter().filter(|(_, outcome, _)| *outcome == "refused").map(|(url, ..)| url)
}

#[test]
fn the_program_goes_where_it_may_and_nowhere_else() {
    if namespace::is_inside("guard::the_program_goes_where_it_may_and_nowhere_else") {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(fetch_all_and_judge());
    }
}

/// A web server on every address, and the name server for the names in [`CASES`].
pub(crate) async fn trap() -> (Canary, DnsServer) {
    let to_the_inside = ("robots.test".to_owned(), "http://10.0.0.1/robots.txt".to_owned());
    let sitemaps = refused().map(|url| format!("Sitemap: {url}\n")).collect();
    let texts = HashMap::from([("sitemaps.test/robots.txt".to_owned(), sitemaps)]);
    let canary = Canary::start_with(HashMap::from([to_the_inside]), texts).await;
    let canary = canary.expect("a canary");
    let home = || Script::addresses(&[HOME]);
    let names = [
        ("bad.test", Script::addresses(&["10.0.0.1"])),
        ("mixed.test", Script::addresses(&[HOME, "127.0.0.1"])),
        ("nosuch.test", Script::NoSuchName(None)),
        ("fails.test", Script::Fails),
        ("*.test", home()),
        ("*.to.test", home()),
    ];
    (canary, DnsServer::start(names).await.expect("a DNS server"))
}

/// The program in that trap.
pub(crate) fn program_in(trap: &DnsServer) -> Program {
    let proxy = "http://10.9.9.9:80";
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .variable("FETCHWELL_DNS__SERVERS", &trap.address.to_string())
        .variable("FETCHWELL_RATE", "200")
        .variable("FETCHWELL_ROBOTS__UNREACHABLE", "allow")
        .variable("http_proxy", proxy)
        .variable("HTTP_PROXY", proxy)
        .variable("ALL_PROXY", proxy)
}

async fn fetch_all_and_judge() {
    let (canary, server) = trap().await;
    let program = program_in(&server);
    let urls = CASES.map(|(url, ..)| url);
    let options = ["fetch", "--give-up-after", "1s", "--json"];
    let ended = program.run(&[&options[..], &urls].concat()).await.expect_code(4);
    let rows: HashMap<String, Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")))
        .map(|row| (row["url"].as_str().unwrap_or_default().to_owned(), row))
        .collect();
    assert_eq!(rows.len(), CASES.len(), "{}", ended.stdout);
    for (url, outcome, part_of_reason) in CASES {
        let row = &rows[url];
        assert_eq!(row["outcome"], outcome, "{url}: {row}");
        let reason = row["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(part_of_reason) && !reason.contains("secret"), "{url}: {reason}");
    }
    let dialled = canary.connections().await.expect("the canary's count");
    let home: IpAddr = HOME.parse().expect("an address");
    assert_eq!(Vec::from_iter(dialled.into_keys()), [home]);
}
