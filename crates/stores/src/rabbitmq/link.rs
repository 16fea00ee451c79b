//! Connections to a broker, and the conversion of its errors.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties};
use tokio::time::timeout;
use url::{Host, Url};

use super::errors::store_error;
use super::transport::Transport;

/// A broker that does not answer within this time counts as unreachable.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A connection that is silent for twice this long is dead.
const HEARTBEAT_S: u16 = 10;

/// The default vhost, which every broker has.
const DEFAULT_VHOST: &str = "/";

/// The address of a broker, and how to connect to it.
#[derive(Clone)]
pub(super) struct AmqpConnection {
    uri: Arc<AMQPUri>,
    transport: Transport,
}

impl AmqpConnection {
    /// Parses the address without connecting.
    pub(super) fn to(url: &str) -> Result<AmqpConnection, StoreError> {
        let mut uri = parsed(url).map_err(|wrong| {
            StoreError::incompatible(format!("the address of RabbitMQ is invalid: {wrong}"))
                .with_advice("write amqp://user:password@host:port/vhost")
        })?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT_S);
        let transport = Transport::new()
            .map_err(|error| StoreError::bug("TLS for RabbitMQ").with_source(error))?;
        Ok(AmqpConnection { uri: Arc::new(uri), transport })
    }

    /// A new connection. `purpose` is shown in the broker's own lists.
    pub(super) async fn connect(&self, purpose: &str) -> Result<Connection, StoreError> {
        let name = format!("fetchwell {purpose}");
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        self.answered(self.transport.connect((*self.uri).clone(), properties)).await
    }

    /// Waits up to [`ANSWER_WITHIN`] for an answer of the broker.
    pub(super) async fn answered<T>(
        &self,
        question: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, StoreError> {
        match timeout(ANSWER_WITHIN, question).await {
            Ok(answer) => answer.map_err(|error| self.fault(error)),
            Err(_) => Err(self.silent()),
        }
    }

    pub(super) fn fault(&self, error: lapin::Error) -> StoreError {
        store_error(format!("RabbitMQ at {}", self.address()), error)
    }

    /// The error for a broker that does not answer.
    pub(super) fn silent(&self) -> StoreError {
        let within_s = ANSWER_WITHIN.as_secs();
        self.unavailable(&format!(
            "no answer within {within_s} s; check that the broker runs and can be reached"
        ))
    }

    pub(super) fn unavailable(&self, what: &str) -> StoreError {
        StoreError::transient(format!("RabbitMQ at {}: {what}", self.address()))
    }

    /// The address of the broker, without the password.
    pub(super) fn address(&self) -> String {
        let authority = &self.uri.authority;
        let host = match authority.host.contains(':') {
            true => format!("[{}]", authority.host),
            false => authority.host.clone(),
        };
        format!("{host}:{}{}", authority.port, vhost(&self.uri.vhost))
    }
}

/// By the AMQP URI specification, a trailing slash names the vhost "". Brokers do not have one of that name, and people
/// who write the slash mean the default vhost.
///
/// `AMQPUri` only understands host names: it takes an IPv6 address for a missing host and uses localhost.
fn parsed(url: &str) -> Result<AMQPUri, String> {
    let mut uri: AMQPUri = url.parse()?;
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    if let Some(Host::Ipv6(address)) = url.host() {
        uri.authority.host = address.to_string();
    }
    if uri.vhost.is_empty() {
        uri.vhost = DEFAULT_VHOST.to_owned();
    }
    Ok(uri)
}

/// The vhost as part of an address; empty for the default one.
fn vhost(name: &str) -> String {
    if name == DEFAULT_VHOST { String::new() } else { format!("/{name}") }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::error::StoreErrorKind;
    use fetchwell_testkit::tls_front::TlsFront;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// The first bytes that a broker at an address of this scheme receives.
    async fn first_bytes(scheme: &str) -> [u8; 5] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let link = AmqpConnection::to(&format!("{scheme}://me:secret@{address}")).unwrap();
        let connecting = tokio::spawn(async move { link.connect("test").await.is_ok() });
        let (mut client, _) = listener.accept().await.unwrap();
        let mut first = [0; 5];
        client.read_exact(&mut first).await.unwrap();
        connecting.abort();
        first
    }

    /// lapin without its TLS features would do just that.
    #[tokio::test(flavor = "multi_thread")]
    async fn amqps_is_not_sent_in_the_clear() {
        assert_eq!(&first_bytes("amqp").await, b"AMQP\0");
        assert_eq!(first_bytes("amqps").await[..2], [0x16, 3], "the beginning of a TLS handshake");
    }

    /// The front uses its own CA, and its certificate is checked before anything is forwarded to the port behind it.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_certificate_that_is_not_trusted_is_incompatible_with_advice() {
        let front = TlsFront::open(&["localhost"], ([127, 0, 0, 1], 1).into()).await.unwrap();
        let url = format!("amqps://me:secret@localhost:{}", front.address().port());
        let error = AmqpConnection::to(&url).unwrap().connect("test").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error}");
        let text = error.to_string();
        assert!(text.contains("UnknownIssuer"), "{text}");
        assert!(text.contains("public certificate authority"), "{text}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_ipv6_address_is_connected_to() {
        // A machine may have no IPv6.
        let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
        let port = listener.local_addr().unwrap().port();
        let link = AmqpConnection::to(&format!("amqp://me:secret@[::1]:{port}/")).unwrap();
        assert_eq!(link.address(), format!("[::1]:{port}"));
        let connecting = tokio::spawn(async move { link.connect("test").await.is_ok() });
        timeout(Duration::from_secs(10), listener.accept()).await.unwrap().unwrap();
        connecting.abort();
    }

    #[test]
    fn an_address_is_told_without_its_password() {
        let link = AmqpConnection::to("amqp://me:secret@rabbit.test:5673/crawls").unwrap();
        assert_eq!(link.address(), "rabbit.test:5673/crawls");
        assert_eq!(
            AmqpConnection::to("amqp://me:secret@rabbit.test/%2f").unwrap().address(),
            "rabbit.test:5672"
        );
        let fault = AmqpConnection::to("http://me:secret@rabbit.test/").err().unwrap().to_string();
        assert!(fault.contains("write amqp://") && !fault.contains("secret"), "{fault}");
    }

    #[test]
    fn the_default_vhost_may_be_written_in_every_way() {
        for end in ["", "/", "/%2f", "/%2F"] {
            let link =
                AmqpConnection::to(&format!("amqp://guest:guest@localhost:5672{end}")).unwrap();
            assert_eq!(link.uri.vhost, "/", "{end}");
        }
        assert_eq!(AmqpConnection::to("amqp://localhost/crawls").unwrap().uri.vhost, "crawls");
    }

    #[test]
    fn what_is_no_address_is_told_without_its_password() {
        assert!(AmqpConnection::to("amqp://me:secret@rabbit.test:5672/").is_ok());
        for url in ["amqp://me:secret@rabbit.test:badport", "amqp://me:secret@rabbit.test:99999/"] {
            let said = AmqpConnection::to(url).err().unwrap().to_string();
            assert!(said.contains("the address of RabbitMQ is invalid"), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
