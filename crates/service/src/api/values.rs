//! Checks the values of single fields.

use fetchwell_engine::ports::inbox::options::ALLOWED_HEADERS;
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::url::{Site, WebUrl};
use http::HeaderValue;

use super::json::Json;

const MAX_CORRELATION_ID_CHARS: usize = 256;
const MAX_RETAILER_BYTES: usize = 32;
const MAX_HEADER_BYTES: usize = 1_024;

/// Why a value is invalid, and what to use instead.
pub(super) type FieldProblem = String;

/// Returns the exact text and its site. Addresses in the URL are checked here, those of host names after the DNS
/// lookup.
pub(super) fn web_url(
    value: &Json<'_>,
    guard: &AddressGuard,
) -> Result<(String, Site), FieldProblem> {
    let text = text(value)?;
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err("has control characters; remove them".to_owned());
    }
    let url = WebUrl::parse(text).map_err(|fault| fault.to_string())?;
    if let Some(address) = url.host_ip() {
        guard.check(address).map_err(|refusal| {
            format!("is refused: {} is {} ({})", refusal.address, refusal.kind, refusal.range)
        })?;
    }
    Ok((text.to_owned(), url.site()))
}

pub(super) fn retailer(value: &Json<'_>) -> Result<String, FieldProblem> {
    let text = text(value)?;
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if text.is_empty() || text.len() > MAX_RETAILER_BYTES || !text.bytes().all(allowed) {
        return Err(format!(
            "is not a valid retailer; use 1 to {MAX_RETAILER_BYTES} characters from a-z, 0-9, _ \
             and -"
        ));
    }
    Ok(text.to_owned())
}

/// Whether a text can be a caller's own id of a message.
pub(super) fn is_correlation_id(text: &str) -> bool {
    let chars = text.chars().count();
    (1..=MAX_CORRELATION_ID_CHARS).contains(&chars) && !text.contains(char::is_control)
}

/// The caller's own id of a message.
pub(super) fn correlation_id(value: &Json<'_>) -> Result<String, FieldProblem> {
    let text = text(value)?;
    if !is_correlation_id(text) {
        return Err(format!(
            "must have 1 to {MAX_CORRELATION_ID_CHARS} characters, and no control characters"
        ));
    }
    Ok(text.to_owned())
}

pub(super) fn switch(value: &Json<'_>) -> Result<bool, FieldProblem> {
    match value {
        Json::Bool(is_on) => Ok(*is_on),
        _ => Err("must be true or false".to_owned()),
    }
}

/// The value of a header that is sent with the fetch.
pub(super) fn header(name: &str, value: &Json<'_>, is_twice: bool) -> Result<String, FieldProblem> {
    if !ALLOWED_HEADERS.contains(&name) {
        return Err(format!("is not allowed; allowed headers: {}", ALLOWED_HEADERS.join(", ")));
    }
    if is_twice {
        return Err("is given twice; header names are case-insensitive".to_owned());
    }
    let text = text(value)?;
    let printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if !printable || text.len() > MAX_HEADER_BYTES || HeaderValue::from_str(text).is_err() {
        return Err(format!(
            "is not valid in a header; use printable ASCII, at most {MAX_HEADER_BYTES} bytes"
        ));
    }
    Ok(text.to_owned())
}

pub(super) fn text<'a>(value: &'a Json<'_>) -> Result<&'a str, FieldProblem> {
    value.as_str().ok_or_else(|| "is not a string; put it in quotes".to_owned())
}
