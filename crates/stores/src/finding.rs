//! The result of a check of `doctor`.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything is fine.
    Ok,
    /// It works, but should be improved.
    Warn,
    /// Something that is needed is missing.
    Fail,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub check: String,
    /// How bad it is.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// Why it matters; empty if everything is fine.
    pub why: String,
    /// How to fix it; empty if everything is fine.
    pub mend: String,
}

impl Finding {
    /// Everything is fine.
    pub fn ok(check: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Ok, ..Finding::warn(check, what, "", "") }
    }

    /// It works, but should be improved.
    pub fn warn(
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

    /// Something that is needed is missing.
    pub fn fail(
        check: impl Into<String>,
        what: impl Into<String>,
        why: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { verdict: Verdict::Fail, ..Finding::warn(check, what, why, mend) }
    }
}

/// What a store is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreUse {
    /// URLs, results or the pace of sites: none of it may be lost.
    Store,
    /// Pages, which can be fetched again.
    Cache,
}
