//! The HTTP response that a record holds.

use crate::headers::{HeadFault, Headers, MAX_HEAD_BYTES, read_head};

/// A captured response. The body is as it was captured: its encodings are not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPayload<'a> {
    /// The status with which the site answered.
    pub status: u16,
    /// The response's headers.
    pub headers: Headers,
    /// What follows the blank line.
    pub body: &'a [u8],
}

/// Why a payload is no HTTP response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFault {
    /// The first line is not `HTTP/x.y STATUS …`.
    #[error("the payload does not begin with an HTTP status line")]
    StatusLine,
    /// The headers have no blank line behind them.
    #[error("the response's headers are cut off")]
    HeadCutOff,
    /// The headers are too long.
    #[error("the response's headers are longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLong,
}

/// Splits a response into its head and its body.
pub(crate) fn parse_response(payload: &[u8]) -> Result<HttpPayload<'_>, HttpFault> {
    if !payload.starts_with(b"HTTP/") {
        return Err(HttpFault::StatusLine);
    }
    let head = read_head(payload).map_err(|fault| match fault {
        HeadFault::Unended => HttpFault::HeadCutOff,
        HeadFault::TooLong => HttpFault::HeadTooLong,
    })?;
    let status = status(&head.first_line).ok_or(HttpFault::StatusLine)?;
    let body = payload.get(head.end..).unwrap_or_default();
    Ok(HttpPayload { status, headers: head.headers, body })
}

fn status(first_line: &str) -> Option<u16> {
    let code = first_line.split_ascii_whitespace().nth(1)?;
    code.parse().ok().filter(|status| (100..=999).contains(status))
}
