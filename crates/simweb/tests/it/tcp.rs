//! The same scripts over real TCP, seen by a client that speaks raw HTTP/1.1.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_simweb::{HitKind, OutageKind, Server, SiteScript, Truncation, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn start(site: SiteScript) -> io::Result<Server> {
    Server::start(Arc::new(World::new([site])), SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn shop() -> SiteScript {
    SiteScript::new("shop.test").page_bytes(4_096)
}

#[expect(clippy::disallowed_methods, reason = "this client tests the server from outside")]
async fn connect(server: &Server) -> io::Result<TcpStream> {
    TcpStream::connect(server.addr()).await
}

/// Sends one request, then reads until the server ends the connection: what came, and how it
/// ended.
async fn exchange(server: &Server, request: &str) -> io::Result<(String, io::Result<()>)> {
    let mut stream = connect(server).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut received = Vec::new();
    let ended = stream.read_to_end(&mut received).await.map(drop);
    Ok((String::from_utf8_lossy(&received).into_owned(), ended))
}

fn get(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: shop.test\r\nUser-Agent: raw\r\nConnection: close\r\n\r\n"
    )
}

fn body_of(received: &str) -> &str {
    received.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this client tests the server from outside")]
async fn every_loopback_address_is_a_host_of_its_own() {
    let hosts = ["127.0.0.1", "127.9.8.7"];
    let world = Arc::new(World::new(hosts.map(SiteScript::new)));
    let server = Server::start_on_loopback(world, 0).unwrap();
    for host in hosts {
        let mut stream = TcpStream::connect((host, server.addr().port())).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).await.unwrap();
        assert!(received.contains(&format!("<title>The page {host}/</title>")), "{received}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_page_arrives_whole_and_its_hit_is_recorded() {
    let server = start(shop()).unwrap();
    let (received, ended) = exchange(&server, &get("/a?b=1")).await.unwrap();
    ended.unwrap();
    assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
    assert!(received.contains("<title>The page shop.test/a?b=1</title>"));
    assert!(received.ends_with("</html>\n"));
    let hits = server.world().hits();
    assert_eq!((&*hits[0].path, &*hits[0].user_agent), ("/a?b=1", "raw"));
    assert_eq!((hits[0].kind, hits[0].status), (HitKind::Page, Some(200)));
    assert!(hits[0].at <= server.started().elapsed());
    server.stop().await;
}

#[tokio::test]
async fn a_connection_is_kept_alive() {
    let server = start(shop().text("/hi", "text/plain", "hello")).unwrap();
    let mut stream = connect(&server).await.unwrap();
    for _ in 0..3 {
        stream.write_all(b"GET /hi HTTP/1.1\r\nHost: shop.test\r\n\r\n").await.unwrap();
        let mut received = String::new();
        while !received.ends_with("hello") {
            let mut buffer = [0; 1_024];
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the server left after {received}");
            received.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }
    assert_eq!(server.world().hits_of("shop.test").len(), 3);
}

#[tokio::test]
async fn head_tells_the_length_and_sends_no_body() {
    let server = start(shop().text("/hi", "text/plain", "hello")).unwrap();
    let request = get("/hi").replace("GET", "HEAD");
    let (received, _) = exchange(&server, &request).await.unwrap();
    assert!(received.contains("content-length: 5\r\n"), "{received}");
    assert_eq!(body_of(&received), "");
}

#[tokio::test]
async fn a_refusing_site_resets_the_connection() {
    let always = Duration::ZERO..Duration::from_secs(3_600);
    let server = start(shop().outage(always, OutageKind::Refuse)).unwrap();
    let (received, ended) = exchange(&server, &get("/")).await.unwrap();
    assert_eq!(received, "");
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(server.world().hits()[0].status, None);
}

#[tokio::test]
async fn a_cut_comes_where_the_script_says() {
    let cut = Truncation::CutMidBody { after_bytes: 100 };
    let server =
        start(shop().manner("/head", Truncation::CutAfterHead).manner("/half", cut)).unwrap();
    let (head, _) = exchange(&server, &get("/head")).await.unwrap();
    assert!(head.contains("content-length: 4"), "{head}");
    assert_eq!(body_of(&head), "");
    let (half, _) = exchange(&server, &get("/half")).await.unwrap();
    assert_eq!(body_of(&half).len(), 100);
}

#[tokio::test]
async fn slow_answers_take_their_time() {
    let thinks = Duration::from_millis(100);
    let trickles = Duration::from_millis(200);
    let server = start(shop().slow(thinks).trickling(trickles)).unwrap();
    let begun = Instant::now();
    let (received, _) = exchange(&server, &get("/")).await.unwrap();
    assert!(begun.elapsed() >= thinks + trickles);
    assert!(received.ends_with("</html>\n"));
}

#[tokio::test]
async fn a_stalled_client_hears_nothing_until_the_server_stops() {
    let server = start(shop().manner("/", Truncation::Stall)).unwrap();
    let mut stream = connect(&server).await.unwrap();
    stream.write_all(get("/").as_bytes()).await.unwrap();
    let mut buffer = [0; 1];
    let heard = timeout(Duration::from_millis(100), stream.read(&mut buffer)).await;
    assert!(heard.is_err(), "{heard:?}");
    timeout(Duration::from_secs(300), server.stop()).await.unwrap();
    assert_eq!(stream.read(&mut buffer).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_script_that_makes_no_valid_answer_says_so() {
    let server = start(shop().status("/", 99)).unwrap();
    let (received, _) = exchange(&server, &get("/")).await.unwrap();
    assert!(received.starts_with("HTTP/1.1 500 "), "{received}");
    assert!(body_of(&received).contains("no valid answer"), "{received}");
}
