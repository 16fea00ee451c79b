//! The connection below AMQP: TCP, with TLS for amqps.
//!
//! lapin's TLS features bring a PKCS#12 stack that nothing here uses, so they are off. Without them, lapin's own
//! `connect` functions send amqps in the clear; `clippy.toml` bans them.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures::Stream;
use futures::io::{AsyncRead, AsyncWrite};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};
use tokio_util::either::Either;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Opens connections to brokers.
#[derive(Clone)]
pub(super) struct Transport {
    tls: TlsConnector,
}

type TcpOrTls = Either<TcpStream, TlsStream<TcpStream>>;
type BrokerRuntime = Runtime<RuntimeParts<Tokio, BrokerReactor>>;

impl Transport {
    /// Trusts the public certificate authorities.
    pub(super) fn new() -> Result<Transport, rustls::Error> {
        Transport::trusting(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect())
    }

    pub(super) fn trusting(roots: RootCertStore) -> Result<Transport, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Transport { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Connects and logs in. Dropping the future closes the socket, which ends lapin's thread.
    pub(super) async fn connect(
        &self,
        uri: AMQPUri,
        properties: ConnectionProperties,
    ) -> lapin::Result<Connection> {
        let tokio = Tokio::current();
        let kit = RuntimeParts::new(tokio.clone(), BrokerReactor { tokio });
        let given_up = CancellationToken::new();
        let guard = given_up.clone().drop_guard();
        // Opened before lapin begins, which sometimes loses the error of a stream that it opens itself.
        let stream = self.open(&uri, given_up).await.map_err(lapin::Error::from)?;
        let stream = Mutex::new(Some(stream));
        let open = async move |_: AMQPUri, _: BrokerRuntime| {
            let stream = stream.lock().take();
            let stream = stream.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
            // `Plain` for lapin, which does not know about the TLS below.
            stream.map(AsyncTcpStream::Plain).map_err(lapin::Error::from)
        };
        let connection = Connection::connector(uri, Runtime::new(kit), open, properties).await?;
        drop(guard.disarm());
        Ok(connection)
    }

    async fn open(&self, uri: &AMQPUri, given_up: CancellationToken) -> io::Result<BrokerStream> {
        let host = uri.authority.host.as_str();
        let stream = dial((host, uri.authority.port)).await?;
        let stream: TcpOrTls = match uri.scheme {
            AMQPScheme::AMQP => Either::Left(stream),
            AMQPScheme::AMQPS => {
                let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
                Either::Right(self.tls.connect(name, stream).await?)
            }
        };
        Ok(BrokerStream::new(stream, given_up))
    }
}

/// The stream that lapin reads and writes. lapin's thread reads until the broker answers or the stream fails, even if
/// the attempt to connect has been cancelled. So cancelling it makes the stream fail.
struct BrokerStream {
    stream: Compat<TcpOrTls>,
    given_up: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl BrokerStream {
    fn new(stream: TcpOrTls, given_up: CancellationToken) -> BrokerStream {
        BrokerStream { stream: stream.compat(), given_up: Box::pin(given_up.cancelled_owned()) }
    }
}

impl AsyncRead for BrokerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.given_up.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for BrokerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(context)
    }
}

/// tokio, with streams that may be TLS. lapin takes its timers from here; `register` and `tcp_connect_addr` only
/// complete the trait.
#[derive(Clone, Debug)]
struct BrokerReactor {
    tokio: Tokio,
}

impl Reactor for BrokerReactor {
    type TcpStream = BrokerStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    // The trait's own bound, `AsSysFd`, is private to its crate and is equivalent to these two.
    fn register<H: Read + Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.tokio.register(socket)
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.tokio.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.tokio.interval(time)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let dialling = dial(address);
        async move { Ok(BrokerStream::new(Either::Left(dialling.await?), CancellationToken::new())) }
    }
}

