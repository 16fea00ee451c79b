//! Parsing of query parameters.

use std::str::FromStr;
use std::time::Duration;

use super::prefer::MAX_WAIT_SECONDS;
use crate::problem::{FieldError, Problem};

/// The error for an invalid cursor.
pub(super) const CURSOR: &str = "must be a cursor: `next` of an earlier response";

/// The maximum length of the name of an unknown parameter in a problem, and the maximum number of errors.
const MAX_NAME_CHARS: usize = 100;
const MAX_ERRORS: usize = 20;

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
            errors.push(FieldError::in_parameter(parameter, detail));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Problem::invalid(errors)) }
}

/// The same for a query that may have only known parameters. One that was misspelt would otherwise select too much.
pub(super) fn read_known(
    query: &str,
    known: &[&str],
    mut set: impl FnMut(&str, &str) -> Result<(), BadParameter>,
) -> Result<(), Problem> {
    let mut errors = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if !known.contains(&&*name) {
            let name: String = name.chars().take(MAX_NAME_CHARS).collect();
            let detail = match known {
                [] => "is not a known parameter; there are none here".to_owned(),
                _ => format!("is not a known parameter; known parameters: {}", known.join(", ")),
            };
            errors.push(FieldError::in_parameter(name, detail));
        } else if let Err((parameter, detail)) = set(&name, &value) {
            errors.push(FieldError::in_parameter(parameter, detail));
        }
        if errors.len() >= MAX_ERRORS {
            break;
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Problem::invalid(errors)) }
}

/// Refuses all parameters, for paths that have none.
pub(super) fn refuse_any(query: Option<&str>) -> Result<(), Problem> {
    read_known(query.unwrap_or_default(), &[], |_, _| Ok(()))
}

/// Parses a whole number: digits only, without a sign.
pub(super) fn whole<N: FromStr>(text: &str) -> Option<N> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// The error for an invalid `wait`.
pub(super) const WAIT: &str = "must be 0 to 60 seconds";

/// Parses a number of seconds to wait for a result.
pub(super) fn seconds_to_wait(text: &str) -> Option<Duration> {
    whole::<u64>(text).filter(|seconds| *seconds <= MAX_WAIT_SECONDS).map(Duration::from_secs)
}

/// Parses the cursor of an earlier response.
pub(super) fn cursor(text: &str) -> Option<i64> {
    whole(text)
}

/// Parses a limit from 1 to `most`.
pub(super) fn limit<N: FromStr + PartialOrd + From<u8>>(text: &str, most: N) -> Option<N> {
    whole::<N>(text).filter(|limit| (N::from(1_u8)..=most).contains(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_known_is_refused_and_not_repeated_at_length() {
        let errors = |query: &str, known: &[&str]| {
            let problem = read_known(query, known, |_, _| Ok(())).err()?;
            Some(
                problem
                    .errors()
                    .iter()
                    .map(|one| one.parameter.clone().unwrap())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(errors("after=1&limit=2", &["after", "limit"]), None);
        assert_eq!(errors("", &[]), None);
        assert_eq!(errors("after=1&x&y=2", &["after"]).unwrap(), ["x", "y"]);
        assert_eq!(errors("%C3%A4=1", &[]).unwrap(), ["\u{e4}"]);
        let long = errors(&"\u{e4}".repeat(1_000), &[]).unwrap();
        assert_eq!(long[0].chars().count(), MAX_NAME_CHARS);
        assert_eq!(errors(&"x&".repeat(1_000), &[]).unwrap().len(), MAX_ERRORS);
    }
}
