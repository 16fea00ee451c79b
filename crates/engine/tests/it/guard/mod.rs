//! Nobody gets in: in a network where every address answers, only public ones are ever dialled.

mod addresses;
mod own_listeners;

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::http::Client;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_testkit::canary::Canary;
use fetchwell_testkit::client::{self, get};
use fetchwell_testkit::dns::{DnsServer, Script};
use fetchwell_testkit::namespace;
use fetchwell_testkit::rig::{Rig, Row};
use futures::StreamExt;
use futures::stream;

use self::addresses::{NEVER_TCP, PUBLIC, REFUSED, listed};

/// Where the harmless names are.
const HOME: &str = "93.184.216.34";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

/// An address as the host of a URL.
fn host(text: &str) -> String {
    if text.contains(':') { format!("[{text}]") } else { text.to_owned() }
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

/// Every way to a refused address, and where it starts.
struct Ways {
    names: Vec<(String, Script)>,
    robots: HashMap<String, String>,
    direct: Vec<String>,
    by_redirect: Vec<String>,
    by_robots: Vec<String>,
    by_name: Vec<String>,
}

impl Ways {
    fn to(addresses: &[&str]) -> Ways {
        let at = |ip: &str| Script::addresses(&[ip]);
        let mut names =
            vec![("*.start.test".to_owned(), at(HOME)), ("*.robots.test".to_owned(), at(HOME))];
        let mut robots = HashMap::new();
        for (number, address) in addresses.iter().enumerate() {
            names.push((format!("{number}.bad.test"), at(address)));
            names.push((format!("{number}.mixed.test"), Script::addresses(&[HOME, address])));
            names.push((
                format!("{number}.alias.test"),
                Script::Alias(format!("{number}.bad.test")),
            ));
            let target = format!("http://{}/robots.txt", host(address));
            robots.insert(format!("{number}.robots.test"), target);
        }
        let urls = |make: &dyn Fn(usize, &str) -> String| {
            addresses.iter().enumerate().map(|(number, address)| make(number, address)).collect()
        };
        Ways {
            names,
            robots,
            direct: urls(&|_, address| format!("http://{}/", host(address))),
            by_redirect: urls(&|number, address| {
                format!("http://{number}.start.test/to?http://{}/landed", host(address))
            }),
            by_robots: urls(&|number, _| format!("http://{number}.robots.test/")),
            by_name: (0..addresses.len())
                .flat_map(|number| ["bad", "mixed", "alias"].map(|kind| (number, kind)))
                .map(|(number, kind)| format!("http://{number}.{kind}.test/"))
                .collect(),
        }
    }
}

/// Without the guard the canaries would sing: a plain connection reaches them.
async fn assert_reachable(addresses: &[&str], canary: &Canary) {
    let targets: Vec<_> = addresses.iter().map(|text| SocketAddr::new(ip(text), 80)).collect();
    let connect = move || -> Vec<bool> {
        #[expect(clippy::disallowed_methods, reason = "what the guard must prevent")]
        targets.iter().map(|target| TcpStream::connect(target).is_ok()).collect()
    };
    let never_tcp = listed(NEVER_TCP);
    let reached = tokio::task::spawn_blocking(connect).await.unwrap();
    for (address, reached) in addresses.iter().zip(reached) {
        assert_eq!(reached, !never_tcp.contains(address), "{address}");
    }
    let sung = canary.connections().await.unwrap();
    assert!(sung.len() >= 90 && sung.contains_key(&ip("169.254.169.254")), "{sung:?}");
}

async fn rows(client: Client, urls: &[&Vec<String>]) -> HashMap<String, Row> {
    let mut rig = Rig::new([]).with_web(Arc::new(client));
    rig.rules.pace.default_interval = Duration::from_millis(5);
    rig.rules.robots.when_unreachable = WhenUnreachable::Disallow;
    for urls in urls {
        rig.enqueue(*urls);
    }
    rig.run().await.unwrap();
    rig.rows().into_iter().map(|row| (row.url.clone(), row)).collect()
}

#[test]
fn no_way_leads_to_a_refused_address() {
    if !namespace::is_inside("guard::no_way_leads_to_a_refused_address") {
        return;
    }
    block_on(async {
        let refused = listed(REFUSED);
        assert!(refused.len() >= 100);
        let ways = Ways::to(&refused);
        let canary = Canary::start(ways.robots).await.unwrap();
        assert_reachable(&refused, &canary).await;
        let server = DnsServer::start(ways.names).await.unwrap();
        let client = client::client(client::settings(&[server.address]));
        let lists = [&ways.direct, &ways.by_redirect, &ways.by_robots, &ways.by_name];
        let rows = rows(client, &lists).await;
        assert_eq!(rows.len(), 6 * refused.len());
        for url in lists.into_iter().flatten() {
            let happened = &rows[url].happened;
            let expected = match ways.by_robots.contains(url) {
                true => *happened == FetchOutcome::RobotsDisallow,
                false => matches!(happened, FetchOutcome::Refused(_)),
            };
            assert!(expected, "{url}: {happened:?}");
        }
        let dialled: Vec<IpAddr> = canary.connections().await.unwrap().into_keys().collect();
        assert_eq!(dialled, [ip(HOME)]);
    });
}

#[test]
fn public_addresses_are_dialled_by_every_way() {
    if !namespace::is_inside("guard::public_addresses_are_dialled_by_every_way") {
        return;
    }
    block_on(async {
        let ways = Ways::to(&listed(PUBLIC));
        let canary = Canary::start(ways.robots).await.unwrap();
        let server = DnsServer::start(ways.names).await.unwrap();
        for urls in [&ways.direct, &ways.by_redirect, &ways.by_robots, &ways.by_name] {
            let client = client::client(client::settings(&[server.address]));
            let rows = rows(client, &[urls]).await;
            for url in urls {
                assert_eq!(rows[url].happened, FetchOutcome::Answered(200), "{url}");
            }
            let dialled: BTreeSet<IpAddr> =
                canary.connections().await.unwrap().into_keys().collect();
            let expected: BTreeSet<IpAddr> = listed(PUBLIC).into_iter().map(ip).collect();
            assert_eq!(dialled, expected, "{}", urls[0]);
        }
    });
}

#[test]
fn a_thousand_rebinding_names_gain_nothing() {
    const NAMES: usize = 1_000;
    if !namespace::is_inside("guard::a_thousand_rebinding_names_gain_nothing") {
        return;
    }
    block_on(async {
        let canary = Canary::start(HashMap::new()).await.unwrap();
        let server = DnsServer::start([
            ("*.a.test", Script::rebinding(&[HOME], &["10.0.0.1"])),
            ("*.b.test", Script::rebinding(&["127.0.0.1"], &[HOME])),
            ("*.c.test", Script::rebinding(&[HOME, "2606:4700::1"], &[HOME, "::1"])),
            ("*.d.test", Script::rebinding(&["169.254.169.254", HOME], &["8.8.8.8"])),
        ])
        .await
        .unwrap();
        // Each client looks names up for itself, so that every name is caught in the act of changing.
        let client = || client::client(client::settings(&[server.address]));
        let clients = [client(), client(), client()];
        let races = (0..NAMES).flat_map(|number| {
            let url = format!("http://{number}.{}.test/", ["a", "b", "c", "d"][number % 4]);
            clients.iter().map(move |client| (client, url.clone()))
        });
        let run = |(client, url): (_, String)| async move { get(client, &url).await };
        let ends: Vec<FetchOutcome> =
            stream::iter(races).map(run).buffer_unordered(64).collect().await;
        let fetched = ends.iter().filter(|end| **end == FetchOutcome::Answered(200)).count();
        let refused = ends.iter().filter(|end| matches!(end, FetchOutcome::Refused(_))).count();
        assert_eq!(fetched + refused, 3 * NAMES, "{ends:?}");
        assert!(fetched >= NAMES && refused >= NAMES, "{fetched} fetched, {refused} refused");
        let allowed = [HOME, "2606:4700::1", "8.8.8.8"].map(ip);
        for (address, count) in canary.connections().await.unwrap() {
            assert!(allowed.contains(&address), "{address} was dialled {count} times");
        }
    });
}

#[test]
fn a_kept_connection_stays_with_the_address_that_was_vetted() {
    if !namespace::is_inside("guard::a_kept_connection_stays_with_the_address_that_was_vetted") {
        return;
    }
    block_on(async {
        let canary = Canary::start(HashMap::new()).await.unwrap();
        let names = [("*.test", Script::rebinding(&[HOME], &["10.0.0.1"]))];
        let server = DnsServer::start(names).await.unwrap();
        let client = client::client(client::settings(&[server.address]));
        for _ in 0..20 {
            assert_eq!(get(&client, "http://a.test/").await, FetchOutcome::Answered(200));
        }
        assert_eq!(Vec::from_iter(canary.connections().await.unwrap()), [(ip(HOME), 1)]);
    });
}

#[test]
fn the_systems_settings_are_read_without_their_search_domains_and_hosts_are_guarded() {
    let test =
        "guard::the_systems_settings_are_read_without_their_search_domains_and_hosts_are_guarded";
    if !namespace::is_inside(test) {
        return;
    }
    block_on(async {
        let canary = Canary::start(HashMap::new()).await.unwrap();
        let names = [
            ("known.test", Script::addresses(&[HOME])),
            ("*.search.test", Script::addresses(&["8.8.8.8"])),
            ("pinned.test", Script::addresses(&["8.8.8.8"])),
        ];
        let port_53 = SocketAddr::from(([127, 0, 0, 1], 53));
        let server = DnsServer::start_at(port_53, names).await.unwrap();
        let client = client::client(client::settings(&[]));
        for (url, fetched) in [
            ("http://known.test/", true),
            ("http://pinned.test/", true),
            ("http://inside.test/", false),
            ("http://localhost/", false),
            ("http://intranet/", false),
            ("http://a.b.c.test/", false),
        ] {
            let happened = get(&client, url).await;
            assert_eq!(happened == FetchOutcome::Answered(200), fetched, "{url}: {happened:?}");
        }
        assert_eq!(server.names_asked(), ["a.b.c.test", "intranet", "known.test"]);
        assert_eq!(Vec::from_iter(canary.connections().await.unwrap().into_keys()), [ip(HOME)]);
    });
}
