//! The report at the end of the demo, based on its output and not on counters kept on the way.

use std::collections::{BTreeMap, HashMap};

use fetchwell_engine::ports::inbox::FetchResult;
use serde::Serialize;

use super::account::{Account, Outcome};
use super::origin::{Judgement, by_site};
use super::scenario::{Scenario, Size, Trouble};

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

/// What a report is made from.
pub(super) struct Left<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) size: Size,
    pub(super) elapsed_seconds: f64,
    pub(super) stopped_early: bool,
    pub(super) judgement: Judgement,
    pub(super) hits: &'a [fetchwell_simweb::Hit],
    pub(super) fetch: (Account, Vec<Outcome>),
    pub(super) messages: (Account, Vec<Outcome>),
}

impl Report {
    pub(super) fn of(left: Left<'_>) -> Report {
        Report {
            seed: left.size.seed,
            sites: left.scenario.sites.len(),
            pages: left.scenario.pages(),
            elapsed_seconds: left.elapsed_seconds,
            stopped_early: left.stopped_early,
            troubles: troubles(&left),
            fetch: left.fetch.0,
            messages: left.messages.0,
            origin: left.judgement,
        }
    }

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
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str("\nSites that misbehave: responses, and results of their URLs:\n");
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
        let waiting = match account.open() {
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
    let ledger = &account.ledger;
    format!(
        "accepted {} = done {} + skipped {} + queued {} + in flight {} + delayed {} + dead {}",
        ledger.accepted,
        ledger.done,
        ledger.skipped,
        ledger.queued,
        ledger.in_flight,
        ledger.delayed,
        ledger.dead
    )
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

fn troubles(left: &Left<'_>) -> Vec<Troubled> {
    let seen = by_site(left.hits);
    let outcomes = words_by_site(&left.fetch.1);
    let messages = words_by_site(&left.messages.1);
    let of = |trouble| {
        let mut troubled = Troubled {
            trouble,
            about: trouble.about(),
            sites: 0,
            requests: 0,
            answers: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            messages: BTreeMap::new(),
        };
        for site in left.scenario.sites.iter().filter(|site| site.trouble == trouble) {
            let name = site.name.as_str();
            troubled.sites += 1;
            if let Some(seen) = seen.get(name) {
                troubled.requests += seen.hits;
                add(&mut troubled.answers, Some(&seen.answers));
            }
            add(&mut troubled.outcomes, outcomes.get(name));
            add(&mut troubled.messages, messages.get(name));
        }
        troubled
    };
    Trouble::ALL.into_iter().map(of).collect()
}

fn words_by_site(outcomes: &[Outcome]) -> HashMap<&str, BTreeMap<String, usize>> {
    let mut words: HashMap<&str, BTreeMap<String, usize>> = HashMap::new();
    for outcome in outcomes {
        let site = outcome.url.split('/').nth(2).unwrap_or_default();
        *words.entry(site).or_default().entry(outcome.word.clone()).or_default() += 1;
    }
    words
}

fn add(sums: &mut BTreeMap<String, usize>, counts: Option<&BTreeMap<String, usize>>) {
    for (name, count) in counts.into_iter().flatten() {
        *sums.entry(name.clone()).or_default() += count;
    }
}
