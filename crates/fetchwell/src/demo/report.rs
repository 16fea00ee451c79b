//! What the demo has shown, told at its end; judged by what came out, not by what was counted on the way.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use fetchwell_engine::ports::Ledger;
use serde::{Deserialize, Serialize};

use super::origin::{Judgement, by_site};
use super::scenario::{Scenario, Size, Trouble};

/// The whole of it, as `--json` has it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) sites: usize,
    pub(super) pages: usize,
    pub(super) elapsed_seconds: f64,
    pub(super) stopped_early: bool,
    pub(super) results: Results,
    pub(super) ledger: Ledger,
    /// Whether counters and rows of the store agree, and nothing is missing; else what is wrong.
    pub(super) ledger_fault: Option<String>,
    pub(super) origin: Judgement,
    pub(super) troubles: Vec<Troubled>,
}

/// The rows that came out.
#[derive(Debug, Default, Serialize)]
pub(super) struct Results {
    pub(super) rows: usize,
    pub(super) doubled: usize,
    pub(super) missing: usize,
    pub(super) by_outcome: BTreeMap<String, usize>,
}

/// What sites with one trouble got and gave.
#[derive(Debug, Serialize)]
pub(super) struct Troubled {
    pub(super) trouble: Trouble,
    pub(super) about: &'static str,
    pub(super) sites: usize,
    pub(super) requests: usize,
    /// How many answers of each status.
    pub(super) answers: BTreeMap<String, usize>,
    /// What became of its URLs.
    pub(super) outcomes: BTreeMap<String, usize>,
}

/// What a demo leaves to be told.
pub(super) struct Left<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) size: Size,
    pub(super) elapsed_seconds: f64,
    pub(super) stopped_early: bool,
    pub(super) audit: Result<Ledger, String>,
    pub(super) judgement: Judgement,
    pub(super) hits: &'a [fetchwell_simweb::Hit],
    pub(super) rows: &'a Path,
}

#[derive(Deserialize)]
struct Row {
    url: String,
    outcome: String,
}

impl Report {
    pub(super) fn of(left: &Left<'_>) -> io::Result<Report> {
        let rows = std::fs::read_to_string(left.rows)?;
        let rows: Vec<Row> = rows.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let ledger_fault = left.audit.as_ref().err().cloned();
        Ok(Report {
            seed: left.size.seed,
            sites: left.scenario.sites.len(),
            pages: left.scenario.urls.len(),
            elapsed_seconds: left.elapsed_seconds,
            stopped_early: left.stopped_early,
            results: results(&left.scenario.urls, &rows),
            ledger: left.audit.clone().unwrap_or_default(),
            ledger_fault,
            origin: left.judgement,
            troubles: troubles(left, &rows),
        })
    }

    /// What did not go as it should; nothing, if all did.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.ledger_fault.iter().cloned().collect();
        let Results { doubled, missing, .. } = self.results;
        let open = self.ledger.queued + self.ledger.delayed + self.ledger.in_flight;
        let lost = i64::try_from(missing).unwrap_or(i64::MAX) - open;
        if doubled > 0 {
            faults.push(format!("{doubled} results too many"));
        }
        if lost != 0 {
            faults.push(format!("{missing} results are missing and {open} URLs are left"));
        }
        if !self.stopped_early && open > 0 {
            faults.push(format!("{open} URLs are left at the end"));
        }
        if self.origin.too_early > 0 {
            faults.push(format!("{} requests came too early", self.origin.too_early));
        }
        faults
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Report { sites, elapsed_seconds, results, origin, ledger, seed, .. } = self;
        let outcome = |name: &str| results.by_outcome.get(name).copied().unwrap_or_default();
        let faults = self.faults();
        let mut text = format!(
            "{} of {} URLs on {sites} simulated sites have their result, {} {elapsed_seconds:.1} s (seed {seed}).\n\n",
            results.rows,
            self.pages,
            if self.stopped_early { "stopped after" } else { "after" }
        );
        let (fetched, skipped) = (outcome("fetched"), outcome("skipped_by_robots"));
        let failed = results.rows - fetched - skipped;
        let praise = if faults.is_empty() { "; none lost, none double" } else { "" };
        let lines = [
            format!(
                "results     {fetched} fetched, {skipped} skipped by robots.txt, {failed} failed{praise}"
            ),
            format!(
                "politeness  {} requests, {} came too early ({} gaps judged by the sites, tolerance {} ms)",
                origin.requests, origin.too_early, origin.gaps_judged, origin.tolerance_ms
            ),
            format!(
                "ledger      accepted {} = done {} + skipped {} + queued {} + in flight {} + delayed {} + dead {}",
                ledger.accepted,
                ledger.done,
                ledger.skipped,
                ledger.queued,
                ledger.in_flight,
                ledger.delayed,
                ledger.dead
            ),
        ];
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str("\nWhat ill-behaved sites got, and what became of their URLs:\n");
        for troubled in &self.troubles {
            text.push_str(&troubled.text());
        }
        for fault in faults {
            text.push_str(&format!("\nFAULT: {fault}\n"));
        }
        text
    }
}

