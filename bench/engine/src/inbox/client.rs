//! A client that does as little as a client can: what it costs is taken from the program's share.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is kept.
pub(super) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects.
    #[expect(clippy::disallowed_methods, reason = "to the program on this machine, not to the web")]
    pub(super) async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, answer: Vec::with_capacity(16 << 10) })
    }

    /// Sends a whole request, and returns the body of the answer. All but a 200 is an error.
    pub(super) async fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.answer.clear();
        let mut scanned = 0;
        let mut whole = None;
        while whole.is_none_or(|(_, end)| self.answer.len() < end) {
            let read = self.stream.read_buf(&mut self.answer).await?;
            ensure!(read > 0, "the program hung up: {}", self.text());
            if whole.is_none() {
                whole = self.extent(scanned)?;
                scanned = self.answer.len().saturating_sub(3);
            }
        }
        if !self.answer.starts_with(b"HTTP/1.1 200 ") {
            bail!("not accepted: {}", self.text());
        }
        let (body, end) = whole.unwrap_or_default();
        self.answer.get(body..end).context("an answer without a body")
    }

    /// Where the body begins and ends, once the whole head is there.
    fn extent(&self, from: usize) -> Result<Option<(usize, usize)>> {
        const LENGTH: &[u8] = b"\r\ncontent-length: ";
        let Some(head) = memmem::find(&self.answer[from..], b"\r\n\r\n") else { return Ok(None) };
        let body = from + head + 4;
        let head = &self.answer[..from + head + 2];
        let length = memmem::find(head, LENGTH).context("an answer without Content-Length")?;
        let digits = head[length + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        let length = digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
        Ok(Some((body, body + length)))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.answer).into_owned()
    }
}

/// A request to post JSON.
pub(super) fn post(path: &str, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A request to get something.
pub(super) fn get(path: &str, token: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
        .into_bytes()
}
