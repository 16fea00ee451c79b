//! Progress of a run: counters for the exit code, and a bar on a terminal.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fetchwell_doors::fetch::{Earlier, FetchRow, OutputFormat, RowOutcome};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::units::{quantity, readable_duration};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use parking_lot::Mutex;
use tracing::warn;

use super::estimate::Estimate;
use crate::console::exit::Exit;

#[derive(Default)]
pub(crate) struct FetchProgress {
    /// The number of rows per outcome, in the order of [`RowOutcome::ALL`].
    counts: [AtomicU64; RowOutcome::ALL.len()],
    bar: OnceLock<Bar>,
}

struct Bar {
    bar: ProgressBar,
    estimate: Arc<Mutex<Estimate>>,
}

impl FetchProgress {
    /// The number of failures so far.
    pub(crate) fn failed(&self) -> u64 {
        self.with(RowOutcome::is_failure)
    }

    /// The number of rows whose outcome satisfies this.
    pub(crate) fn with(&self, wanted: impl Fn(RowOutcome) -> bool) -> u64 {
        let rows = RowOutcome::ALL.into_iter().zip(&self.counts);
        rows.filter(|(outcome, _)| wanted(*outcome))
            .map(|(_, count)| count.load(Ordering::Relaxed))
            .sum()
    }

    /// A one-line summary: `5 URLs in 12 s: 3 fetched, 1 skipped by robots.txt, 1 failed`.
    pub(crate) fn summary(&self, left: i64, took: Duration) -> String {
        let rows = self.with(|_| true);
        let mut parts: Vec<String> = RowOutcome::ALL
            .into_iter()
            .map(|outcome| (self.with(|other| other == outcome), outcome.in_words()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        if left > 0 {
            parts.push(format!("{left} left"));
        }
        let urls = quantity(rows, "URL", "URLs");
        let took = readable_duration(took);
        let told = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        format!("{urls} in {took}{told}")
    }

    /// Counts the rows of earlier runs.
    pub(crate) fn count_earlier(&self, earlier: &Earlier) {
        for outcome in &earlier.outcomes {
            self.count(*outcome);
        }
    }

    /// Shows a bar if standard error is a terminal. `estimate` gives the remaining time.
    pub(super) fn show(&self, ledger: Ledger, wanted: bool, estimate: impl FnOnce() -> Estimate) {
        let total = u64::try_from(ledger.accepted).unwrap_or(0);
        if !wanted || total < 2 {
            return;
        }
        let bar = ProgressBar::new(total);
        if bar.is_hidden() {
            // Standard error is not a terminal.
            return;
        }
        let estimate = Arc::new(Mutex::new(estimate()));
        bar.set_style(style(estimate.clone()));
        bar.set_position(ended(ledger));
        // Earlier runs must not count in the ETA.
        bar.reset_eta();
        self.bar.get_or_init(|| Bar { bar, estimate });
    }

    /// Leaves the bar on the screen; it is full unless URLs are left. Results of other processes count, too.
    pub(super) fn end(&self, ledger: Option<Ledger>) {
        let Some(Bar { bar, .. }) = self.bar.get() else { return };
        if let Some(ledger) = ledger {
            bar.set_length(u64::try_from(ledger.accepted).unwrap_or(0));
            bar.set_position(ended(ledger));
        }
        bar.abandon();
        // The bar does not end its line.
        drop(writeln!(std::io::stderr()));
    }

    /// Failures take precedence over refusals.
    pub(crate) fn exit(&self) -> Exit {
        if self.failed() > 0 {
            Exit::SomeFailed
        } else if self.with(RowOutcome::is_refusal) > 0 {
            Exit::Refused
        } else {
            Exit::Ok
        }
    }

    /// Counts a row.
    pub(crate) fn count(&self, outcome: RowOutcome) {
        let rows = RowOutcome::ALL.into_iter().zip(&self.counts);
        for (_, count) in rows.filter(|(other, _)| *other == outcome) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a row, and shows it on the bar.
    pub(crate) fn advance(&self, row: &FetchRow, format: OutputFormat) {
        self.count(row.outcome);
        if let Some(Bar { bar, estimate }) = self.bar.get() {
            estimate.lock().ended(&row.url, row.interval());
            bar.inc(1);
            bar.set_message(format!("{} failed", self.failed()));
        }
        // Without a row, the output does not contain the reason, so it is logged.
        if let (false, Some(reason)) = (format.has_rows(), &row.reason) {
            warn!("{}: {reason}", row.url);
        }
    }
}

/// The number of URLs that have a row.
fn ended(ledger: Ledger) -> u64 {
    u64::try_from(ledger.ended()).unwrap_or(0)
}

fn style(estimate: Arc<Mutex<Estimate>>) -> ProgressStyle {
    let template = "{bar:30} {percent}%  {pos}/{len} URLs  {rate}  {msg}  ETA {left}";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // With very many sites, the limit on concurrent requests determines the time.
        let left =
            if state.is_finished() { state.eta() } else { estimate.lock().left().max(state.eta()) };
        write!(out, "{:#}", HumanDuration(left)).unwrap_or_default();
    };
    style.with_key("rate", write_rate).with_key("left", left)
}

fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // An error in drawing the bar must not stop the run.
    write!(out, "{:.1}/s", state.per_sec()).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(outcomes: &[RowOutcome]) -> FetchProgress {
        let progress = FetchProgress::default();
        for outcome in outcomes {
            progress.count(*outcome);
        }
        progress
    }

    #[test]
    fn a_summary_says_how_many_came_to_what() {
        use RowOutcome::*;
        for (outcomes, left, seconds, summary) in [
            (vec![], 0, 0, "0 URLs in 0.0 s"),
            (vec![Fetched], 0, 2, "1 URL in 2.0 s: 1 fetched"),
            (
                vec![Fetched, UrlFailure, Fetched, SkippedByRobots, SiteFailure],
                3,
                75,
                "5 URLs in 75 s: 2 fetched, 1 skipped by robots.txt, 1 failed, \
                 1 given up (site failure), 3 left",
            ),
            (
                vec![RateLimited, Refused],
                0,
                3_661,
                "2 URLs in 61 min 1 s: 1 rate limited, 1 refused",
            ),
        ] {
            let told = progress(&outcomes).summary(left, Duration::from_secs(seconds));
            assert_eq!(told, summary);
        }
    }

    #[test]
    fn failures_beat_refusals_in_the_exit_code() {
        use RowOutcome::*;
        assert!(matches!(progress(&[Fetched, Noindex]).exit(), Exit::Ok));
        assert!(matches!(progress(&[Fetched, Refused]).exit(), Exit::Refused));
        assert!(matches!(progress(&[SkippedByRobots]).exit(), Exit::Refused));
        assert!(matches!(progress(&[SkippedByRobots, SiteFailure]).exit(), Exit::SomeFailed));
    }
}
