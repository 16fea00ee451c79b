//! A proxy that adds a token to every request, for clients that cannot send one.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::client::connect;

const MAX_HEAD_BYTES: usize = 64 << 10;

/// The proxy. It stops when it is dropped.
pub(super) struct WithToken {
    pub(super) address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl WithToken {
    pub(super) async fn start(to: SocketAddr, token: &str) -> WithToken {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // One request per connection, so that every request has a head that is seen here.
        let added = format!("authorization: Bearer {token}\r\nconnection: close\r\n");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let added = added.clone();
                // A client that hangs up is of no interest.
                tokio::spawn(async move { drop(pass_on(stream, to, &added).await) });
            }
        });
        WithToken { address, _task: AbortOnDropHandle::new(task) }
    }
}

async fn pass_on(mut from: TcpStream, to: SocketAddr, added: &str) -> io::Result<()> {
    let mut head = Vec::new();
    let end = loop {
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 2;
        }
        if head.len() > MAX_HEAD_BYTES || from.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    };
    let rest = head.split_off(end);
    let text = String::from_utf8_lossy(&head).into_owned();
    let kept = text
        .split_inclusive("\r\n")
        .filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head: String = kept.chain([added]).collect();
    let mut to = connect(to).await;
    to.write_all(head.as_bytes()).await?;
    to.write_all(&rest).await?;
    copy_bidirectional(&mut from, &mut to).await?;
    Ok(())
}
