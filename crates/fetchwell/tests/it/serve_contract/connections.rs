//! How many connections there may be at once, who gets them, and whose address counts.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fetchwell_testkit::crash::Service;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::replay::is_soak;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::place::{audit_of, get, no_way_out};
use crate::client::{self, Response, connect, connect_from, has_read, read_to_end, read_until};

const PER_ADDRESS: &str = "FETCHWELL_API__MAX_CONNECTIONS_PER_ADDRESS";
const IN_ALL: &str = "FETCHWELL_RETRIEVER__MAX_CONNECTIONS";
const PROXIES: &str = "FETCHWELL_API__TRUSTED_PROXIES";

/// Another address of this machine.
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

/// A head that never ends.
const SLOW: &[u8] = b"GET /outbox HTTP/1.1\r\nhost: fetchwell.test\r\nx-slow: ";

async fn health(at: SocketAddr, path: &str) -> Response {
    client::raw(at, &client::request("GET", path, &[], "")).await
}

async fn ask_from(
    from: [u8; 4],
    service: &Service,
    path: &str,
    headers: &[(&str, &str)],
) -> Response {
    let mut stream = connect_from(from, service.address).await;
    stream.write_all(&client::request("GET", path, headers, "")).await.unwrap();
    read_to_end(stream).await
}

/// A request that is under way until its connection is dropped.
async fn poll(service: &Service, headers: &[(&str, &str)]) -> TcpStream {
    let bearer = format!("Bearer {}", service.token);
    let all = [&[("authorization", &*bearer)], headers].concat();
    let mut stream = connect(service.address).await;
    stream.write_all(&client::request("GET", "/outbox?wait=60", &all, "")).await.unwrap();
    eventually("the service reads the request", async || has_read(&stream)).await;
    stream
}

