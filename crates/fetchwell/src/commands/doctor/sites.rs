//! Checks for sites whose host names do not exist: only a person can fix these.

use fetchwell_service::sites::missing_hosts;
use fetchwell_settings::Settings;
use fetchwell_stores::finding::Finding;

use super::Doors;
use crate::wiring::{open_politeness_to_read, politeness_store};

/// The number of sites named in one finding.
const MOST_NAMED: usize = 20;

/// Checks the politeness stores. A store that cannot be read is reported by `servers`.
pub(super) async fn examine(doors: &Doors) -> Vec<Finding> {
    let mut findings = vec![names("host names", &doors.settings).await];
    if politeness_store(&doors.pages) != politeness_store(&doors.settings) {
        findings.push(names("host names of \"pages\"", &doors.pages).await);
    }
    findings.into_iter().flatten().collect()
}

async fn names(check: &str, settings: &Settings) -> Option<Finding> {
    let sites = open_politeness_to_read(settings).await.ok()??;
    let missing = missing_hosts(&*sites).await.ok()?;
    Some(judge(check, &missing))
}

fn judge(check: &str, missing: &[String]) -> Finding {
    if missing.is_empty() {
        return Finding::ok(
            check,
            "the host names of all sites that failed in the last hour exist",
        );
    }
    let named = missing.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match missing.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Finding::warn(
        check,
        format!("these do not exist: {named}{more}"),
        "their URLs wait and are retried",
        "check the spelling where the URLs come from; `fetchwell sites pause NAME` stops the \
         attempts",
    )
}

#[cfg(test)]
mod tests {
    use fetchwell_stores::finding::Verdict;

    use super::*;

    #[test]
    fn a_few_are_named_and_the_rest_is_counted() {
        let some = |count: usize| (0..count).map(|n| format!("s{n}.test")).collect::<Vec<_>>();
        assert_eq!(judge("x", &[]).verdict, Verdict::Ok);
        let two = judge("x", &some(2));
        assert_eq!(
            (two.verdict, two.what.as_str()),
            (Verdict::Warn, "these do not exist: s0.test, s1.test")
        );
        assert!(judge("x", &some(22)).what.ends_with("s19.test and 2 more"));
    }
}
