//! The server that is measured against: as little as HTTP/1.1 with kept connections asks for.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How large its pages are.
pub const PAGE_BYTES: usize = 10 << 10;

/// Each site allows this.
const ROBOTS_TXT: &str = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0\n";

/// A process of its own that serves, so that its time is nobody else's. It ends with its owner.
pub struct Origin {
    child: Child,
    /// Where it listens, on every address of this machine.
    pub port: u16,
}

impl Origin {
    /// Starts this program again with the argument `origin`, which must lead to [`announce_and_serve`].
    pub fn start() -> Result<Origin> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("origin").stdout(Stdio::piped()).spawn()?;
        let said = child.stdout.take();
        let mut origin = Origin { child, port: 0 };
        let mut line = String::new();
        BufReader::new(said.context("the origin says nothing")?).read_line(&mut line)?;
        origin.port = line.trim().parse()?;
        Ok(origin)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Tells the parent the port, and serves for ever.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
pub async fn announce_and_serve() -> Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0").await?;
    println!("{}", listener.local_addr()?.port());
    serve(listener).await
}

/// Serves for ever.
pub async fn serve(listener: TcpListener) -> Result<()> {
    let page = answer("text/html", &"<p>page</p>\n".repeat(1_000).as_bytes()[..PAGE_BYTES]);
    let robots = answer("text/plain", ROBOTS_TXT.as_bytes());
    let page: &'static [u8] = page.leak();
    let robots: &'static [u8] = robots.leak();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A connection that breaks is the client's to notice.
        tokio::spawn(async move { drop(talk(stream, page, robots).await) });
    }
}

async fn talk(mut stream: TcpStream, page: &[u8], robots: &[u8]) -> Result<()> {
    let mut head = Vec::with_capacity(4_096);
    while stream.read_buf(&mut head).await? > 0 {
        if head.ends_with(b"\r\n\r\n") {
            let asks_for_robots = head.starts_with(b"GET /robots.txt ");
            stream.write_all(if asks_for_robots { robots } else { page }).await?;
            head.clear();
        }
    }
    Ok(())
}

fn answer(content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
