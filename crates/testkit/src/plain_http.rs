//! HTTP requests to a service under test; failures are returned, not raised.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A service that is silent for this long counts as gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// A response.
#[derive(Debug)]
pub struct PlainResponse {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl PlainResponse {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// Sends a request with this token on a new connection.
pub async fn ask(
    to: SocketAddr,
    token: &str,
    request_line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<PlainResponse> {
    let mut head = format!(
        "{request_line} HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let exchange = async {
        #[expect(clippy::disallowed_methods, reason = "a test's own client to its own listener")]
        let mut stream = TcpStream::connect(to).await?;
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        Ok::<_, io::Error>(bytes)
    };
    let silence = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer");
    let bytes = timeout(PATIENCE, exchange).await.map_err(silence)??;
    read(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "half an answer"))
}

/// Parses a complete response, which must state its length.
fn read(bytes: &[u8]) -> Option<PlainResponse> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?.to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let body = bytes[end + 4..].to_vec();
    (body.len() == length.parse::<usize>().ok()?).then_some(PlainResponse { status, body })
}
