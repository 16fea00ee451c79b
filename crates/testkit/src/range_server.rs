//! A server for byte ranges, as archives have one, whose responses a test controls.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// How to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeBehaviour {
    /// Correctly.
    Range,
    /// With this status and a short body.
    Status(u16),
    /// With the whole file, whatever was requested, followed by zeros without end.
    EndlessFile,
    /// With a 206 whose body ends after this many bytes.
    Short(usize),
    /// With a 206 for the first bytes of the requested range, this many, without mentioning the rest.
    Part(usize),
    /// With a 206 that contains HTML instead of the file.
    Html,
    /// Correctly, after a delay.
    Late(Duration),
}

/// Decides by the path, without its leading slash, and by the number of earlier requests.
pub type Whim = Arc<dyn Fn(&str, usize) -> RangeBehaviour + Send + Sync>;

/// Files that are served from memory until this is dropped.
pub struct RangeServer {
    address: SocketAddr,
    asked: Arc<Asked>,
    _serving: AbortOnDropHandle<()>,
}

/// The times and heads of the requests.
#[derive(Default)]
struct Asked(Mutex<Vec<(Instant, String)>>);

impl RangeServer {
    /// Serves these files by name, answering each request as `whim` decides.
    pub async fn start(files: BTreeMap<String, Vec<u8>>, whim: Whim) -> RangeServer {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let files = Arc::new(files);
        let asked = Arc::<Asked>::default();
        let seen = asked.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let files = files.clone();
                let seen = seen.clone();
                let whim = whim.clone();
                tokio::spawn(async move { serve(stream, &files, &seen, &whim).await });
            }
        });
        RangeServer { address, asked, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Serves these files correctly.
    pub async fn sound(files: BTreeMap<String, Vec<u8>>) -> RangeServer {
        RangeServer::start(files, Arc::new(|_, _| RangeBehaviour::Range)).await
    }

    /// The base URL of the archive.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of requests.
    pub fn requests(&self) -> usize {
        self.asked.all().len()
    }

    /// The times of the requests.
    pub fn times(&self) -> Vec<Instant> {
        self.asked.all().iter().map(|(at, _)| *at).collect()
    }

    /// The heads of requests, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.asked.all().iter().map(|(_, head)| head.clone()).collect()
    }
}

impl Asked {
    fn all(&self) -> MutexGuard<'_, Vec<(Instant, String)>> {
        self.0.lock()
    }

    /// Records a request, and returns the number of earlier ones.
    fn note(&self, head: &str) -> usize {
        let mut all = self.all();
        all.push((Instant::now(), head.to_owned()));
        all.len() - 1
    }
}

/// Serves one connection until either side closes it.
async fn serve(
    mut stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    asked: &Asked,
    whim: &Whim,
) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = end_of_head(&bytes) else {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes.drain(..end);
        let path = head.split(' ').nth(1)?.trim_start_matches('/').to_owned();
        let head = head.to_lowercase();
        let number = asked.note(&head);
        let range = || part(files, &path, &head, usize::MAX);
        let answer = match whim(&path, number) {
            RangeBehaviour::Status(status) => plain(status),
            RangeBehaviour::EndlessFile => return endless(&mut stream).await,
            RangeBehaviour::Short(length) => {
                let mut answer = range();
                answer.truncate(answer.len().min(end_of_head(&answer)? + length));
                stream.write_all(&answer).await.ok()?;
                return None;
            }
            RangeBehaviour::Late(time) => {
                tokio::time::sleep(time).await;
                range()
            }
            RangeBehaviour::Part(length) => part(files, &path, &head, length),
            RangeBehaviour::Html => html(&head),
            RangeBehaviour::Range => range(),
        };
        stream.write_all(&answer).await.ok()?;
    }
}

/// Sends until the client disconnects.
async fn endless(stream: &mut TcpStream) -> Option<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n").await.ok()?;
    loop {
        stream.write_all(&[0; 65_536]).await.ok()?;
    }
}

/// The offset after the blank line.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn plain(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} Whim\r\ncontent-length: 5\r\n\r\nwhim\n").into_bytes()
}

/// The requested range of a file, at most `most` bytes of it.
fn part(files: &BTreeMap<String, Vec<u8>>, path: &str, head: &str, most: usize) -> Vec<u8> {
    let Some(file) = files.get(path) else { return plain(404) };
    let (from, to) = range_in(head);
    if from >= file.len() {
        return plain(416);
    }
    let end = to.saturating_add(1).min(file.len()).min(from.saturating_add(most));
    partial_content(&file[from..end], from, file.len())
}

/// Answers like a server that has one page for all paths.
fn html(head: &str) -> Vec<u8> {
    let (from, to) = range_in(head);
    let page = b"<html>Welcome!</html>".iter().copied().cycle().take(to - from + 1);
    partial_content(&page.collect::<Vec<u8>>(), from, to + 1)
}

fn range_in(head: &str) -> (usize, usize) {
    asked_for(head).unwrap_or_else(|| panic!("no range is asked for: {head}"))
}

fn partial_content(part: &[u8], from: usize, whole: usize) -> Vec<u8> {
    let last = from + part.len() - 1;
    let length = part.len();
    let mut answer = format!(
        "HTTP/1.1 206 Partial Content\r\ncontent-length: {length}\r\n\
         content-range: bytes {from}-{last}/{whole}\r\n\r\n"
    )
    .into_bytes();
    answer.extend_from_slice(part);
    answer
}

fn asked_for(head: &str) -> Option<(usize, usize)> {
    let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="))?;
    let (from, to) = range.trim().split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}
