//! Lines that delay, slice, stall and cut.

use std::time::Duration;

use fetchwell_policy::outcome::{FetchOutcome, NetworkFault, Phase};
use fetchwell_policy::url::WebUrl;
use fetchwell_testkit::fault_proxy::{Cut, FaultProxy, Faults};

use super::client::{SHORT, client_limited, failure, fetch};
use super::script::{Server, ok};

async fn line() -> (Server, FaultProxy, WebUrl) {
    let server = Server::answering(ok("", &[b'x'; 1_000])).await;
    let proxy = FaultProxy::start(server.address).await.unwrap();
    let url = WebUrl::parse(&format!("http://{}/", proxy.address())).unwrap();
    (server, proxy, url)
}

#[tokio::test]
async fn a_bad_line_is_put_up_with() {
    let (_server, proxy, url) = line().await;
    let client = client_limited(|_| {});
    for faults in [
        Faults::default(),
        Faults::slices(1),
        Faults::delay(Duration::from_millis(50)),
        Faults::bytes_per_second(5_000),
    ] {
        proxy.both(faults);
        assert_eq!(fetch(&client, url.clone()).await.body.len(), 1_000, "{faults:?}");
    }
}

#[tokio::test]
async fn a_line_that_fails_is_the_sites_failure() {
    let reset = FetchOutcome::Network(NetworkFault::Reset);
    for (faults, expected) in [
        (Faults::stall(), FetchOutcome::TimedOut(Phase::Total)),
        (Faults::bytes_per_second(50), FetchOutcome::TimedOut(Phase::Read)),
        (Faults::cut_after(0, Cut::Close), reset.clone()),
        (Faults::cut_after(20, Cut::Close), reset.clone()),
        (Faults::cut_after(500, Cut::Close), reset.clone()),
        (Faults::cut_after(500, Cut::Reset), reset),
    ] {
        let (_server, proxy, url) = line().await;
        proxy.down(faults);
        let client = client_limited(|limits| {
            limits.idle_read_timeout = 2 * SHORT;
            limits.request_timeout = 10 * SHORT;
        });
        assert_eq!(failure(&client, url).await, expected, "{faults:?}");
    }
    let (_server, proxy, url) = line().await;
    proxy.refuse().await.unwrap();
    let expected = FetchOutcome::Network(NetworkFault::ConnectRefused);
    assert_eq!(failure(&client_limited(|_| {}), url).await, expected);
}
