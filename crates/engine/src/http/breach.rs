//! Classifies hyper's errors: a broken connection, or a response that violates HTTP.

use std::error::Error;
use std::io;

/// Whether the server violated HTTP, as opposed to a broken connection.
pub(super) fn is_breach_of_http(error: &hyper::Error) -> bool {
    error.is_parse() || causes(error).any(|cause| is_bad_chunk(cause) || is_bad_frame(cause))
}

/// Whether the connection ended before the server processed the request.
pub(super) fn died_unanswered(error: &hyper::Error) -> bool {
    error.is_canceled()
        || error.is_closed()
        || error.is_incomplete_message()
        || causes(error).any(|cause| cause.is::<io::Error>() || was_turned_away(cause))
}

/// The errors that caused this one.
pub(super) fn causes(error: &hyper::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source())
}

/// hyper reports bad chunks only through the kind of an I/O error, which TLS also uses for bad records.
fn is_bad_chunk(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<io::Error>().is_some_and(|error| {
        let is_tls = matches!(error.get_ref(), Some(inner) if inner.is::<rustls::Error>());
        !is_tls && matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    })
}

/// The server closes the HTTP/2 connection, or refuses the stream.
fn was_turned_away(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<h2::Error>().is_some_and(|error| {
        let is_refusal = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (error.is_go_away() || is_refusal)
    })
}

/// Our own side ended the HTTP/2 stream or connection, because of an invalid frame.
fn is_bad_frame(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<h2::Error>().is_some_and(h2::Error::is_library)
}
