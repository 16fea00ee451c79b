//! A front for a plain server that accepts both TLS and plain HTTP on one port.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// The first byte of a TLS handshake; no HTTP request begins with it.
const HANDSHAKE: u8 = 0x16;

/// The front of one server. Dropping it closes it.
pub struct TlsFront {
    address: SocketAddr,
    authority: NamedTempFile,
    listening: JoinHandle<()>,
}

impl TlsFront {
    /// Opens one for these host names in front of the server at `behind`.
    pub async fn open(names: &[&str], behind: SocketAddr) -> anyhow::Result<TlsFront> {
        let authority = NamedTempFile::new()?;
        let acceptor = acceptor(names, authority.path())?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, acceptor.clone(), behind));
            }
        });
        Ok(TlsFront { address, authority, listening })
    }

    /// The address that it listens on, for both http and https.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate of its CA, as a PEM file.
    pub fn authority_file(&self) -> &Path {
        self.authority.path()
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// If a connection breaks, the client notices, so nothing is returned.
async fn pass_on(client: TcpStream, acceptor: TlsAcceptor, behind: SocketAddr) {
    let mut first = [0];
    if client.peek(&mut first).await.is_err() {
        return;
    }
    if first != [HANDSHAKE] {
        join(client, behind).await;
    } else if let Ok(client) = acceptor.accept(client).await {
        join(client, behind).await;
    }
}

async fn join(mut client: impl AsyncRead + AsyncWrite + Unpin, behind: SocketAddr) {
    #[expect(clippy::disallowed_methods, reason = "it connects to a server of the test")]
    let Ok(mut server) = TcpStream::connect(behind).await else { return };
    copy_bidirectional(&mut client, &mut server).await.ok();
}

fn acceptor(names: &[&str], authority_file: &Path) -> anyhow::Result<TlsAcceptor> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    std::fs::write(authority_file, authority.self_signed(&authority_key)?.pem())?;
    let issuer = Issuer::new(authority, authority_key);

    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
