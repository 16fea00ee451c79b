//! What the lines of both indexes share.

use crate::shared_error::SharedError;

/// The longest line that is read; URLs, of which lines are made, are far shorter.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;

/// Why a line of an index is no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// The line is longer than any index has them.
    #[error("the line has {bytes} bytes, more than {MAX_LINE_BYTES}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The line ends before this field, or the field is empty.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// Something follows the last field.
    #[error("the line has more fields than it should")]
    TooManyFields,
    /// The timestamp is not `YYYYMMDDhhmmss`.
    #[error("the timestamp is not 14 digits")]
    Timestamp,
    /// The field is not a number, or is one out of bounds.
    #[error("the field `{0}` is not a number within bounds")]
    Number(&'static str),
    /// The file name could lead elsewhere, so it is not used.
    #[error("the file name is not a plain one")]
    FileName,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    Encoding,
    /// What follows the timestamp is not a JSON object.
    #[error("the metadata is not a JSON object: {0}")]
    Json(#[source] SharedError<serde_json::Error>),
}

/// A line without its end, if it is not too long.
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

/// Whether a range of a file is one that can be asked for.
pub(crate) fn is_range(offset: u64, length: u64, max_length: u64) -> bool {
    (1..=max_length).contains(&length) && offset <= i64::MAX.unsigned_abs() - length
}

/// Whether one part of a path is a plain name: it cannot lead out of its folder, nor become
/// another part of a URL.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'=' | b'+');
    (1..=255).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_plain)
}
