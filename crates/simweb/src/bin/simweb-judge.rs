//! Reads a record of `simweb` and reports the number of hits of each kind and of gaps that were too short.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use fetchwell_simweb::{Hit, HitKind, Rule, judge, read_hits};
use serde::Serialize;

/// Judges the hits that `simweb` recorded, and prints the verdict as JSON.
#[derive(Parser)]
struct Arguments {
    /// The file that `simweb --record` wrote.
    #[arg(value_name = "FILE.jsonl")]
    record: PathBuf,
    /// The minimum time between two hits of a site, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    interval_ms: u64,
    /// How much too short a gap may be, in milliseconds, to allow for the latency of the machine.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    tolerance_ms: u64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let path = arguments.record.display();
    let file = File::open(&arguments.record).with_context(|| format!("opening {path}"))?;
    let hits = read_hits(BufReader::new(file)).with_context(|| format!("reading {path}"))?;
    let rule = Rule::new(Duration::from_millis(arguments.interval_ms))
        .tolerance(Duration::from_millis(arguments.tolerance_ms));
    print(&Report::of(&hits, &rule))
}

/// The counts.
#[derive(Serialize)]
struct Report {
    /// Hits of pages that were answered with 200.
    pages: usize,
    /// The same without repeated ones.
    distinct_pages: usize,
    robots: usize,
    /// All other hits: strays, `HEAD`, pages with another status.
    others: usize,
    sites: usize,
    /// From the first hit to the last.
    lasted_s: f64,
    gaps_judged: usize,
    too_soon: usize,
}

impl Report {
    fn of(hits: &[Hit], rule: &Rule) -> Report {
        let is_page = |hit: &&Hit| hit.kind == HitKind::Page && hit.status == Some(200);
        let pages: Vec<_> = hits.iter().filter(is_page).map(|hit| (&hit.site, &hit.path)).collect();
        let robots = hits.iter().filter(|hit| hit.kind == HitKind::Robots).count();
        let times = || hits.iter().map(|hit| hit.at);
        let lasted = times().max().unwrap_or_default() - times().min().unwrap_or_default();
        let verdict = judge(hits, rule);
        Report {
            pages: pages.len(),
            distinct_pages: pages.iter().collect::<HashSet<_>>().len(),
            robots,
            others: hits.len() - pages.len() - robots,
            sites: hits.iter().map(|hit| &hit.site).collect::<HashSet<_>>().len(),
            lasted_s: lasted.as_secs_f64(),
            gaps_judged: verdict.gaps_judged,
            too_soon: verdict.violations.len(),
        }
    }
}

fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, report).context("printing the verdict")?;
    writeln!(out).context("printing the verdict")
}
