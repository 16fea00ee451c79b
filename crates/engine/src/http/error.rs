//! Why a client could not be made.

use std::path::PathBuf;

use http::header::InvalidHeaderValue;
use rustls::pki_types::pem;
use thiserror::Error;

/// Why a client could not be made. All but the last are for the operator to fix.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The user agent does not fit into a header.
    #[error("the user agent has characters that are not allowed in a header; change user_agent")]
    UserAgent(#[source] InvalidHeaderValue),
    /// The file of certificates cannot be read.
    #[error("http.extra_ca_file {}: {source}", .path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The file has a certificate that cannot be trusted.
    #[error("http.extra_ca_file {}: {source}", .path.display())]
    CaCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with the certificate.
        source: rustls::Error,
    },
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(rustls::Error),
}
