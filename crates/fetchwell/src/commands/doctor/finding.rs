//! The result of a check.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// Everything is fine.
    Ok,
    /// It works, but should be improved.
    Warn,
    /// Something that is needed is missing.
    Fail,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was checked, in a word or two.
    pub(super) check: String,
    pub(super) verdict: Verdict,
    /// What was found.
    pub(super) what: String,
    /// Why it matters; empty if everything is fine.
    pub(super) why: String,
    /// How to fix it; empty if everything is fine.
    pub(super) mend: String,
}

impl Finding {
    pub(super) fn ok(check: impl Into<String>, what: impl Into<String>) -> Finding {
        let why = String::new();
        let mend = String::new();
        Finding { check: check.into(), verdict: Verdict::Ok, what: what.into(), why, mend }
    }

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

    pub(super) fn fail(
        check: impl Into<String>,
        what: impl Into<String>,
        why: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { verdict: Verdict::Fail, ..Finding::warn(check, what, why, mend) }
    }
}
