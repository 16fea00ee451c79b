//! The fault proxy on real sockets, as a client and a server meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on may panic")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fetchwell_testkit::closed_port::ClosedPort;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::fault_proxy::{Cut, FaultProxy, Faults};
use fetchwell_testkit::held::Held;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// Far longer than anything on the loopback takes, and short enough to be waited for.
const A_WHILE: Duration = Duration::from_millis(200);

/// A server that says back what it hears, behind a proxy.
struct Rig {
    proxy: FaultProxy,
    _echo: AbortOnDropHandle<()>,
}

impl Rig {
    async fn start() -> Rig {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = listener.local_addr().unwrap();
        let echo = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    drop(tokio::io::copy(&mut from, &mut to).await);
                    drop(to.shutdown().await);
                });
            }
        });
        let proxy = FaultProxy::start(upstream).await.unwrap();
        Rig { proxy, _echo: AbortOnDropHandle::new(echo) }
    }

    async fn connect(&self) -> TcpStream {
        connect(self.proxy.address()).await.unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's client of the test's own proxy")]
async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect(address).await
}

/// Sends this and waits until all of it is back.
async fn echo(stream: &mut TcpStream, bytes: usize) -> std::io::Result<()> {
    let (mut from, mut to) = stream.split();
    let sent = vec![b'x'; bytes];
    let mut back = vec![0; bytes];
    tokio::try_join!(to.write_all(&sent), from.read_exact(&mut back))?;
    assert_eq!(sent, back);
    Ok(())
}

async fn takes_longer_than_a_while<T>(work: impl Future<Output = T>) -> bool {
    tokio::time::timeout(A_WHILE, work).await.is_err()
}

#[tokio::test]
async fn without_faults_it_is_as_if_it_were_not_there() {
    let rig = Rig::start().await;
    let mut stream = rig.connect().await;
    echo(&mut stream, 1 << 20).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(rig.proxy.accepted(), 1);
}

#[tokio::test]
async fn faults_come_and_go_on_a_connection_that_stands() {
    let rig = Rig::start().await;
    let mut stream = rig.connect().await;
    for fault in [FaultProxy::up, FaultProxy::down, FaultProxy::both] {
        fault(&rig.proxy, Faults::stall());
        assert!(takes_longer_than_a_while(echo(&mut stream, 1)).await);
        rig.proxy.heal();
        stream.read_exact(&mut [0]).await.unwrap();
        fault(&rig.proxy, Faults::delay(A_WHILE));
        let began = Instant::now();
        echo(&mut stream, 100_000).await.unwrap();
        assert!(began.elapsed() >= A_WHILE);
        fault(&rig.proxy, Faults::slices(7));
        echo(&mut stream, 10_000).await.unwrap();
        fault(&rig.proxy, Faults::bytes_per_second(10_000));
        let began = Instant::now();
        echo(&mut stream, 2_000).await.unwrap();
        assert!(began.elapsed() >= A_WHILE / 2);
        rig.proxy.heal();
    }
}

#[tokio::test]
async fn a_connection_is_cut_by_a_close_or_a_reset_in_either_direction() {
    for fault in [FaultProxy::up, FaultProxy::down] {
        let rig = Rig::start().await;
        fault(&rig.proxy, Faults::cut_after(10, Cut::Close));
        let mut stream = rig.connect().await;
        stream.write_all(&[b'x'; 10]).await.unwrap();
        let mut back = Vec::new();
        // The cut may overtake bytes on their way back, but is no error.
        stream.read_to_end(&mut back).await.unwrap();
        assert!(back.len() <= 10);

        fault(&rig.proxy, Faults::cut_after(10, Cut::Reset));
        let mut stream = rig.connect().await;
        stream.write_all(&[b'x'; 10]).await.unwrap();
        let error = stream.read_to_end(&mut back).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn all_connections_can_be_cut_at_once() {
    let rig = Rig::start().await;
    for cut in [Cut::Close, Cut::Reset] {
        let mut streams = [rig.connect().await, rig.connect().await];
        for stream in &mut streams {
            echo(stream, 10).await.unwrap();
        }
        rig.proxy.cut(cut);
        for stream in &mut streams {
            let read = stream.read(&mut [0]).await.map_err(|error| error.kind());
            let expected = if cut == Cut::Close { Ok(0) } else { Err(ErrorKind::ConnectionReset) };
            assert_eq!(read, expected);
        }
        echo(&mut rig.connect().await, 10).await.unwrap();
    }
}

#[tokio::test]
async fn new_connections_are_refused_until_they_are_accepted_again() {
    let rig = Rig::start().await;
    let mut standing = rig.connect().await;
    echo(&mut standing, 10).await.unwrap(); // A connection stands when it was accepted.
    for _ in 0..3 {
        rig.proxy.refuse().await.unwrap();
        let refused = connect(rig.proxy.address()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        echo(&mut standing, 10).await.unwrap();
        rig.proxy.accept().await.unwrap();
        echo(&mut rig.connect().await, 10).await.unwrap();
    }
    rig.proxy.accepted_more_than(3).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_resets() {
    let nobody = ClosedPort::bind().unwrap();
    let proxy = FaultProxy::start(nobody.address()).await.unwrap();
    let mut stream = connect(proxy.address()).await.unwrap();
    assert!(stream.read(&mut [0]).await.is_err());
}

#[tokio::test]
async fn a_proxy_that_is_dropped_takes_its_connections_with_it() {
    let rig = Rig::start().await;
    let before = Held::now().tasks;
    let mut stream = rig.connect().await;
    echo(&mut stream, 10).await.unwrap();
    rig.proxy.both(Faults::stall());
    drop(rig.proxy);
    assert!(stream.read(&mut [0]).await.is_ok_and(|count| count == 0));
    // The proxy's own task is gone, too.
    eventually("the end of its task", async || Held::now().tasks < before).await;
}
