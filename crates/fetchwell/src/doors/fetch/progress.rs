//! How it goes: counts for the exit code, a bar on a terminal.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use fetchwell_engine::ports::{Finish, Finished, Ledger, Settled, StoreFault};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::sync::Arc;
use tracing::warn;

use super::earlier::Earlier;
use super::row::{Row, RowOutcome};
use crate::cli::{Exit, Format};

/// Counts what came out.
#[derive(Default)]
pub(crate) struct Progress {
    failed: AtomicU64,
    refused: AtomicU64,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// How many failed so far.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Takes over what an earlier run left.
    pub(super) fn count_earlier(&self, earlier: &Earlier) {
        for outcome in &earlier.outcomes {
            self.count(*outcome);
        }
    }

    /// Shows a bar, where a person looks.
    pub(super) fn show(&self, ledger: Ledger, wanted: bool) {
        let total = u64::try_from(ledger.accepted).unwrap_or(0);
        if !wanted || total < 2 {
            return;
        }
        let bar = ProgressBar::new(total); // Draws nothing where standard error is no terminal.
        let style = "{bar:30} {pos}/{len} URLs  {rate}  {msg}  ETA {eta}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.with_key("rate", write_rate));
        }
        bar.set_position(u64::try_from(ledger.done + ledger.skipped).unwrap_or(0));
        self.bar.get_or_init(|| bar);
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }

    /// Failures beat refusals.
    pub(super) fn exit(&self) -> Exit {
        if self.failed() > 0 {
            Exit::SomeFailed
        } else if self.refused.load(Ordering::Relaxed) > 0 {
            Exit::Refused
        } else {
            Exit::Ok
        }
    }

    fn count(&self, outcome: RowOutcome) {
        match outcome {
            RowOutcome::Fetched => {}
            RowOutcome::SkippedByRobots | RowOutcome::Refused => {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            RowOutcome::UrlFailure | RowOutcome::SiteFailure | RowOutcome::RateLimited => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn advance(&self, row: &Row, format: Format) {
        self.count(row.outcome);
        if let Some(bar) = self.bar.get() {
            bar.inc(1);
            bar.set_message(format!("{} failed", self.failed()));
        }
        // In JSON the row says it, and an archive holds the same; elsewhere there would be silence.
        let is_told = matches!(format, Format::Json | Format::Warc);
        if let (false, Some(reason)) = (is_told, &row.reason) {
            warn!("{}: {reason}", row.url);
        }
    }
}

fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A bar that can't be drawn is no reason to stop.
    write!(out, "{:.1}/s", state.per_sec()).unwrap_or_default();
}

/// Counts the rows of confirmed leases on their way.
pub(super) struct Counted<F> {
    pub(super) inner: F,
    pub(super) progress: Arc<Progress>,
    pub(super) format: Format,
}

#[async_trait]
impl<F: Finish<Row>> Finish<Row> for Counted<F> {
    async fn finish(&self, batch: &[Finished<Row>]) -> Result<Vec<Settled>, StoreFault> {
        let settled = self.inner.finish(batch).await?;
        for (finished, settled) in batch.iter().zip(&settled) {
            if *settled == Settled::Confirmed {
                for row in &finished.records {
                    self.progress.advance(row, self.format);
                }
            }
        }
        Ok(settled)
    }
}
