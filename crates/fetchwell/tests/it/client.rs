//! A client that says exactly what a test wants, and hears exactly what comes back.

use std::net::SocketAddr;

use fetchwell_testkit::DEADLINE;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// All of it but the date, for comparisons to the byte.
    pub(crate) fn bytes(&self) -> (u16, Vec<&(String, String)>, &[u8]) {
        let headers = self.headers.iter().filter(|(name, _)| name != "date").collect();
        (self.status, headers, &self.body)
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Response {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{:?}\n{body}", self.headers);
        if status >= 400 {
            assert_eq!(self.header("content-type"), Some("application/problem+json"), "{body}");
            assert_eq!(self.json()["status"], status);
        }
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        assert!(self.header("content-security-policy").is_some());
        self
    }
}

/// A connection with whatever was said so far.
pub(crate) async fn connect(to: SocketAddr) -> TcpStream {
    #[expect(clippy::disallowed_methods, reason = "a test's own client to its own listener")]
    let connected = TcpStream::connect(to).await;
    connected.unwrap_or_else(|error| panic!("{to}: {error}"))
}

/// The same from another address of this machine.
pub(crate) async fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test's own client to its own listener")]
    let connected = socket.connect(to).await;
    connected.unwrap_or_else(|error| panic!("{to}: {error}"))
}

/// Sends these bytes, and reads until the server has no more to say.
pub(crate) async fn raw(to: SocketAddr, request: &[u8]) -> Response {
    let mut stream = connect(to).await;
    stream.write_all(request).await.unwrap();
    read_to_end(stream).await
}

/// Whether the server, on this machine, has read all that was sent to it: a server that stops resets a connection with
/// an unread request.
pub(crate) fn has_read(stream: &TcpStream) -> bool {
    let server = hex_port(stream.peer_addr().unwrap());
    let client = hex_port(stream.local_addr().unwrap());
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    // Of each socket: a number, its own address, the other end's, its state, and "unsent:unread" bytes.
    let is_read = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields[1].ends_with(&server) && fields[2].ends_with(&client);
        is_it && fields[4].ends_with(":00000000")
    };
    sockets.lines().skip(1).any(is_read)
}

fn hex_port(address: SocketAddr) -> String {
    format!(":{:04X}", address.port())
}

pub(crate) async fn read_to_end(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    timeout(DEADLINE, stream.read_to_end(&mut bytes)).await.expect("an answer").unwrap();
    parse(&bytes)
}

/// Reads from a stream until `enough` says so, and returns what it read.
pub(crate) async fn read_until(stream: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let reading = async {
        let mut piece = [0; 4_096];
        while !enough(&text) {
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "it ended after {text}");
            text.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    };
    timeout(DEADLINE, reading).await.expect("enough of it");
    text
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: fetchwell.test\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    format!("{text}connection: close\r\n\r\n{body}").into_bytes()
}

fn parse(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes)));
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    };
    let headers = lines.map(header).collect();
    Response { status, headers, body: bytes[end + 4..].to_vec() }
}