async fn dial(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
    #[expect(clippy::disallowed_methods, reason = "a broker is a store, not a site")]
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use fetchwell_testkit::conformance::servers::server_url;
    use fetchwell_testkit::tls_front::TlsFront;
    use futures::io::{AsyncReadExt, AsyncWriteExt};
    use lapin::options::{
        BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
    };
    use lapin::types::FieldTable;
    use lapin::{BasicProperties, Confirmation};
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    /// A server that sends everything back.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = client.split();
                    tokio::io::copy(&mut from, &mut to).await.ok();
                });
            }
        });
        address
    }

    async fn echoed(transport: &Transport, url: &str) -> io::Result<[u8; 4]> {
        let uri: AMQPUri = url.parse().unwrap();
        let mut stream = transport.open(&uri, CancellationToken::new()).await?;
        stream.write_all(b"AMQP").await?;
        stream.flush().await?;
        let mut back = [0; 4];
        stream.read_exact(&mut back).await?;
        Ok(back)
    }

    /// The authority of a front, and no other.
    fn authority_of(front: &TlsFront) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(front.authority_file()).unwrap() {
            roots.add(certificate.unwrap()).unwrap();
        }
        roots
    }

    #[tokio::test]
    async fn a_server_is_reached_by_tcp_and_by_tls() {
        let server = echo().await;
        let plain = format!("amqp://{server}");
        assert_eq!(&echoed(&Transport::new().unwrap(), &plain).await.unwrap(), b"AMQP");
        let front = TlsFront::open(&["localhost"], server).await.unwrap();
        let transport = Transport::trusting(authority_of(&front)).unwrap();
        let url = format!("amqps://localhost:{}", front.address().port());
        assert_eq!(&echoed(&transport, &url).await.unwrap(), b"AMQP");
    }

    #[tokio::test]
    async fn a_certificate_of_an_unknown_authority_or_for_another_name_is_refused() {
        let front = TlsFront::open(&["rabbit.test"], echo().await).await.unwrap();
        let url = format!("amqps://localhost:{}", front.address().port());
        for (transport, want) in [
            (Transport::new(), "UnknownIssuer"),
            (Transport::trusting(authority_of(&front)), "not valid for name"),
        ] {
            let error = echoed(&transport.unwrap(), &url).await.unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    /// Only lapin's thread owns the socket, so the socket is closed when the thread ends.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_attempt_that_is_given_up_ends_its_thread() {
        for scheme in ["amqp", "amqps"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("{scheme}://{}", listener.local_addr().unwrap());
            let transport = Transport::new().unwrap();
            let properties = ConnectionProperties::default();
            let connecting = transport.connect(url.parse().unwrap(), properties);
            let silent = timeout(Duration::from_millis(500), connecting);
            let (connected, accepted) = tokio::join!(silent, listener.accept());
            assert!(connected.is_err(), "{scheme}: connected to a broker that says nothing");
            let mut client = accepted.unwrap().0;
            let mut sent = Vec::new();
            let read = client.read_to_end(&mut sent);
            timeout(Duration::from_secs(10), read).await.expect(scheme).unwrap();
            assert!(!sent.is_empty(), "{scheme}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_message_goes_to_a_broker_and_back_over_tls() {
        let Some(url) = server_url("FETCHWELL_TEST_RABBITMQ_URL") else { return };
        let mut uri: AMQPUri = url.parse().unwrap();
        let address = (uri.authority.host.clone(), uri.authority.port);
        let broker = tokio::net::lookup_host(address).await.unwrap().next().unwrap();
        let front = TlsFront::open(&["localhost"], broker).await.unwrap();
        uri.scheme = AMQPScheme::AMQPS;
        uri.authority.host = "localhost".to_owned();
        uri.authority.port = front.address().port();
        let transport = Transport::trusting(authority_of(&front)).unwrap();

        let connection = transport.connect(uri, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let options = QueueDeclareOptions::exclusive();
        let queue = channel.queue_declare("".into(), options, FieldTable::default()).await.unwrap();
        let name = queue.name().clone();
        // Longer than a frame of AMQP, a record of TLS and what a socket takes at once.
        let body = vec![7; 4 << 20];
        let options = BasicPublishOptions::default();
        let properties = BasicProperties::default();
        let sent = channel.basic_publish("".into(), name.clone(), options, &body, properties).await;
        assert!(matches!(sent.unwrap().await.unwrap(), Confirmation::Ack(None)));
        let got = channel.basic_get(name, BasicGetOptions { no_ack: true }).await.unwrap();
        assert!(got.unwrap().delivery.data == body, "it came back changed");
    }
}
