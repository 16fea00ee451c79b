//! Parsing of query parameters.

use std::str::FromStr;

use crate::problem::{FieldError, Problem};

/// The error for an invalid cursor.
pub(super) const CURSOR: &str = "must be a cursor: `next` of an earlier response";

/// The name of a parameter, and what its value must be.
pub(super) type BadParameter = (&'static str, &'static str);

/// Passes each parameter of a query to `set`. The problem names every invalid parameter.
pub(super) fn read(
    query: &str,
    mut set: impl FnMut(&str, &str) -> Result<(), BadParameter>,
) -> Result<(), Problem> {
    let mut errors = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if let Err((parameter, detail)) = set(&name, &value) {
            errors.push(FieldError::in_query(parameter, detail));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Problem::invalid(errors)) }
}

/// Parses a whole number: digits only, without a sign.
pub(super) fn whole<N: FromStr>(text: &str) -> Option<N> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Parses the cursor of an earlier response.
pub(super) fn cursor(text: &str) -> Option<i64> {
    whole(text)
}

/// Parses a limit from 1 to `most`.
pub(super) fn limit<N: FromStr + PartialOrd + From<u8>>(text: &str, most: N) -> Option<N> {
    whole::<N>(text).filter(|limit| (N::from(1_u8)..=most).contains(limit))
}
