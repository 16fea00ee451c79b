//! Maps RabbitMQ and lapin errors to store errors, with advice.

use std::io;

use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use lapin::ErrorKind;

use StoreErrorKind::{Bug, Incompatible, TooLarge, Transient};

/// AMQP reply codes.
const CONTENT_TOO_LARGE: u16 = 311;
const INVALID_PATH: u16 = 402;
const ACCESS_REFUSED: u16 = 403;
pub(super) const NOT_FOUND: u16 = 404;
pub(super) const PRECONDITION_FAILED: u16 = 406;
const FRAME_ERROR: u16 = 501;
const SYNTAX_ERROR: u16 = 502;
const COMMAND_INVALID: u16 = 503;
const UNEXPECTED_FRAME: u16 = 505;
const NOT_ALLOWED: u16 = 530;
const NOT_IMPLEMENTED: u16 = 540;

/// Converts a lapin error; `broker` names the broker. All such errors are converted here.
pub(super) fn store_error(broker: String, error: lapin::Error) -> StoreError {
    let advice = match error.kind() {
        ErrorKind::IOError(error) if is_about_certificate(error) => {
            "the broker needs a certificate for this host name from a public certificate \
             authority; http.extra_ca_file applies to web pages only"
        }
        ErrorKind::IOError(_) | ErrorKind::MissingHeartbeatError => {
            "check that the broker runs and can be reached"
        }
        ErrorKind::ProtocolError(said)
            if [ACCESS_REFUSED, NOT_ALLOWED].contains(&said.get_id()) =>
        {
            "check user, password and vhost, and the user's permissions"
        }
        _ => "",
    };
    StoreError::new(kind_of(error.kind()), broker).with_source(error).with_advice(advice)
}

/// The AMQP reply code, if the broker sent one.
pub(super) fn code_of(error: &lapin::Error) -> Option<u16> {
    match error.kind() {
        ErrorKind::ProtocolError(said) => Some(said.get_id()),
        _ => None,
    }
}

fn kind_of(kind: &ErrorKind) -> StoreErrorKind {
    match kind {
        ErrorKind::ProtocolError(said) => kind_of_reply(said.get_id(), said.get_message().as_str()),
        ErrorKind::IOError(error) if is_about_certificate(error) => Incompatible,
        ErrorKind::InvalidProtocolVersion(_) | ErrorKind::AuthProviderError(_) => Incompatible,
        ErrorKind::SerialisationError(_)
        | ErrorKind::FutureCompleted
        | ErrorKind::NoDefaultRuntime => Bug,
        // The connection or channel is gone, but the next one may work.
        _ => Transient,
    }
}

/// Whether TLS failed because the broker's certificate is not accepted.
fn is_about_certificate(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

/// The kind of a reply. Brokers use some codes for several errors, which only their texts tell apart.
///
/// A queue that is not found is created again with the next connection. Wrong credentials and missing permissions are
/// incompatible, because a retry does not help.
fn kind_of_reply(code: u16, text: &str) -> StoreErrorKind {
    match code {
        PRECONDITION_FAILED if text.contains("inequivalent arg") => Incompatible,
        PRECONDITION_FAILED if text.contains("larger than") => TooLarge,
        NOT_ALLOWED if text.contains("limit") || text.contains("is down") => Transient,
        CONTENT_TOO_LARGE => TooLarge,
        INVALID_PATH | ACCESS_REFUSED | NOT_ALLOWED | NOT_IMPLEMENTED => Incompatible,
        FRAME_ERROR | SYNTAX_ERROR | COMMAND_INVALID | UNEXPECTED_FRAME => Bug,
        _ => Transient,
    }
}

#[cfg(test)]
mod tests {
    use lapin::protocol::AMQPError;

    use super::*;

    const CONNECTION_FORCED: u16 = 320;
    const RESOURCE_LOCKED: u16 = 405;
    const CHANNEL_ERROR: u16 = 504;
    const RESOURCE_ERROR: u16 = 506;
    const INTERNAL_ERROR: u16 = 541;

    fn error(code: u16, text: &str) -> StoreError {
        let said = AMQPError::from_id(code, text.into()).unwrap();
        store_error("RabbitMQ at r:5672".to_owned(), ErrorKind::ProtocolError(said).into())
    }

    #[test]
    fn each_reply_has_its_kind() {
        for (code, text, kind) in [
            (CONTENT_TOO_LARGE, "", TooLarge),
            (CONNECTION_FORCED, "CONNECTION_FORCED - broker forced connection closure", Transient),
            (INVALID_PATH, "", Incompatible),
            (ACCESS_REFUSED, "ACCESS_REFUSED - Login was refused", Incompatible),
            (NOT_FOUND, "NOT_FOUND - no queue 'batches' in vhost '/'", Transient),
            (RESOURCE_LOCKED, "", Transient),
            (PRECONDITION_FAILED, "PRECONDITION_FAILED - unknown delivery tag 3", Transient),
            (PRECONDITION_FAILED, "delivery acknowledgement on channel 1 timed out", Transient),
            (PRECONDITION_FAILED, "inequivalent arg 'durable' for queue", Incompatible),
            (PRECONDITION_FAILED, "message size 9 is larger than configured max size 8", TooLarge),
            (SYNTAX_ERROR, "", Bug),
            (COMMAND_INVALID, "", Bug),
            (CHANNEL_ERROR, "", Transient),
            (RESOURCE_ERROR, "", Transient),
            (NOT_ALLOWED, "NOT_ALLOWED - vhost crawls not found", Incompatible),
            (NOT_ALLOWED, "connection limit (10) is reached", Transient),
            (NOT_IMPLEMENTED, "", Incompatible),
            (INTERNAL_ERROR, "", Transient),
        ] {
            assert_eq!(error(code, text).kind(), kind, "{code} {text}");
        }
    }

    #[test]
    fn what_the_driver_says_has_its_kind() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let tls = rustls::Error::PeerIncompatible(rustls::PeerIncompatible::NoCipherSuitesInCommon);
        for (error, kind) in [
            (lapin::Error::from(refused), Transient),
            (io::Error::new(io::ErrorKind::InvalidData, expired).into(), Incompatible),
            (io::Error::new(io::ErrorKind::InvalidData, tls).into(), Transient),
            (ErrorKind::MissingHeartbeatError.into(), Transient),
            (ErrorKind::ChannelsLimitReached.into(), Transient),
            (ErrorKind::AuthProviderError("no token".to_owned()).into(), Incompatible),
            (ErrorKind::FutureCompleted.into(), Bug),
        ] {
            let text = error.to_string();
            assert_eq!(store_error("RabbitMQ".to_owned(), error).kind(), kind, "{text}");
        }
    }
}
