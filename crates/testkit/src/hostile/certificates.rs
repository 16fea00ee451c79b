//! Certificates, good and bad, and the CA of the good one.

use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio_rustls::TlsAcceptor;

/// The names in the good certificate.
pub(super) const GOOD_NAMES: &str = "*.tls.test";

/// The certificate of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Signed by the CA, for the right names.
    Good,
    /// Self-signed.
    SelfSigned,
    /// Signed by the CA, but expired.
    Expired,
    /// Signed by the CA, for other names.
    OtherNames,
}

/// A CA, in a file as operators configure it.
pub(super) struct Authority {
    file: NamedTempFile,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> anyhow::Result<Authority> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), params.self_signed(&key)?.pem())?;
        Ok(Authority { file, issuer: Issuer::new(params, key) })
    }

    pub(super) fn file(&self) -> &Path {
        self.file.path()
    }

    /// Accepts TLS for this application protocol.
    pub(super) fn acceptor(
        &self,
        identity: Identity,
        protocol: &[u8],
    ) -> anyhow::Result<TlsAcceptor> {
        let names = match identity {
            Identity::OtherNames => "elsewhere.test",
            _ => GOOD_NAMES,
        };
        let mut params = CertificateParams::new(vec![names.to_owned()])?;
        if identity == Identity::Expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate()?;
        let certificate = match identity {
            Identity::SelfSigned => params.self_signed(&key)?,
            _ => params.signed_by(&key, &self.issuer)?,
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
