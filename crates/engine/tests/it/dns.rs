//! Names are looked up at a real DNS server that follows a script, over loopback.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fetchwell_engine::http::{Client, HttpSettings};
use fetchwell_policy::outcome::{FetchOutcome, NameFault, NetworkFault};
use fetchwell_policy::url::WebUrl;
use fetchwell_testkit::client;
use fetchwell_testkit::dns::{DnsServer, Script};
use futures::future::join_all;

/// What a lookup that is never answered may take.
const SHORT: Duration = Duration::from_millis(500);

async fn server<const N: usize>(names: [(&str, Script); N]) -> DnsServer {
    DnsServer::start(names).await.unwrap()
}

fn asking(server: &DnsServer) -> Client {
    asking_with(server, |_| {})
}

fn asking_with(server: &DnsServer, change: impl FnOnce(&mut HttpSettings)) -> Client {
    let mut settings = client::settings(&[server.address]);
    change(&mut settings);
    client::client(settings)
}

/// The addresses of a host as text, or what happened instead.
async fn addresses(client: &Client, host: &str) -> Result<Vec<String>, FetchOutcome> {
    let url = WebUrl::parse(&format!("http://{host}/")).unwrap();
    let found = client.addresses(&url).await?;
    Ok(found.iter().map(|at: &SocketAddr| at.ip().to_string()).collect())
}

async fn fault(client: &Client, host: &str) -> NameFault {
    match addresses(client, host).await {
        Err(FetchOutcome::Network(NetworkFault::Dns(fault))) => fault,
        other => panic!("{host}: {other:?}"),
    }
}

fn so_many(count: u8) -> Vec<IpAddr> {
    (0..count).map(|last| IpAddr::from([8, 8, 8, last])).collect()
}

#[tokio::test]
async fn addresses_of_both_families_are_found_and_take_turns() {
    let server = server([
        ("both.test", Script::addresses(&["8.8.8.8", "8.8.4.4", "2606:4700::1", "1.1.1.1"])),
        ("four.test", Script::addresses(&["8.8.8.8"])),
        ("six.test", Script::addresses(&["2606:4700::1", "2606:4700::2"])),
        ("*.wild.test", Script::addresses(&["9.9.9.9"])),
    ])
    .await;
    let client = asking(&server);
    for (host, expected) in [
        ("both.test", &["8.8.8.8", "2606:4700::1", "8.8.4.4", "1.1.1.1"][..]),
        ("four.test", &["8.8.8.8"]),
        ("six.test", &["2606:4700::1", "2606:4700::2"]),
        ("FOUR.test.", &["8.8.8.8"]),
        ("a.b.wild.test", &["9.9.9.9"]),
    ] {
        assert_eq!(addresses(&client, host).await.unwrap(), expected, "{host}");
    }
}

