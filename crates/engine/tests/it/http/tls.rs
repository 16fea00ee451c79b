//! TLS: whom the client trusts, and a server to trust.

use std::net::SocketAddr;
use std::sync::Arc;

use fetchwell_engine::http::{Client, HttpLimits, HttpSettings};
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault, TlsFault};
use fetchwell_policy::url::WebUrl;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::client::{client_knowing, failure, fetch};
use super::script::{Seen, Server, Step, answer, follow, ok};

/// The name on the certificates.
pub(crate) const NAME: &str = "tls.test";

/// A certificate with its key.
struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

/// An authority that signs for [`NAME`], in a file as operators give it.
pub(crate) struct Authority {
    file: NamedTempFile,
    signed: Identity,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let authority_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&authority_key).unwrap();
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), own.pem()).unwrap();
        let issuer = Issuer::new(params, authority_key);
        let certificate = named().signed_by(&key, &issuer).unwrap().der().clone();
        Authority { file, signed: Identity { certificate, key }, issuer }
    }

    /// Accepts TLS with a certificate of this authority that differs from a good one by this.
    fn acceptor_with(&self, change: impl FnOnce(&mut CertificateParams)) -> TlsAcceptor {
        let mut params = named();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        acceptor(&Identity { certificate, key }, b"http/1.1")
    }

    /// A client that trusts this authority and sends [`NAME`] to loopback.
    pub(crate) fn client(&self) -> Client {
        self.limited_client(|_| {})
    }

    pub(crate) fn limited_client(&self, change: impl FnOnce(&mut HttpLimits)) -> Client {
        client_knowing([(NAME, &["127.0.0.1"])], |settings| {
            settings.extra_ca_file = Some(self.file.path().to_owned());
            change(&mut settings.limits);
        })
    }

    pub(crate) fn acceptor(&self, protocol: &[u8]) -> TlsAcceptor {
        acceptor(&self.signed, protocol)
    }
}

fn named() -> CertificateParams {
    CertificateParams::new(vec![NAME.to_owned()]).unwrap()
}

fn acceptor(identity: &Identity, protocol: &[u8]) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Hands each connection with a good handshake to `serve`.
pub(crate) async fn listen<F>(
    acceptor: TlsAcceptor,
    serve: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static,
) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(serve(stream));
            }
        }
    });
    address
}

pub(crate) fn url(address: SocketAddr, path: &str) -> WebUrl {
    WebUrl::parse(&format!("https://{NAME}:{}{path}", address.port())).unwrap()
}

async fn greet(stream: TlsStream<TcpStream>) {
    follow(answer(ok("", b"hello")), stream, &watch::Sender::new(Seen::default())).await;
}

fn tls(fault: TlsFault) -> FetchOutcome {
    FetchOutcome::Network(NetworkFault::Tls(fault))
}

#[tokio::test]
async fn an_authority_that_the_operator_names_is_trusted() {
    let authority = Authority::new();
    let address = listen(authority.acceptor(b"http/1.1"), greet).await;
    assert_eq!(fetch(&authority.client(), url(address, "/")).await.body, "hello");
}

#[tokio::test]
async fn other_certificates_are_not_trusted() {
    let authority = Authority::new();
    let unknown = tls(TlsFault::UnknownIssuer);
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let key = KeyPair::generate().unwrap();
        let mut params = named();
        params.is_ca = is_ca;
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let self_signed = acceptor(&Identity { certificate, key }, b"http/1.1");
        let address = listen(self_signed, greet).await;
        assert_eq!(failure(&authority.client(), url(address, "/")).await, unknown);
    }
    let address = listen(Authority::new().acceptor(b"http/1.1"), greet).await;
    assert_eq!(failure(&authority.client(), url(address, "/")).await, unknown);
}

#[tokio::test]
async fn a_certificate_is_good_for_its_time_only() {
    let authority = Authority::new();
    let past = authority.acceptor_with(|params| params.not_after = date_time_ymd(2001, 1, 1));
    let future = authority.acceptor_with(|params| params.not_before = date_time_ymd(2999, 1, 1));
    for (acceptor, fault) in [(past, TlsFault::Expired), (future, TlsFault::NotYetValid)] {
        let address = listen(acceptor, greet).await;
        assert_eq!(failure(&authority.client(), url(address, "/")).await, tls(fault));
    }
}

#[tokio::test]
async fn a_certificate_is_good_for_its_name_only() {
    let authority = Authority::new();
    let address = listen(authority.acceptor(b"http/1.1"), greet).await;
    let literal = WebUrl::parse(&format!("https://{address}/")).unwrap();
    assert_eq!(failure(&authority.client(), literal).await, tls(TlsFault::WrongName));
}

#[tokio::test]
async fn a_server_without_tls_fails_the_handshake() {
    let server = Server::start([vec![Step::Write(ok("", b"hello"))]]).await;
    let client = Authority::new().client();
    assert_eq!(failure(&client, url(server.address, "/")).await, tls(TlsFault::NotTls));
}

#[tokio::test]
async fn an_authority_file_that_can_not_be_read_is_said_so() {
    let settings = HttpSettings {
        extra_ca_file: Some("/does/not/exist.pem".into()),
        ..super::client::settings()
    };
    let error = Client::new(settings).err().unwrap().to_string();
    assert!(error.contains("/does/not/exist.pem"), "{error}");
}
