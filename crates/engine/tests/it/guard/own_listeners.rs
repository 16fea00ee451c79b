//! Never to ourselves: not by a literal, not by a name, not though the range is allowed.

use fetchwell_engine::http::{HttpSettings, OwnListeners};
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault};
use fetchwell_testkit::client::{self, get};
use fetchwell_testkit::dns::{DnsServer, Script};

#[tokio::test]
async fn our_own_listeners_are_refused_though_their_range_is_allowed() {
    let ours = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let everywhere = tokio::net::TcpListener::bind("[::]:0").await.unwrap();
    let address = ours.local_addr().unwrap();
    let port = address.port();
    let any = everywhere.local_addr().unwrap().port();
    let server =
        DnsServer::start([("home.test", Script::addresses(&["127.0.0.1"]))]).await.unwrap();
    let all = ["0.0.0.0/0", "::/0"].map(|range| range.parse().unwrap());
    let own_listeners = OwnListeners::default();
    let client = client::client(HttpSettings {
        guard: AddressGuard::new(all.to_vec()),
        own_listeners: own_listeners.clone(),
        ..client::settings(&[server.address])
    });
    own_listeners.register(address);
    client.own_listeners().register(everywhere.local_addr().unwrap());
    for url in [
        format!("http://{address}/"),
        format!("https://{address}/"),
        format!("http://2130706433:{port}/"),
        format!("http://home.test:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://127.0.0.1:{any}/"),
        format!("http://127.9.9.9:{any}/"),
        format!("http://[::1]:{any}/"),
        format!("http://home.test:{any}/"),
    ] {
        match get(&client, &url).await {
            FetchOutcome::Refused(why) => {
                assert!(why.contains("this program itself"), "{url}: {why}");
            }
            other => panic!("{url}: {other:?}"),
        }
    }
    // Another server on the same machine is not ours.
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", other.local_addr().unwrap());
    let accept_and_close = async { other.accept().await.map(drop) };
    let (accepted, happened) = tokio::join!(accept_and_close, get(&client, &url));
    accepted.unwrap();
    assert_eq!(happened, FetchOutcome::Network(NetworkFault::Reset));
}
