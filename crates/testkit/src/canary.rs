//! A web server on every address of a namespace, which records every connection.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// A server on port 80 of all addresses. It stops when it is dropped.
///
/// `/to?URL` redirects there, `/hops?N` redirects N times; everything else except robots.txt is a page.
pub struct Canary {
    cage: Arc<Cage>,
    _task: AbortOnDropHandle<()>,
}

/// An address that no test uses.
const LAST: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 80, 80));

struct Cage {
    /// Hosts whose robots.txt redirects to a URL. All others have none.
    robots: HashMap<String, String>,
    /// Other texts, by host and path.
    texts: HashMap<String, String>,
    /// Connections by destination address.
    connections: Mutex<BTreeMap<IpAddr, usize>>,
    accepted: Notify,
}

impl Canary {
    /// Starts it. This works only inside a namespace, where port 80 is free.
    pub async fn start(robots: HashMap<String, String>) -> io::Result<Canary> {
        Canary::start_with(robots, HashMap::new()).await
    }

    /// Starts it with texts, by host and path.
    pub async fn start_with(
        robots: HashMap<String, String>,
        texts: HashMap<String, String>,
    ) -> io::Result<Canary> {
        let connections = Mutex::default();
        let cage = Arc::new(Cage { robots, texts, connections, accepted: Notify::new() });
        // On Linux this accepts IPv4 connections, too.
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 80)).await?;
        let task = AbortOnDropHandle::new(tokio::spawn(serve(listener, cage.clone())));
        Ok(Canary { cage, _task: task })
    }

    /// The number of connections to each address since the last call.
    pub async fn connections(&self) -> io::Result<BTreeMap<IpAddr, usize>> {
        // Connections are accepted in order, so once this one is, all earlier ones are.
        #[expect(clippy::disallowed_methods, reason = "it connects to itself")]
        let _last = TcpStream::connect((LAST, 80)).await?;
        loop {
            let accepted = self.cage.accepted.notified();
            if let Some(connections) = self.cage.take_with_last() {
                return Ok(connections);
            }
            accepted.await;
        }
    }
}

impl Cage {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.connections.lock()
    }

    fn take_with_last(&self) -> Option<BTreeMap<IpAddr, usize>> {
        let mut connections = self.lock();
        connections.remove(&LAST)?;
        Some(std::mem::take(&mut connections))
    }

    fn answer(&self, host: &str, target: &str) -> String {
        if let Some(text) = self.texts.get(&format!("{host}{target}")) {
            return page(text);
        }
        if target == "/robots.txt" {
            return match self.robots.get(host) {
                Some(url) => redirect(url),
                None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
        }
        match target.split_once('?') {
            Some(("/to", url)) => redirect(url),
            Some(("/hops", left)) if left != "0" => {
                redirect(&format!("/hops?{}", left.parse::<u32>().map_or(0, |left| left - 1)))
            }
            _ => page("hello"),
        }
    }
}

fn page(text: &str) -> String {
    let bytes = text.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {bytes}\r\n\r\n{text}")
}

fn redirect(url: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n")
}

async fn serve(listener: TcpListener, cage: Arc<Cage>) {
    while let Ok((stream, _)) = listener.accept().await {
        if let Ok(dialled) = stream.local_addr() {
            *cage.lock().entry(dialled.ip().to_canonical()).or_default() += 1;
            cage.accepted.notify_one();
        }
        let cage = cage.clone();
        // It ends when the client disconnects.
        tokio::spawn(async move { drop(converse(stream, &cage).await) });
    }
}

async fn converse(stream: TcpStream, cage: &Cage) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut target = String::new();
        let mut host = String::new();
        let mut body_bytes = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            match line.trim_end().split_once(' ') {
                None if line.trim_end().is_empty() => break,
                Some(("host:" | "Host:", name)) => host = name.to_owned(),
                Some(("content-length:" | "Content-Length:", bytes)) => {
                    body_bytes = bytes.parse().map_err(io::Error::other)?;
                }
                Some(("GET" | "HEAD" | "POST", rest)) => {
                    target = rest.split(' ').next().unwrap_or_default().to_owned();
                }
                _ => {}
            }
        }
        tokio::io::copy(&mut (&mut stream).take(body_bytes), &mut tokio::io::sink()).await?;
        stream.write_all(cage.answer(&host, &target).as_bytes()).await?;
    }
}
