//! The report at the end of the demo, based on its output and not on counters kept on the way.

use std::collections::{BTreeMap, HashSet};

use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_simweb::Hit;
use serde::Serialize;

use super::account::{Account, Outcome, count};
use super::origin::{Judgement, status_word};
use super::scenario::{Scenario, Trouble};

/// The report, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) sites: usize,
    pub(super) pages: usize,
    pub(super) elapsed_seconds: f64,
    pub(super) stopped_early: bool,
    /// URLs and their rows in the file.
    pub(super) fetch: Account,
    /// Messages and their results in the outbox.
    pub(super) messages: Account,
    /// For both together.
    pub(super) origin: Judgement,
    pub(super) troubles: Vec<Troubled>,
}

/// The results of the sites with one kind of trouble.
#[derive(Debug, Serialize)]
pub(super) struct Troubled {
    pub(super) trouble: Trouble,
    pub(super) about: &'static str,
    pub(super) sites: usize,
    pub(super) requests: usize,
    /// The number of responses by status.
    pub(super) answers: BTreeMap<String, usize>,
    /// The results of their URLs.
    pub(super) outcomes: BTreeMap<String, usize>,
    /// The results of messages for them.
    pub(super) messages: BTreeMap<String, usize>,
}

impl Report {
    /// Everything that went wrong; empty if nothing did.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = self.fetch.faults("URLs", self.stopped_early);
        faults.extend(self.messages.faults("messages", self.stopped_early));
        if self.origin.too_early > 0 {
            faults.push(format!("{} requests came too early", self.origin.too_early));
        }
        faults
    }

    /// The report as text.
    pub(super) fn text(&self) -> String {
        let Report { sites, elapsed_seconds, origin, seed, fetch, messages, .. } = self;
        let mut text = format!(
            "{} of {} URLs on {sites} simulated sites have a result, {} {elapsed_seconds:.1} s \
             (seed {seed}).\n\n",
            fetch.results + messages.results,
            self.pages,
            if self.stopped_early { "stopped after" } else { "after" }
        );
        let lines = [
            format!("fetch       {}", self.results(fetch, ["fetched", "skipped_by_robots"])),
            format!(
                "messages    {}",
                self.results(messages, [FetchResult::SUCCESS, FetchResult::REFUSED_BY_ROBOTS])
            ),
            format!(
                "politeness  {} requests in total, {} came too early ({} gaps checked by the \
                 sites, tolerance {} ms{})",
                origin.requests,
                origin.too_early,
                origin.gaps_judged,
                origin.tolerance_ms,
                match origin.stragglers {
                    0 => String::new(),
                    1 => ", 1 straggler ignored".to_owned(),
                    stragglers => format!(", {stragglers} stragglers ignored"),
                }
            ),
            format!("ledgers     fetch: {}", balance(fetch)),
            format!("            messages: {}", balance(messages)),
        ];
        text.push_str(&lines.join("\n"));
        text.push_str("\n\nSites that misbehave: responses, and results of their URLs:\n");
        for troubled in &self.troubles {
            text.push_str(&troubled.text());
        }
        for fault in self.faults() {
            text.push_str(&format!("\nERROR: {fault}\n"));
        }
        text
    }

    /// The results of a door; `words` are its words for fetched and for skipped.
    fn results(&self, account: &Account, words: [&str; 2]) -> String {
        let [fetched, skipped] =
            words.map(|word| account.by_outcome.get(word).copied().unwrap_or_default());
        let failed = account.results - fetched - skipped;
        let waiting = match account.ledger.unfinished() {
            0 => String::new(),
            open => format!(", {open} still waiting"),
        };
        let is_good = account.faults("", self.stopped_early).is_empty();
        let praise = if is_good { "; none lost, none duplicated" } else { "" };
        format!(
            "{} accepted: {fetched} fetched, {skipped} skipped by robots.txt, {failed} failed{waiting}{praise}",
            account.accepted
        )
    }
}

fn balance(account: &Account) -> String {
    let state = |(name, count): (&str, i64)| format!("{} {count}", name.replace('_', " "));
    let [accepted, states @ ..] = account.ledger.states().map(state);
    format!("{accepted} = {}", states.join(" + "))
}

impl Troubled {
    fn text(&self) -> String {
        let list = |counts: &BTreeMap<String, usize>| {
            let parts: Vec<String> =
                counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            parts.join(", ").replace('_', " ")
        };
        format!(
            "  {:<12} {}\n  {:<12} {} sites, {} requests: {}; URLs: {}; messages: {}\n",
            self.trouble.word(),
            self.about,
            "",
            self.sites,
            self.requests,
            list(&self.answers),
            list(&self.outcomes),
            list(&self.messages)
        )
    }
}

/// The results by trouble, from the requests that the sites recorded, the rows of `fetch` and the results of messages.
pub(super) fn troubles(
    scenario: &Scenario,
    hits: &[Hit],
    rows: &[Outcome],
    results: &[Outcome],
) -> Vec<Troubled> {
    let of = |trouble: Trouble| {
        let sites = scenario.sites.iter().filter(|site| site.trouble == Some(trouble));
        let sites: HashSet<&str> = sites.map(|site| site.name.as_str()).collect();
        let words = |outcomes: &[Outcome]| {
            let theirs = outcomes.iter().filter(|outcome| sites.contains(outcome.site()));
            count(theirs.map(|outcome| outcome.word.clone()))
        };
        let hits = hits.iter().filter(|hit| sites.contains(&*hit.site));
        Troubled {
            trouble,
            about: trouble.about(),
            sites: sites.len(),
            requests: hits.clone().count(),
            answers: count(hits.map(|hit| status_word(hit.status))),
            outcomes: words(rows),
            messages: words(results),
        }
    };
    Trouble::ALL.into_iter().map(of).collect()
}
