//! Connects to a vetted address, with TLS if needed, and starts HTTP on the connection.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fetchwell_policy::outcome::{FetchOutcome, NetworkFault, Phase, TlsFault};
use fetchwell_policy::url::{Scheme, WebUrl};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, IpAddr as TlsIpAddr, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::breach::is_breach_of_http;
use super::error::ClientError;
use super::lack::is_lack_of_our_own;
use super::pool::{Connection, Sender};
use super::stream::{Departure, PoliteStream};
use super::tls_fault::tls_fault;

/// The maximum number of addresses tried per name, so that each gets enough of the time.
const MAX_DIALLED: usize = 4;

/// hyper's smallest buffer. A smaller header limit is enforced after reading.
const LEAST_BUFFER_BYTES: usize = 8_192;

/// The assumed minimum of the average header size, which turns the limit in bytes into a limit on the number of
/// headers. hyper allocates room for the maximum number in advance, so a higher limit would cost something on every
/// page.
const LEAST_HEADER_BYTES: usize = 64;

/// How much an HTTP/2 server may send before we read it, per response and per connection. This is not part of the byte
/// budget, so it is small.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// The TLS configuration for all connections.
pub(super) fn tls_config(extra_ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, ClientError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = extra_ca_file {
        let bad_file = |source: pem::Error| ClientError::CaFile { path: path.to_owned(), source };
        for certificate in CertificateDer::pem_file_iter(path).map_err(bad_file)? {
            let certificate = certificate.map_err(bad_file)?;
            roots
                .add(certificate)
                .map_err(|source| ClientError::CaCertificate { path: path.to_owned(), source })?;
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Connects to the first address that answers, and starts HTTP on the connection.
pub(super) async fn connect(
    url: &WebUrl,
    addresses: &[SocketAddr],
    tls: &Arc<ClientConfig>,
    max_header_bytes: usize,
    time: Duration,
) -> Result<Sender, FetchOutcome> {
    let (stream, peer) = dial(addresses, time).await?;
    match url.scheme() {
        Scheme::Http => http1_on(stream, peer, max_header_bytes).await,
        Scheme::Https => {
            let name = server_name(url)?;
            let connector = TlsConnector::from(tls.clone());
            let stream = connector.connect(name, stream).await.map_err(|error| {
                let is_ours = is_lack_of_our_own(&error);
                if is_ours {
                    no_connection(&error)
                } else {
                    failed(NetworkFault::Tls(tls_fault(&error)))
                }
            })?;
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                http2_on(stream, peer, max_header_bytes).await
            } else {
                http1_on(stream, peer, max_header_bytes).await
            }
        }
    }
}

/// Each address gets an equal part of the time, so that one that never answers cannot use up the time of the others.
async fn dial(
    addresses: &[SocketAddr],
    limit: Duration,
) -> Result<(TcpStream, SocketAddr), FetchOutcome> {
    let addresses = &addresses[..addresses.len().min(MAX_DIALLED)];
    let each = limit / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut happened = failed(NetworkFault::ConnectRefused);
    for address in addresses {
        #[expect(clippy::disallowed_methods, reason = "the one place that opens connections")]
        match tokio::time::timeout(each, TcpStream::connect(address)).await {
            // The address was vetted; the peer must be that address and no other.
            Ok(Ok(stream)) if stream.peer_addr().is_ok_and(|peer| peer == *address) => {
                // Avoids delays for small writes. An error is ignored, because requests would only be slower.
                drop(stream.set_nodelay(true));
                return Ok((stream, *address));
            }
            Ok(Err(error)) if is_want_of_ipv6(address, &error) => {}
            Ok(Err(error)) if is_lack_of_our_own(&error) => return Err(no_connection(&error)),
            Ok(_) => {}
            Err(_) => happened = FetchOutcome::TimedOut(Phase::Connect),
        }
    }
    Err(happened)
}

/// A machine without IPv6 has no source address for the connection. IPv4 still works, so this must not count as a
/// shortage that pauses the whole process.
fn is_want_of_ipv6(address: &SocketAddr, error: &io::Error) -> bool {
    address.is_ipv6() && error.kind() == io::ErrorKind::AddrNotAvailable
}

fn no_connection(error: &io::Error) -> FetchOutcome {
    FetchOutcome::OurFault(format!("no connection can be opened: {error}"))
}

fn server_name(url: &WebUrl) -> Result<ServerName<'static>, FetchOutcome> {
    match url.host_ip() {
        Some(ip) => Ok(ServerName::IpAddress(TlsIpAddr::from(ip))),
        // No certificate can be valid for such a name.
        None => ServerName::try_from(url.host().to_owned())
            .map_err(|_| failed(NetworkFault::Tls(TlsFault::WrongName))),
    }
}

async fn http1_on(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    max_header_bytes: usize,
) -> Result<Sender, FetchOutcome> {
    let departure = Departure::default();
    // Accept malformed headers that browsers accept, too.
    #[expect(clippy::disallowed_methods, reason = "the one place that speaks HTTP/1")]
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(max_header_bytes.max(LEAST_BUFFER_BYTES))
        .max_headers(max_header_bytes.max(LEAST_BUFFER_BYTES) / LEAST_HEADER_BYTES)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .handshake(TokioIo::new(PoliteStream::new(stream, departure.clone())))
        .await
        .map_err(|_| failed(NetworkFault::Reset))?;
    Ok(Sender::Http1(sender, run(connection, peer), departure))
}

async fn http2_on(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    max_header_bytes: usize,
) -> Result<Sender, FetchOutcome> {
    // HTTP/2 counts 32 bytes more per header, and reports an excess as a broken stream. With a higher limit here, the
    // client checks its own limit and can report the real cause.
    let room_for_headers = u32::try_from(max_header_bytes.saturating_mul(2)).unwrap_or(u32::MAX);
    // Requests share this connection, so the time of a single head is not checked: its departure is never set.
    let departure = Departure::default();
    let end = CancellationToken::new();
    #[expect(clippy::disallowed_methods, reason = "the one place that speaks HTTP/2")]
    let (sender, connection) = http2::Builder::new(Helpers(end.clone()))
        .max_header_list_size(room_for_headers)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .handshake(TokioIo::new(PoliteStream::new(stream, departure)))
        .await
        .map_err(|_| failed(NetworkFault::Reset))?;
    Ok(Sender::Http2(sender, Arc::new((run(connection, peer), end.drop_guard()))))
}

fn run(
    connection: impl Future<Output = hyper::Result<()>> + Send + 'static,
    peer: SocketAddr,
) -> Connection {
    let broke_http = Arc::new(AtomicBool::new(false));
    let noted = broke_http.clone();
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut connection = pin!(connection);
        let ended = connection.as_mut().await;
        // Noted before the connection is dropped: that is when a request that was not written yet fails.
        noted.store(ended.is_err_and(|error| is_breach_of_http(&error)), Ordering::Release);
    }));
    Connection { peer, broke_http, task }
}

/// Runs the tasks that hyper needs for an HTTP/2 connection, and cancels them with the last sender. One of them holds
/// the socket, and would otherwise wait for a server that never reads our GOAWAY.
#[derive(Clone)]
struct Helpers(CancellationToken);

impl<W> hyper::rt::Executor<W> for Helpers
where
    W: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, work: W) {
        let end = self.0.clone();
        tokio::spawn(async move { drop(end.run_until_cancelled(work).await) });
    }
}

fn failed(fault: NetworkFault) -> FetchOutcome {
    FetchOutcome::Network(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ipv6_can_be_missing_on_a_machine() {
        let v6 = "[2001:db8::1]:80".parse().unwrap();
        let v4 = "192.0.2.1:80".parse().unwrap();
        let no_address = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(is_want_of_ipv6(&v6, &no_address));
        assert!(!is_want_of_ipv6(&v4, &no_address), "we are out of local ports");
        assert!(!is_want_of_ipv6(&v6, &refused));
    }
}
