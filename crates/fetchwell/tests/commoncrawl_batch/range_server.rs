//! A server of ranges, whose answers a test decides about.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// How a request is answered.
pub(crate) enum Manner {
    /// As it should be.
    Range,
    /// With this status, and a word.
    Status(u16),
    /// With the whole file, whatever was asked for, and then zeros without end.
    EndlessFile,
    /// With a 206 whose body ends after so many bytes.
    Short(usize),
    /// After a while.
    Late(Duration),
}

/// Decides by the path and by how many requests came before.
pub(crate) type Whim = Arc<dyn Fn(&str, usize) -> Manner + Send + Sync>;

/// Files that are served from memory until this is dropped.
pub(crate) struct RangeServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(Instant, String)>>>,
    _serving: AbortOnDropHandle<()>,
}

impl RangeServer {
    pub(crate) async fn start(files: BTreeMap<String, Vec<u8>>, whim: Whim) -> RangeServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (files, asked) = (Arc::new(files), Arc::<Mutex<Vec<(Instant, String)>>>::default());
        let seen = asked.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (files, seen, whim) = (files.clone(), seen.clone(), whim.clone());
                tokio::spawn(async move { serve(stream, &files, &seen, &whim).await });
            }
        });
        RangeServer { address, asked, _serving: AbortOnDropHandle::new(serving) }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// When requests came.
    pub(crate) fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().iter().map(|(at, _)| *at).collect()
    }

    /// The heads of requests, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(_, head)| head.clone()).collect()
    }
}

/// As it should be, always.
pub(crate) fn soundly() -> Whim {
    Arc::new(|_, _| Manner::Range)
}

async fn serve(
    mut stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    asked: &Mutex<Vec<(Instant, String)>>,
    whim: &Whim,
) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let path = String::from_utf8_lossy(&bytes[..end]).split(' ').nth(1)?.to_owned();
        bytes.drain(..end + 4);
        let number = {
            let mut asked = asked.lock().unwrap();
            asked.push((Instant::now(), head.clone()));
            asked.len() - 1
        };
        let file = files.get(path.trim_start_matches('/'));
        let answer = match whim(&path, number) {
            Manner::Status(status) => plain(status),
            Manner::EndlessFile => return endless(&mut stream).await,
            Manner::Short(length) => {
                let mut answer = file.map_or_else(|| plain(404), |file| range_of(file, &head));
                let body = answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
                answer.truncate(answer.len().min(body + length));
                stream.write_all(&answer).await.ok()?;
                return None;
            }
            Manner::Late(time) => {
                tokio::time::sleep(time).await;
                file.map_or_else(|| plain(404), |file| range_of(file, &head))
            }
            Manner::Range => file.map_or_else(|| plain(404), |file| range_of(file, &head)),
        };
        stream.write_all(&answer).await.ok()?;
    }
}

/// Until whoever asked has had enough.
async fn endless(stream: &mut TcpStream) -> Option<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n").await.ok()?;
    loop {
        stream.write_all(&[0; 65_536]).await.ok()?;
    }
}

fn plain(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} Whim\r\ncontent-length: 5\r\n\r\nwhim\n").into_bytes()
}

fn range_of(file: &[u8], head: &str) -> Vec<u8> {
    let asked = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
    let (from, to) = asked.and_then(|range| range.split_once('-')).unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    if from >= file.len() {
        return plain(416);
    }
    let part = &file[from..(to + 1).min(file.len())];
    let last = from + part.len() - 1;
    let (length, whole) = (part.len(), file.len());
    let mut answer = format!(
        "HTTP/1.1 206 Partial Content\r\ncontent-length: {length}\r\n\
         content-range: bytes {from}-{last}/{whole}\r\n\r\n"
    )
    .into_bytes();
    answer.extend_from_slice(part);
    answer
}
