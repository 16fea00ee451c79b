//! The connection below AMQP: TCP, with TLS for amqps.
//!
//! lapin's TLS features bring a PKCS#12 stack that nothing here uses, so they are off. Without them, lapin's own
//! `connect` functions send amqps in the clear; `clippy.toml` bans them.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures::Stream;
use futures::io::{AsyncRead, AsyncWrite};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};
use tokio_util::either::Either;

/// Opens connections to brokers.
#[derive(Clone)]
pub(super) struct Transport {
    /// The certificate authorities that are trusted.
    roots: Arc<RootCertStore>,
}

type TcpOrTls = Either<TcpStream, TlsStream<TcpStream>>;
/// What lapin reads from and writes to.
type BrokerStream = Compat<TcpOrTls>;
type BrokerRuntime = Runtime<RuntimeParts<Tokio, BrokerReactor>>;

impl Transport {
    /// Trusts the public certificate authorities.
    pub(super) fn new() -> Transport {
        Transport::trusting(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect())
    }

    pub(super) fn trusting(roots: RootCertStore) -> Transport {
        Transport { roots: Arc::new(roots) }
    }

    /// Connects and logs in.
    pub(super) async fn connect(
        &self,
        uri: AMQPUri,
        properties: ConnectionProperties,
    ) -> lapin::Result<Connection> {
        let transport = self.clone();
        let tokio = Tokio::current();
        let kit = RuntimeParts::new(tokio.clone(), BrokerReactor { tokio });
        let open = async move |uri: AMQPUri, _: BrokerRuntime| {
            // Plain to lapin, which knows nothing of the TLS below.
            transport.open(&uri).await.map(AsyncTcpStream::Plain).map_err(lapin::Error::from)
        };
        Connection::connector(uri, Runtime::new(kit), open, properties).await
    }

    async fn open(&self, uri: &AMQPUri) -> io::Result<BrokerStream> {
        let host = uri.authority.host.as_str();
        let stream = dial((host, uri.authority.port)).await?;
        let stream: TcpOrTls = match uri.scheme {
            AMQPScheme::AMQP => Either::Left(stream),
            AMQPScheme::AMQPS => {
                let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
                Either::Right(self.tls()?.connect(name, stream).await?)
            }
        };
        Ok(stream.compat())
    }

    fn tls(&self) -> io::Result<TlsConnector> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// tokio, with streams that may be TLS. lapin takes its timers from here; `register` and `tcp_connect_addr` are only
/// part of the trait.
#[derive(Clone, Debug)]
struct BrokerReactor {
    tokio: Tokio,
}

impl Reactor for BrokerReactor {
    type TcpStream = BrokerStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    // The trait's own bound, `AsSysFd`, is private to its crate and stands for these two.
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
        async move {
            let stream: TcpOrTls = Either::Left(dialling.await?);
            Ok(stream.compat())
        }
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
    use tokio::net::TcpListener;

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
        let mut stream = transport.open(&uri).await?;
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
        assert_eq!(&echoed(&Transport::new(), &plain).await.unwrap(), b"AMQP");
        let front = TlsFront::open(&["localhost"], server).await.unwrap();
        let transport = Transport::trusting(authority_of(&front));
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
            let error = echoed(&transport, &url).await.unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
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
        let transport = Transport::trusting(authority_of(&front));

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
