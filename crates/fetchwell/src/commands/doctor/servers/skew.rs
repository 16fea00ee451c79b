//! Compares the clock of a server with ours.

use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_stores::finding::Finding;

/// A smaller difference does not matter.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// Compares the clock of a server with ours, which was read before and after.
pub(super) fn skew(check: &str, server: Time, before: Time, after: Time) -> Finding {
    let ahead = server.since(after);
    let behind = before.since(server);
    let (skew, word) = if ahead > behind { (ahead, "ahead") } else { (behind, "behind") };
    let check = format!("{check}: clock");
    if skew <= MAX_SKEW {
        return Finding::ok(check, "agrees with this machine's");
    }
    Finding::warn(
        check,
        format!("is {:.1} s {word} of this machine's", skew.as_secs_f64()),
        "the pace of sites uses the server's clock, but timestamps, deadlines and Retry-After \
         dates use this machine's",
        "synchronize both clocks with NTP",
    )
}

#[cfg(test)]
mod tests {
    use fetchwell_stores::finding::Verdict;

    use super::*;

    #[test]
    fn a_clock_is_judged_by_what_it_may_have_shown_while_we_asked() {
        let at = Time::from_secs;
        for (server_s, expected) in [
            (100, Verdict::Ok),
            (105, Verdict::Ok),
            (112, Verdict::Ok),
            (113, Verdict::Warn),
            (98, Verdict::Ok),
            (97, Verdict::Warn),
        ] {
            let finding = skew("store", at(server_s), at(100), at(110));
            assert_eq!(finding.verdict, expected, "{server_s}: {finding:?}");
        }
    }
}
