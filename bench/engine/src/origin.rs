//! The server that is measured against: as little as HTTP/1.1 with kept connections asks for.

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How large its pages are.
pub const PAGE_BYTES: usize = 10 << 10;

/// Each site allows this.
const ROBOTS_TXT: &str = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0\n";

/// Serves for ever.
pub async fn serve(listener: TcpListener) -> Result<()> {
    let page = answer("text/html", &"<p>page</p>\n".repeat(1_000).as_bytes()[..PAGE_BYTES]);
    let robots = answer("text/plain", ROBOTS_TXT.as_bytes());
    let (page, robots): (&'static [u8], &'static [u8]) = (page.leak(), robots.leak());
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
