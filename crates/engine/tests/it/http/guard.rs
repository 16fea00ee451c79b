//! The address guard: no connection is opened to an address that it refuses.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use fetchwell_engine::http::Client;
use fetchwell_policy::address::{AddressGuard, ResolveRule};
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault};
use fetchwell_policy::url::WebUrl;

use super::client::{client_knowing, failure, fetch};
use super::script::{Server, ok};

/// A public address. No test dials it.
const PUBLIC: &str = "93.184.216.34";

/// Public addresses only.
fn strict<const N: usize>(names: [(&str, &[&str]); N]) -> Client {
    client_knowing(names, |settings| settings.guard = AddressGuard::default())
}

async fn assert_refused(client: &Client, url: &str, part_of_reason: &str) {
    match failure(client, WebUrl::parse(url).unwrap()).await {
        FetchOutcome::Refused(why) => assert!(why.contains(part_of_reason), "{url}: {why}"),
        other => panic!("{url}: {other:?}"),
    }
}

#[tokio::test]
async fn literals_are_checked() {
    let canary = Server::canary().await;
    let port = canary.address.port();
    let client = strict([]);
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "0", "[::ffff:127.0.0.1]", "[::127.0.0.1]"] {
        for scheme in ["http", "https"] {
            assert_refused(&client, &format!("{scheme}://{host}:{port}/"), "--allow-private").await;
        }
    }
    assert_eq!(canary.seen().connections, 0);
}

#[tokio::test]
async fn ipv6_literals_are_checked() {
    let canary = Server::start_at(IpAddr::V6(Ipv6Addr::LOCALHOST), [vec![]]).await;
    let url = format!("http://{}/", canary.address);
    assert_refused(&strict([]), &url, "a loopback address").await;
    assert_eq!(canary.seen().connections, 0);
}

#[tokio::test]
async fn an_allowed_ipv6_literal_is_dialled() {
    let server = Server::start_at(
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        [super::script::answer(ok("", b"hello"))],
    )
    .await;
    let client = client_knowing([], |_| {});
    assert_eq!(fetch(&client, server.url("/")).await.body, "hello");
    let host = format!("\r\nhost: {}\r\n", server.address);
    assert!(server.seen().requests[0].contains(&host));
}

#[tokio::test]
async fn an_allowed_ipv4_range_does_not_let_mapped_addresses_in() {
    let canary = Server::canary().await;
    let client = client_knowing([], |_| {});
    let url = format!("http://[::ffff:127.0.0.1]:{}/", canary.address.port());
    assert_refused(&client, &url, "an IPv4-mapped address").await;
    assert_eq!(canary.seen().connections, 0);
}

/// The system takes "any address" for loopback: what was vetted is not what answers.
#[tokio::test]
async fn the_peer_must_be_the_address_that_was_vetted() {
    let server = Server::answering(ok("", b"hello")).await;
    let client = client_knowing([], |settings| {
        settings.guard = AddressGuard::new(vec!["0.0.0.0/8".parse().unwrap()]);
    });
    let url = WebUrl::parse(&format!("http://0.0.0.0:{}/", server.address.port())).unwrap();
    let expected = FetchOutcome::Network(NetworkFault::ConnectRefused);
    assert_eq!(failure(&client, url).await, expected);
    assert!(server.seen().requests.is_empty());
}

#[tokio::test]
async fn one_bad_address_spoils_a_name() {
    let canary = Server::canary().await;
    let client = strict([
        ("private.test", &["127.0.0.1"]),
        ("last.test", &[PUBLIC, "127.0.0.1"]),
        ("first.test", &["127.0.0.1", PUBLIC]),
        ("metadata.test", &[PUBLIC, "169.254.169.254"]),
        ("six.test", &[PUBLIC, "::1"]),
    ]);
    for name in ["private", "last", "first", "metadata", "six"] {
        let url = format!("http://{name}.test:{}/", canary.address.port());
        assert_refused(&client, &url, "--allow-private").await;
    }
    assert_eq!(canary.seen().connections, 0);
}

#[tokio::test]
async fn fixed_addresses_are_checked_too() {
    let canary = Server::canary().await;
    let client = client_knowing([], |settings| {
        settings.guard = AddressGuard::default();
        settings.resolve = vec![ResolveRule {
            pattern: "*.test".to_owned(),
            address: canary.address.ip(),
            port: Some(canary.address.port()),
        }];
    });
    assert_refused(&client, "http://www.test/", "a loopback address").await;
    assert_eq!(canary.seen().connections, 0);
}

#[tokio::test]
async fn a_site_without_pacing_is_dialled_at_private_addresses_only() {
    let server = Server::answering(ok("", b"hello")).await;
    let names = [
        ("public.test", &[PUBLIC][..]),
        ("mixed.test", &["127.0.0.1", PUBLIC]),
        ("home.test", &["127.0.0.1"]),
    ];
    let client = client_knowing(names, |settings| settings.private_only = Arc::new(|_| true));
    let port = server.address.port();
    for host in ["public.test", "mixed.test", PUBLIC] {
        assert_refused(&client, &format!("http://{host}:{port}/"), "--i-own-these-sites").await;
    }
    assert_eq!(server.seen().connections, 0);
    let home = WebUrl::parse(&format!("http://home.test:{port}/")).unwrap();
    assert_eq!(fetch(&client, home).await.body, "hello");
}
