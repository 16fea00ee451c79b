//! Classifies errors of a TLS handshake: why the server is not trusted, or that it does not speak TLS.

use std::io;

use fetchwell_policy::outcome::TlsFault;
use rustls::{CertificateError, Error, InvalidMessage};

/// Why a handshake failed.
pub(super) fn tls_fault(error: &io::Error) -> TlsFault {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidCertificate(fault)) => certificate_fault(fault),
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => TlsFault::NotTls,
        _ => TlsFault::Handshake,
    }
}

fn certificate_fault(fault: &CertificateError) -> TlsFault {
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsFault::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFault::WrongName
        }
        // A CA that only has the same name as a trusted one produces bad signatures.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::UnknownIssuer,
        // `openssl req -x509` creates self-signed certificates that claim to be a CA.
        CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            TlsFault::UnknownIssuer
        }
        _ => TlsFault::BadCertificate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_reason() {
        let of = |fault: CertificateError| {
            let error =
                io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(fault));
            tls_fault(&error)
        };
        assert_eq!(of(CertificateError::Expired), TlsFault::Expired);
        assert_eq!(of(CertificateError::NotValidYet), TlsFault::NotYetValid);
        assert_eq!(of(CertificateError::NotValidForName), TlsFault::WrongName);
        assert_eq!(of(CertificateError::UnknownIssuer), TlsFault::UnknownIssuer);
        assert_eq!(of(CertificateError::Revoked), TlsFault::BadCertificate);
        let broken_off = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(tls_fault(&broken_off), TlsFault::Handshake);
    }
}
