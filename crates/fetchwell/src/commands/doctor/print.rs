//! Prints findings, as text or JSON.

use fetchwell_stores::finding::{Finding, Verdict};
use serde_json::json;

/// All findings, followed by a count.
pub(super) fn text(findings: &[Finding], as_json: bool) -> String {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let ok = count(Verdict::Ok);
    let warnings = count(Verdict::Warn);
    let failures = count(Verdict::Fail);
    if as_json {
        let all =
            json!({ "findings": findings, "ok": ok, "warnings": warnings, "failures": failures });
        return format!("{all:#}\n");
    }
    let widest = findings.iter().map(|finding| finding.check.chars().count()).max().unwrap_or(0);
    let indent = " ".repeat(widest + 8);
    let mut text = String::new();
    for Finding { check, verdict, what, why, mend } in findings {
        let word = match verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        text.push_str(&format!("{word}  {check:<widest$}  {what}\n"));
        for (label, more) in [("why", why), ("fix", mend)] {
            if !more.is_empty() {
                text.push_str(&format!("{indent}{label}: {more}\n"));
            }
        }
    }
    text + &format!("ok: {ok}, warnings: {warnings}, failed: {failures}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_programs_are_told_the_same() {
        let findings =
            [Finding::ok("clock", "runs"), Finding::warn("open files", "64", "few", "raise it")];
        let expected = "ok    clock       runs\nwarn  open files  64\n                  why: few\n                  \
                        fix: raise it\nok: 1, warnings: 1, failed: 0\n";
        assert_eq!(text(&findings, false), expected);
        let read: serde_json::Value = serde_json::from_str(&text(&findings, true)).unwrap();
        assert_eq!(read["findings"][1]["mend"], "raise it");
        assert_eq!((&read["warnings"], &read["failures"]), (&1.into(), &0.into()));
    }
}
