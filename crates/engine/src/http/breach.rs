//! What an error of hyper's says: that somebody hung up, or that an answer breaks the rules of HTTP.

use std::error::Error;
use std::io;

/// Whether an error is a breach of HTTP by the server, as opposed to a connection that broke.
pub(super) fn is_breach_of_http(error: &hyper::Error) -> bool {
    error.is_parse() || causes(error).any(|cause| is_bad_chunk(cause) || is_bad_frame(cause))
}

/// Whether the connection ended before the server did anything about the request.
pub(super) fn died_unanswered(error: &hyper::Error) -> bool {
    error.is_canceled()
        || error.is_closed()
        || error.is_incomplete_message()
        || causes(error).any(|cause| cause.is::<io::Error>() || was_turned_away(cause))
}

fn causes(error: &hyper::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source())
}

/// hyper says it with the kind of an I/O error, and so does TLS about its records.
fn is_bad_chunk(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<io::Error>().is_some_and(|error| {
        let is_tls = matches!(error.get_ref(), Some(inner) if inner.is::<rustls::Error>());
        !is_tls && matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    })
}

/// The server leaves the connection, or takes no more streams on it.
fn was_turned_away(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<h2::Error>().is_some_and(|error| {
        let is_refusal = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (error.is_go_away() || is_refusal)
    })
}

/// An HTTP/2 stream or connection that our own side ended, because of what came.
fn is_bad_frame(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<h2::Error>().is_some_and(h2::Error::is_library)
}
