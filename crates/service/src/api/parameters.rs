//! Query parameters, and the numbers that they hold.

use std::str::FromStr;

use crate::problem::{FieldError, Problem};

/// What a cursor must be.
pub(super) const CURSOR: &str = "must be a cursor: `next` of an earlier response";

/// A parameter, and what it must be.
pub(super) type BadParameter = (&'static str, &'static str);

/// Hands each parameter of a query to `set`. The problem names every parameter that is wrong.
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

/// A whole number: digits and nothing else, so no sign.
pub(super) fn whole<N: FromStr>(text: &str) -> Option<N> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// A cursor, as it was given out.
pub(super) fn cursor(text: &str) -> Option<i64> {
    whole(text)
}

/// How many results are wanted: 1 to `most`.
pub(super) fn limit<N: FromStr + PartialOrd + From<u8>>(text: &str, most: N) -> Option<N> {
    whole::<N>(text).filter(|limit| (N::from(1_u8)..=most).contains(limit))
}
