use std::error::Error;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HOST, IF_NONE_MATCH, USER_AGENT};
use http::{HeaderMap, HeaderName, Response};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::exchange::{SimRequest, SimResponse, Truncation};
use crate::last_bytes::Stamped;
use crate::world::World;

/// Serves one connection until the client closes it, a script cuts it, or the server stops.
pub(crate) async fn serve(
    stream: TcpStream,
    world: Arc<World>,
    started: Instant,
    mut stop: watch::Receiver<()>,
) {
    // Only scripts should cause delays. If the socket is already dead, the first read shows it.
    stream.set_nodelay(true).ok();
    let stream = Stamped::new(stream);
    let last_bytes = stream.last_bytes();
    let since_start = || last_bytes.at().saturating_duration_since(started);
    let mut connection = http1::Builder::new().header_read_timeout(None).serve_connection(
        TokioIo::new(stream),
        service_fn(|request| carry_out(ask(&world, since_start(), &request))),
    );
    let ended = tokio::select! {
        ended = &mut connection => ended,
        _ = stop.changed() => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            timeout(STOP_GRACE, &mut connection).await.unwrap_or(Ok(()))
        }
    };
    if ended.is_err_and(|error| asks_for_reset(&error)) {
        // Closing with zero linger sends RST; if that fails, FIN is good enough.
        connection.into_parts().io.into_inner().into_inner().set_zero_linger().ok();
    }
}

/// How long responses in progress may continue when the server stops: a stalled one would never end.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// A slow body is sent in this many pieces.
const PIECES: usize = 10;

/// When a body fails, hyper drops what it has not written yet. This gives the bytes before the cut time to be sent.
const FLUSH_TIME: Duration = Duration::from_millis(10);

type Body = Either<Full<Bytes>, Channel<Bytes, Cut>>;

fn ask(world: &World, at: Duration, request: &http::Request<Incoming>) -> SimResponse {
    let header = |name: HeaderName| text_of(request.headers(), &name);
    let uri = request.uri();
    let request = SimRequest {
        host: uri.authority().map_or_else(|| header(HOST), http::uri::Authority::as_str),
        method: request.method(),
        path_and_query: uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str),
        user_agent: header(USER_AGENT),
        if_none_match: header(IF_NONE_MATCH),
    };
    world.answer(at, request)
}

fn text_of<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

async fn carry_out(answer: SimResponse) -> Result<Response<Body>, Cut> {
    if !answer.first_byte_after.is_zero() {
        sleep(answer.first_byte_after).await;
    }
    match answer.manner {
        Truncation::CutConnection => return Err(Cut::Reset),
        Truncation::Stall => return pending().await,
        Truncation::Complete | Truncation::CutAfterHead | Truncation::CutMidBody { .. } => {}
    }
    let mut head = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        head = head.header(name, value);
    }
    Ok(head.body(body_of(answer)).unwrap_or_else(|error| bad_script(&error)))
}

fn bad_script(error: &http::Error) -> Response<Body> {
    let text = format!("the script of this site makes no valid answer: {error}\n");
    let mut response = Response::new(Either::Left(Full::from(text)));
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response
}

fn body_of(answer: SimResponse) -> Body {
    if answer.manner == Truncation::Complete && answer.body_over.is_zero() {
        return Either::Left(Full::new(answer.body));
    }
    let (sender, body) = Channel::new(1);
    tokio::spawn(send(answer, sender));
    Either::Right(body)
}

async fn send(answer: SimResponse, mut sender: Sender<Bytes, Cut>) {
    let sent_bytes = match answer.manner {
        Truncation::CutAfterHead => 0,
        Truncation::CutMidBody { after_bytes } => after_bytes.min(answer.body.len()),
        Truncation::Complete | Truncation::CutConnection | Truncation::Stall => answer.body.len(),
    };
    let pieces = if answer.body_over.is_zero() { 1 } else { PIECES };
    let piece_bytes = sent_bytes.div_ceil(pieces);
    let mut rest = answer.body.slice(..sent_bytes);
    while !rest.is_empty() {
        sleep(answer.body_over / pieces as u32).await;
        let piece = rest.split_to(piece_bytes.min(rest.len()));
        if sender.send_data(piece).await.is_err() {
            return; // The client has disconnected.
        }
    }
    if answer.manner != Truncation::Complete {
        sleep(FLUSH_TIME).await;
        sender.abort(Cut::Close);
    }
}

/// Why a connection ends before its response is complete; in hyper, only an error can do that.
#[derive(Debug)]
enum Cut {
    Reset,
    Close,
}

impl fmt::Display for Cut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the script cuts this connection")
    }
}

impl Error for Cut {}

fn asks_for_reset(error: &hyper::Error) -> bool {
    let cut = error.source().and_then(|source| source.downcast_ref::<Cut>());
    matches!(cut, Some(Cut::Reset))
}
