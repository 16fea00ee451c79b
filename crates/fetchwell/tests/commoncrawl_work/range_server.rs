//! A server of ranges, whose answers a test decides about.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// What is to be done with a request for a range of a path; `None`: what was asked for.
pub(crate) type Whim = Arc<dyn Fn(&str) -> Option<u16> + Send + Sync>;

/// Files that are served from memory until this is dropped.
pub(crate) struct RangeServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl RangeServer {
    pub(crate) async fn start(files: HashMap<String, Vec<u8>>, whim: Whim) -> RangeServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (files, asked) = (Arc::new(files), Arc::<Mutex<Vec<String>>>::default());
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

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn serve(
    mut stream: TcpStream,
    files: &HashMap<String, Vec<u8>>,
    asked: &Mutex<Vec<String>>,
    whim: &Whim,
) {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes.drain(..end + 4);
        let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        asked.lock().unwrap().push(path.clone());
        let answer = match whim(&path) {
            Some(status) => plain(status),
            None => files.get(&path).map_or_else(|| plain(404), |file| range_of(file, &head)),
        };
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

fn plain(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} Whim\r\ncontent-length: 5\r\n\r\nwhim\n").into_bytes()
}

fn range_of(file: &[u8], head: &str) -> Vec<u8> {
    let asked = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let (from, to) = asked.as_deref().and_then(|range| range.split_once('-')).unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    if from >= file.len() {
        return plain(416);
    }
    let part = &file[from..(to + 1).min(file.len())];
    let last = from + part.len() - 1;
    let mut answer = format!(
        "HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\ncontent-range: bytes {from}-{last}/{}\r\n\r\n",
        part.len(),
        file.len()
    )
    .into_bytes();
    answer.extend_from_slice(part);
    answer
}