impl Troubled {
    fn text(&self) -> String {
        let list = |counts: &BTreeMap<String, usize>| {
            let parts: Vec<String> =
                counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            parts.join(", ").replace('_', " ")
        };
        format!(
            "  {:<12} {}\n  {:<12} {} sites, {} requests: {}; URLs: {}\n",
            self.trouble.word(),
            self.about,
            "",
            self.sites,
            self.requests,
            list(&self.answers),
            list(&self.outcomes)
        )
    }
}

fn results(urls: &[String], rows: &[Row]) -> Results {
    let mut left: HashMap<&str, usize> = urls.iter().map(|url| (url.as_str(), 1)).collect();
    let mut results = Results { rows: rows.len(), ..Results::default() };
    for row in rows {
        *results.by_outcome.entry(row.outcome.clone()).or_default() += 1;
        match left.get_mut(row.url.as_str()) {
            Some(left) if *left > 0 => *left -= 1,
            _ => results.doubled += 1,
        }
    }
    results.missing = left.values().sum();
    results
}

fn troubles(left: &Left<'_>, rows: &[Row]) -> Vec<Troubled> {
    let seen = by_site(left.hits);
    let mut outcomes: HashMap<&str, BTreeMap<String, usize>> = HashMap::new();
    for row in rows {
        let site = row.url.split('/').nth(2).unwrap_or_default();
        *outcomes.entry(site).or_default().entry(row.outcome.clone()).or_default() += 1;
    }
    let of = |trouble| {
        let mut troubled = Troubled {
            trouble,
            about: trouble.about(),
            sites: 0,
            requests: 0,
            answers: BTreeMap::new(),
            outcomes: BTreeMap::new(),
        };
        for site in left.scenario.sites.iter().filter(|site| site.trouble == trouble) {
            troubled.sites += 1;
            if let Some(seen) = seen.get(site.name.as_str()) {
                troubled.requests += seen.hits;
                add(&mut troubled.answers, &seen.answers);
            }
            if let Some(outcomes) = outcomes.get(site.name.as_str()) {
                add(&mut troubled.outcomes, outcomes);
            }
        }
        troubled
    };
    Trouble::ALL.into_iter().map(of).collect()
}

fn add(sums: &mut BTreeMap<String, usize>, counts: &BTreeMap<String, usize>) {
    for (name, count) in counts {
        *sums.entry(name.clone()).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_url_has_one_row_or_it_is_told() {
        let urls = ["a", "b", "c"].map(str::to_owned);
        let row = |url: &str| Row { url: url.to_owned(), outcome: "fetched".to_owned() };
        let counted = |rows: &[Row]| {
            let Results { rows, doubled, missing, .. } = results(&urls, rows);
            (rows, doubled, missing)
        };
        assert_eq!(counted(&[row("a"), row("b"), row("c")]), (3, 0, 0));
        assert_eq!(counted(&[row("a"), row("a"), row("x")]), (3, 2, 2));
    }
}
