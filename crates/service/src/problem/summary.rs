//! A problem in a few words, for endpoints whose errors have the shape of another API.

use http::StatusCode;

use super::{FieldError, KIND_PREFIX, Problem};

/// What a problem says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProblemSummary {
    /// The last part of its type.
    pub(crate) kind: String,
    pub(crate) status: StatusCode,
    /// What went wrong and how to fix it, with the invalid parts of the request.
    pub(crate) text: String,
    /// The status of the result that the problem is about.
    pub(crate) result: Option<String>,
    pub(crate) retry_after_seconds: Option<u64>,
}

impl Problem {
    /// The problem in a few words.
    pub(crate) fn summary(&self) -> ProblemSummary {
        let body = &self.body;
        let kind = body.kind.strip_prefix(KIND_PREFIX).unwrap_or(&body.kind);
        let text = match body.errors.as_slice() {
            [] => body.detail.clone(),
            errors => errors.iter().map(told).collect::<Vec<_>>().join("; "),
        };
        ProblemSummary {
            kind: kind.to_owned(),
            status: self.status,
            text,
            result: body.result.clone(),
            retry_after_seconds: self.retry_after_seconds,
        }
    }
}

/// An error with the name of its part: `formats.0 is not …`.
fn told(error: &FieldError) -> String {
    let pointer = error.pointer.as_deref().map(|pointer| {
        pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
    });
    let part = pointer.or_else(|| error.parameter.clone());
    let part = part.or_else(|| error.header.map(str::to_owned)).filter(|part| !part.is_empty());
    format!("{} {}", part.as_deref().unwrap_or("the body"), error.detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::ProblemKind;

    #[test]
    fn a_summary_names_all_invalid_parts() {
        let problem = Problem::invalid(vec![
            FieldError::at("/formats/0", "is unknown"),
            FieldError::in_query("limit", "must be 1"),
            FieldError::at("", "is not an object"),
        ]);
        let text = "formats.0 is unknown; limit must be 1; the body is not an object";
        assert_eq!(problem.summary().text, text);
        assert_eq!(problem.summary().kind, "invalid-field");
        let slow = Problem::new(ProblemKind::TOO_MANY_REQUESTS).retry_after(3).summary();
        assert_eq!((slow.status.as_u16(), slow.retry_after_seconds), (429, Some(3)));
        assert_eq!(slow.text, ProblemKind::TOO_MANY_REQUESTS.mend);
    }
}
