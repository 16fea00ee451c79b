//! Compares what a door accepted with its results. It works the same for every door.

use std::collections::{BTreeMap, HashMap};

use fetchwell_engine::ports::queue::Ledger;
use serde::Serialize;

/// The accepted jobs of a door and their results.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    /// The number of accepted jobs, as the door reported it.
    pub(super) accepted: usize,
    /// The number of results.
    pub(super) results: usize,
    /// Results of jobs that already have one, or that were never accepted.
    pub(super) doubled: usize,
    /// Jobs without a result.
    pub(super) missing: usize,
    pub(super) by_outcome: BTreeMap<String, usize>,
    /// The ledger of the store.
    pub(super) ledger: Ledger,
    /// How the counters and rows of the store differ, if they do.
    pub(super) ledger_fault: Option<String>,
}

#[derive(Debug)]
pub(super) struct Outcome {
    /// Identifies the job.
    pub(super) key: String,
    pub(super) url: String,
    pub(super) word: String,
}

impl Outcome {
    /// The site of its URL.
    pub(super) fn site(&self) -> &str {
        self.url.split('/').nth(2).unwrap_or_default()
    }
}

impl Account {
    /// Compares the accepted jobs, by key, with the results.
    pub(super) fn of(
        accepted: &[String],
        outcomes: &[Outcome],
        (ledger, ledger_fault): (Ledger, Option<String>),
    ) -> Account {
        let mut left: HashMap<&str, usize> = accepted.iter().map(|key| (key.as_str(), 1)).collect();
        let mut doubled = 0;
        for outcome in outcomes {
            match left.get_mut(outcome.key.as_str()) {
                Some(left) if *left > 0 => *left -= 1,
                _ => doubled += 1,
            }
        }
        Account {
            accepted: accepted.len(),
            results: outcomes.len(),
            doubled,
            missing: left.values().sum(),
            by_outcome: count(outcomes.iter().map(|outcome| outcome.word.clone())),
            ledger,
            ledger_fault,
        }
    }

    /// Everything that went wrong; empty if nothing did. `what` is the noun for the jobs.
    pub(super) fn faults(&self, what: &str, stopped_early: bool) -> Vec<String> {
        let Account { accepted, doubled, missing, ledger, .. } = self;
        let open = ledger.unfinished();
        let differs = |count: usize, told: i64| i64::try_from(count) != Ok(told);
        let mut faults = Vec::new();
        if let Some(fault) = &self.ledger_fault {
            faults.push(format!("the ledger of {what}: {fault}"));
        }
        if differs(*accepted, ledger.accepted) {
            let told = ledger.accepted;
            faults.push(format!("{accepted} {what} were accepted, but the ledger says {told}"));
        }
        if *doubled > 0 {
            faults.push(format!("{what} have {doubled} extra results"));
        }
        if differs(*missing, open) {
            faults.push(format!("{missing} {what} have no result, and {open} are left"));
        }
        if !stopped_early && open > 0 {
            faults.push(format!("{open} {what} are unfinished at the end"));
        }
        faults
    }
}

/// Counts equal words.
pub(super) fn count(words: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three that went in: what is wrong where these came out and the ledger has so many done.
    fn faults(keys: &[&str], done: i64) -> Vec<String> {
        let outcome = |key: &&str| Outcome {
            key: (*key).to_owned(),
            url: String::new(),
            word: "success".to_owned(),
        };
        let outcomes: Vec<Outcome> = keys.iter().map(outcome).collect();
        let ledger = Ledger { accepted: 3, done, queued: 3 - done, ..Ledger::default() };
        let accepted = ["a", "b", "c"].map(str::to_owned);
        Account::of(&accepted, &outcomes, (ledger, None)).faults("messages", true)
    }

    #[test]
    fn everything_has_one_result_or_it_is_told() {
        let none: [&str; 0] = [];
        assert_eq!(faults(&["a", "b", "c"], 3), none);
        assert_eq!(faults(&["a"], 1), none, "two are left, and say so");
        assert_eq!(faults(&["a", "b"], 3), ["1 messages have no result, and 0 are left"]);
        assert_eq!(faults(&["a", "b", "c", "c"], 3), ["messages have 1 extra results"]);
        assert_eq!(faults(&["a", "b", "x"], 2), ["messages have 1 extra results"]);
        assert_eq!(faults(&["a", "b", "c"], 2), ["0 messages have no result, and 1 are left"]);
    }

    #[test]
    fn what_is_left_without_a_stop_is_a_fault_and_so_is_a_ledger_that_says_otherwise() {
        let accepted = ["a".to_owned()];
        let ledger = |accepted| Ledger { accepted, queued: accepted, ..Ledger::default() };
        let waits = Account::of(&accepted, &[], (ledger(1), None));
        assert_eq!(waits.faults("URLs", false), ["1 URLs are unfinished at the end"]);
        let fault = Some("1 is nowhere".to_owned());
        let lost = Account::of(&accepted, &[], (ledger(2), fault));
        assert_eq!(lost.faults("URLs", true).len(), 3, "{lost:?}");
    }
}
