//! A TCP server that writes exact bytes, records what it gets, and stalls, cuts and resets on demand.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::url::WebUrl;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What a connection does next. A script that is over closes its connection.
#[derive(Clone)]
pub(crate) enum Step {
    /// Reads one request with its body, and records it.
    Read,
    Write(Vec<u8>),
    /// Writes the same over and over, with a pause after each, until the client is gone.
    Repeat {
        piece: Vec<u8>,
        pause: Duration,
    },
    Pause(Duration),
    /// Says nothing until the client closes the connection.
    AwaitClose,
    /// Ends the script, and closes with an RST instead of a FIN.
    Reset,
}

/// Reads a request and answers it.
pub(crate) fn answer(bytes: impl Into<Vec<u8>>) -> Vec<Step> {
    vec![Step::Read, Step::Write(bytes.into())]
}

/// A `200` with a length, headers (each ended by CRLF) and a body.
pub(crate) fn ok(headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{headers}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// What a server saw so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: usize,
    pub(crate) requests: Vec<String>,
    /// Connections that ended, whoever ended them.
    pub(crate) ended: usize,
}

/// A listening server. Its connections take the scripts in turn; the last one serves all that follow.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<watch::Sender<Seen>>,
}

impl Server {
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Vec<Step>>) -> Server {
        Server::start_at(IpAddr::from([127, 0, 0, 1]), scripts).await
    }

    pub(crate) async fn start_at(
        ip: IpAddr,
        scripts: impl IntoIterator<Item = Vec<Step>>,
    ) -> Server {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(watch::Sender::new(Seen::default()));
        let mut scripts: Vec<_> = scripts.into_iter().collect();
        scripts.reverse();
        tokio::spawn({
            let seen = seen.clone();
            async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let script = match scripts.as_slice() {
                        [last] => last.clone(),
                        _ => scripts.pop().unwrap_or_default(),
                    };
                    seen.send_modify(|seen| seen.connections += 1);
                    if script.iter().any(|step| matches!(step, Step::Reset)) {
                        stream.set_zero_linger().unwrap();
                    }
                    let seen = seen.clone();
                    tokio::spawn(async move {
                        follow(script, stream, &seen).await;
                        seen.send_modify(|seen| seen.ended += 1);
                    });
                }
            }
        });
        Server { address, seen }
    }

    /// A server that no request should ever reach.
    pub(crate) async fn canary() -> Server {
        Server::start([vec![]]).await
    }

    /// One answer for each request, on as many connections as the client likes.
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Server {
        Server::start([vec![answer(bytes); 100].concat()]).await
    }

    pub(crate) fn url(&self, path: &str) -> WebUrl {
        WebUrl::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    pub(crate) async fn until(&self, holds: impl FnMut(&Seen) -> bool) {
        self.seen.subscribe().wait_for(holds).await.unwrap();
    }
}

/// Follows a script on a connection, as far as the client plays along.
pub(crate) async fn follow<S>(script: Vec<Step>, mut stream: S, seen: &watch::Sender<Seen>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for step in script {
        let went_on = match step {
            Step::Read => match read_request(&mut stream).await {
                Some(request) => {
                    seen.send_modify(|seen| seen.requests.push(request));
                    true
                }
                None => false,
            },
            Step::Write(bytes) => stream.write_all(&bytes).await.is_ok(),
            Step::Repeat { piece, pause } => {
                while stream.write_all(&piece).await.is_ok() {
                    tokio::time::sleep(pause).await;
                }
                false
            }
            Step::Pause(pause) => {
                tokio::time::sleep(pause).await;
                true
            }
            Step::AwaitClose => {
                let mut ignored = Vec::new();
                // A reset is an end as good as any.
                drop(stream.read_to_end(&mut ignored).await);
                true
            }
            Step::Reset => return,
        };
        if !went_on {
            break;
        }
    }
    // Ends TLS in order; a client that is gone already does not mind.
    drop(stream.shutdown().await);
}

/// A request's head and as much body as it announces; `None` when the client closes before.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    request.extend(body);
    Some(String::from_utf8(request).unwrap())
}
