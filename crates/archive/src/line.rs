//! Common parts of the lines of both indexes.

use crate::shared_error::SharedError;

/// The maximum length of a line; URLs, which make up most of it, are far shorter.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;

/// Why a line of an index is not a valid entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// The line is too long.
    #[error("the line has {bytes} bytes, more than {MAX_LINE_BYTES}")]
    TooLong {
        /// The length of the line.
        bytes: usize,
    },
    /// The line ends before this field, or the field is empty.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// Something follows the last field.
    #[error("the line has too many fields")]
    TooManyFields,
    /// The timestamp is not `YYYYMMDDhhmmss`.
    #[error("the timestamp is not 14 digits")]
    Timestamp,
    /// The field is not a number, or is out of range.
    #[error("the field `{0}` is not a number, or is out of range")]
    Number(&'static str),
    /// The file name could lead outside of its folder, so it is rejected.
    #[error("the file name is not a plain name")]
    FileName,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    Encoding,
    /// What follows the timestamp is not a JSON object.
    #[error("the metadata is not a JSON object: {0}")]
    Json(#[source] SharedError<serde_json::Error>),
}

/// The line without its line break, if it is not too long.
pub(crate) fn bounded(line: &str) -> Result<&str, LineFault> {
    let end = line.bytes().rev().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
    let line = &line[..line.len() - end];
    if line.len() > MAX_LINE_BYTES {
        return Err(LineFault::TooLong { bytes: line.len() });
    }
    Ok(line)
}

pub(crate) fn timestamp(field: &str) -> Result<&str, LineFault> {
    let is_timestamp = field.len() == 14 && field.bytes().all(|byte| byte.is_ascii_digit());
    if is_timestamp { Ok(field) } else { Err(LineFault::Timestamp) }
}

/// Digits only: no sign, no space.
pub(crate) fn number(digits: impl AsRef<[u8]>) -> Option<u64> {
    let digits = digits.as_ref();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Whether this is a range of a file that can be requested.
pub(crate) fn is_range(offset: u64, length: u64, max_length: u64) -> bool {
    (1..=max_length).contains(&length) && offset <= i64::MAX.unsigned_abs() - length
}

/// Whether a path segment is a plain name: it cannot lead out of its folder or become another part of a URL.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'=' | b'+');
    (1..=255).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_plain)
}
