//! Errors when creating a client.

use std::path::PathBuf;

use http::header::InvalidHeaderValue;
use rustls::pki_types::pem;
use thiserror::Error;

/// Why a client could not be created. The operator can fix all but the last.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The user agent is not a valid header value.
    #[error("the user agent has characters that are not allowed in a header; change user_agent")]
    UserAgent(#[source] InvalidHeaderValue),
    /// The certificate file cannot be read.
    #[error("http.extra_ca_file {}: {source}", .path.display())]
    CaFile { path: PathBuf, source: pem::Error },
    /// The file contains a certificate that cannot be used as a root.
    #[error("http.extra_ca_file {}: {source}", .path.display())]
    CaCertificate { path: PathBuf, source: rustls::Error },
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(rustls::Error),
}