#[tokio::test]
async fn every_failure_says_its_reason() {
    let server = server([
        ("no.test", Script::NoSuchName(Some(30))),
        ("empty.test", Script::NoRecords),
        ("fails.test", Script::Fails),
        ("silent.test", Script::Silent),
        ("forged.test", Script::WrongId(so_many(1))),
        ("dangling.test", Script::Alias("no.test".to_owned())),
        ("huge.test", Script::Addresses((0..8).flat_map(|_| so_many(250)).collect(), 60)),
        ("many.test", Script::Addresses(so_many(65), 60)),
    ])
    .await;
    let client = asking_with(&server, |settings| settings.dns.timeout = SHORT);
    for (host, expected, words) in [
        ("no.test", NameFault::NoSuchName, "it does not exist"),
        ("unheard-of.test", NameFault::NoSuchName, "it does not exist"),
        ("dangling.test", NameFault::NoSuchName, "it does not exist"),
        ("empty.test", NameFault::NoAddress, "it has no address"),
        ("fails.test", NameFault::ServerFailed, "the name server failed or refuses"),
        ("silent.test", NameFault::TimedOut, "no name server answered within dns.timeout"),
        ("forged.test", NameFault::TimedOut, "no name server answered within dns.timeout"),
        ("huge.test", NameFault::TooManyAddresses, "more addresses than a web site has"),
        ("many.test", NameFault::TooManyAddresses, "more addresses than a web site has"),
    ] {
        let found = fault(&client, host).await;
        assert_eq!(found, expected, "{host}");
        let reason = FetchOutcome::Network(NetworkFault::Dns(found)).to_string();
        assert!(reason.contains("could not be resolved") && reason.contains(words), "{reason}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_ends_in_time() {
    let server = server([
        ("garbage.test", Script::Garbage),
        ("loop.test", Script::Alias("pool.test".to_owned())),
        ("pool.test", Script::Alias("loop.test".to_owned())),
        ("self.test", Script::Alias("self.test".to_owned())),
    ])
    .await;
    let client = asking_with(&server, |settings| settings.dns.timeout = SHORT);
    for host in ["garbage.test", "loop.test", "self.test"] {
        let found = fault(&client, host).await;
        let expected = [NameFault::Nonsense, NameFault::TimedOut, NameFault::NoAddress];
        assert!(expected.contains(&found), "{host}: {found:?}");
    }
}

#[tokio::test]
async fn without_a_server_names_fail_and_literals_work() {
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut settings = client::settings(&[nobody]);
    settings.dns.timeout = SHORT;
    let client = client::client(settings);
    let found = fault(&client, "a.test").await;
    assert!([NameFault::NoServer, NameFault::TimedOut].contains(&found), "{found:?}");
    assert_eq!(addresses(&client, "8.8.8.8").await.unwrap(), ["8.8.8.8"]);
}

#[tokio::test]
async fn one_family_is_enough_when_the_other_is_never_answered() {
    let server = server([("deaf.test", Script::DeafToIpv6(IpAddr::from([8, 8, 8, 8])))]).await;
    let client = asking_with(&server, |settings| settings.dns.timeout = SHORT);
    assert_eq!(addresses(&client, "deaf.test").await.unwrap(), ["8.8.8.8"]);
}

#[tokio::test]
async fn aliases_are_followed_and_large_answers_come_by_tcp() {
    let server = server([
        ("www.test", Script::Alias("cdn.test".to_owned())),
        ("cdn.test", Script::Alias("edge.test".to_owned())),
        ("edge.test", Script::addresses(&["8.8.8.8"])),
        ("large.test", Script::Addresses(so_many(64), 60)),
    ])
    .await;
    let client = asking(&server);
    assert_eq!(addresses(&client, "www.test").await.unwrap(), ["8.8.8.8"]);
    assert_eq!(addresses(&client, "large.test").await.unwrap().len(), 64);
}

#[tokio::test]
async fn one_bad_answer_spoils_a_name() {
    let mut last_is_bad = so_many(60);
    last_is_bad.push(IpAddr::from([10, 0, 0, 1]));
    let server = server([
        ("mixed.test", Script::addresses(&["8.8.8.8", "10.0.0.1"])),
        ("families.test", Script::addresses(&["8.8.8.8", "::1"])),
        ("mapped.test", Script::addresses(&["8.8.8.8", "::ffff:8.8.8.8"])),
        ("metadata.test", Script::addresses(&["169.254.169.254"])),
        ("alias.test", Script::Alias("mixed.test".to_owned())),
        ("late.test", Script::Addresses(last_is_bad, 60)),
    ])
    .await;
    let client = asking(&server);
    for host in
        ["mixed.test", "families.test", "mapped.test", "metadata.test", "alias.test", "late.test"]
    {
        let found = addresses(&client, host).await;
        assert!(matches!(found, Err(FetchOutcome::Refused(_))), "{host}: {found:?}");
    }
    for host in ["localhost", "a.localhost", "LOCALHOST."] {
        let found = addresses(&client, host).await;
        assert!(matches!(found, Err(FetchOutcome::Refused(_))), "{host}: {found:?}");
    }
    assert!(!server.names_asked().iter().any(|name| name.ends_with("localhost")));
}

/// A question may be repeated when the machine is slow, but not once for each that asks.
const QUESTIONS_OF_ONE_LOOKUP: std::ops::RangeInclusive<usize> = 2..=8;

#[tokio::test]
async fn a_name_is_asked_for_once_for_all_and_remembered() {
    let server = server([
        ("a.test", Script::Addresses(so_many(1), 0)),
        ("no.test", Script::NoSuchName(None)),
        ("fails.test", Script::Fails),
    ])
    .await;
    let client = asking(&server);
    let rounds = (0..100).map(|_| addresses(&client, "a.test"));
    assert!(join_all(rounds).await.iter().all(Result::is_ok));
    for _ in 0..20 {
        addresses(&client, "a.test").await.unwrap();
        assert_eq!(fault(&client, "no.test").await, NameFault::NoSuchName);
        assert_eq!(fault(&client, "fails.test").await, NameFault::ServerFailed);
    }
    for name in ["a.test", "no.test", "fails.test"] {
        let asked = server.asked(name);
        assert!(QUESTIONS_OF_ONE_LOOKUP.contains(&asked), "{name} was asked for {asked} times");
    }
}