/// As many as this process has descriptors for.
fn affordable(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    wanted.min(soft.saturating_sub(300))
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_while_strangers_hold_more_connections_than_there_are() {
    let mut service = Service::start(no_way_out()).await;
    let mut strangers = Vec::new();
    let count = affordable(1_100);
    println!("{count} strangers");
    for _ in 0..count {
        let mut stranger = connect(service.address).await;
        // The service may have closed it already.
        stranger.write_all(SLOW).await.ok();
        strangers.push(stranger);
    }
    for path in ["/livez", "/readyz"] {
        let mut times = Vec::new();
        for _ in 0..11 {
            let asked = Instant::now();
            health(service.address, path).await.expect(200);
            times.push(asked.elapsed());
        }
        times.sort_unstable();
        println!("{path}: {times:?}");
        assert!(!is_soak() || times[5] < Duration::from_millis(100), "{path}: {times:?}");
    }
    // Whoever comes from elsewhere is served, and soon so is whoever shares the strangers' address.
    let bearer = format!("Bearer {}", service.token);
    ask_from(ELSEWHERE, &service, "/outbox", &[("authorization", &bearer)]).await.expect(200);
    eventually("silence gives way", async || {
        get(service.address, &service.token, "/outbox").await.status == 200
    })
    .await;
    let stopped = Instant::now();
    service.stop().await;
    // Only the duration shows it: a stop that waited for these clients would still end, at the shutdown grace or the
    // timeout for a request's head.
    let took = stopped.elapsed();
    assert!(
        !is_soak() || took < Duration::from_secs(15),
        "the stop waited for slow clients: {took:?}"
    );
    drop(strangers);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_connections_are_in_use_only_health_is_told() {
    let service = Service::start(no_way_out().variable(IN_ALL, "2")).await;
    let first = poll(&service, &[]).await;
    let _second = poll(&service, &[]).await;
    for path in ["/livez", "/readyz"] {
        health(service.address, path).await.expect(200);
    }
    let refused = get(service.address, &service.token, "/outbox").await.expect(503);
    assert_eq!(refused.json()["type"], "/docs#problem-busy");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert!(service.log().contains("all 2 connections"), "{}", service.log());
    drop(first);
    eventually("a place", async || {
        get(service.address, &service.token, "/outbox").await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_gives_way_to_a_new_one() {
    let service = Service::start(no_way_out().variable(IN_ALL, "2")).await;
    let mut idle = [connect(service.address).await, connect(service.address).await];
    for stream in &mut idle {
        stream.write_all(b"GET /nothing HTTP/1.1\r\nhost: a.test\r\n\r\n").await.unwrap();
        read_until(stream, |text| text.ends_with('}')).await;
    }
    eventually("a place", async || {
        get(service.address, &service.token, "/outbox").await.status == 200
    })
    .await;
    let mut rest = Vec::new();
    idle[0].read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "the connection that was idle longest is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_so_many_connections_and_no_more() {
    let service = Service::start(no_way_out().variable(PER_ADDRESS, "2")).await;
    let first = poll(&service, &[]).await;
    let _second = poll(&service, &[]).await;
    let refused = get(service.address, &service.token, "/outbox").await.expect(429);
    assert_eq!(refused.json()["type"], "/docs#problem-too-many-connections");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert!(service.log().contains("api.trusted_proxies"), "{}", service.log());
    health(service.address, "/livez").await.expect(200);
    // Nobody is believed to speak for another.
    let bearer = format!("Bearer {}", service.token);
    let forged = [("authorization", &*bearer), ("x-forwarded-for", "198.51.100.1")];
    client::raw(service.address, &client::request("GET", "/outbox", &forged, "")).await.expect(429);
    ask_from(ELSEWHERE, &service, "/outbox", &forged).await.expect(200);
    drop(first);
    eventually("a place", async || {
        get(service.address, &service.token, "/outbox").await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_trusted_proxy_the_forwarded_address_counts() {
    let program = no_way_out().variable(PROXIES, "127.0.0.1").variable(PER_ADDRESS, "2");
    let mut service = Service::start(program).await;
    let one = ("x-forwarded-for", "203.0.113.9, 198.51.100.1");
    let first = poll(&service, &[one]).await;
    let _second = poll(&service, &[("forwarded", "for=198.51.100.1;proto=https")]).await;
    let bearer = format!("Bearer {}", service.token);
    let ask = async |headers: &[(&str, &str)]| {
        let all = [&[("authorization", &*bearer)], headers].concat();
        client::raw(service.address, &client::request("GET", "/outbox", &all, "")).await
    };
    ask(&[one]).await.expect(429);
    ask(&[("x-forwarded-for", "198.51.100.2")]).await.expect(200);
    health(service.address, "/livez").await.expect(200);
    drop(first);
    eventually("a place", async || ask(&[one]).await.status == 200).await;

    let wrong = [("authorization", "Bearer x"), ("x-forwarded-for", "198.51.100.3")];
    client::raw(service.address, &client::request("GET", "/outbox", &wrong, "")).await.expect(401);
    ask_from(ELSEWHERE, &service, "/outbox", &wrong).await.expect(401);
    service.stop().await;
    let audit = audit_of(&service).await;
    let failed = audit.iter().filter(|entry| entry.action == "authentication_failed");
    let mut from: Vec<&str> = failed.map(|entry| entry.from.as_str()).collect();
    from.sort_unstable();
    assert_eq!(from, ["127.0.0.2", "198.51.100.3"], "a stranger names nobody else");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_exactly_one_host() {
    let service = Service::start(no_way_out()).await;
    for (version, hosts, status) in [
        ("1.1", "host: a.test\r\n", 200),
        ("1.1", "", 400),
        ("1.1", "host: a.test\r\nhost: a.test\r\n", 400),
        ("1.1", "host: a.test\r\nHost: b.test\r\n", 400),
        ("1.1", "host: \r\n", 400),
        ("1.0", "", 200),
    ] {
        for path in ["/livez", "/docs", "/"] {
            let request = format!("GET {path} HTTP/{version}\r\n{hosts}connection: close\r\n\r\n");
            let answer = client::raw(service.address, request.as_bytes()).await;
            match (path, status) {
                (_, 400) => assert_eq!(answer.expect(400).json()["type"], "/docs#problem-bad-host"),
                ("/", _) => assert_eq!(answer.expect(303).header("x-frame-options"), Some("DENY")),
                _ => drop(answer.expect(200)),
            }
        }
    }
}
