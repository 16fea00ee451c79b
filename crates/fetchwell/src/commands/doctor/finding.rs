//! What a check found.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and something should be better.
    Warn,
    /// Something that is needed is not there.
    Fail,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at, in a word or two.
    pub(super) check: String,
    pub(super) verdict: Verdict,
    /// What was found.
    pub(super) what: String,
    /// Why it matters; empty where all is well.
    pub(super) why: String,
    /// What to do about it; empty where all is well.
    pub(super) mend: String,
}

impl Finding {
    /// As it should be.
    pub(super) fn ok(check: impl Into<String>, what: impl Into<String>) -> Finding {
        let why = String::new();
        let mend = String::new();
        Finding { check: check.into(), verdict: Verdict::Ok, what: what.into(), why, mend }
    }

    /// Something should be better.
    pub(super) fn warn(
        check: impl Into<String>,
        what: impl Into<String>,
        why: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding {
            check: check.into(),
            verdict: Verdict::Warn,
            what: what.into(),
            why: why.into(),
            mend: mend.into(),
        }
    }

    /// Something is not there.
    pub(super) fn fail(
        check: impl Into<String>,
        what: impl Into<String>,
        why: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { verdict: Verdict::Fail, ..Finding::warn(check, what, why, mend) }
    }
}
