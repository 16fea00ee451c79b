//! How it goes: counts for the exit code, a bar on a terminal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use fetchwell_engine::ports::{Finish, Finished, Ledger, Settled, StoreFault};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use tracing::warn;

use super::earlier::Earlier;
use super::estimate::Estimate;
use super::row::{Row, RowOutcome};
use crate::cli::{Exit, Format};

/// Counts what came out.
#[derive(Default)]
pub(crate) struct Progress {
    failed: AtomicU64,
    refused: AtomicU64,
    bar: OnceLock<Bar>,
}

/// What a person sees of it.
struct Bar {
    bar: ProgressBar,
    estimate: Arc<Mutex<Estimate>>,
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

    /// Shows a bar, where a person looks; `estimate` says how long it takes.
    pub(super) fn show(&self, ledger: Ledger, wanted: bool, estimate: impl FnOnce() -> Estimate) {
        let total = u64::try_from(ledger.accepted).unwrap_or(0);
        if !wanted || total < 2 {
            return;
        }
        let bar = ProgressBar::new(total);
        if bar.is_hidden() {
            // Standard error is no terminal.
            return;
        }
        let estimate = Arc::new(Mutex::new(estimate()));
        bar.set_style(style(estimate.clone()));
        bar.set_position(ended(ledger));
        // What earlier runs did took no time now.
        bar.reset_eta();
        self.bar.get_or_init(|| Bar { bar, estimate });
    }

    /// Leaves the bar as it stands at the end: full, unless URLs are left. Results that other processes got count, too.
    pub(super) fn end(&self, ledger: Option<Ledger>) {
        let Some(Bar { bar, .. }) = self.bar.get() else { return };
        if let Some(ledger) = ledger {
            bar.set_length(u64::try_from(ledger.accepted).unwrap_or(0));
            bar.set_position(ended(ledger));
        }
        bar.abandon();
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
        if let Some(Bar { bar, estimate }) = self.bar.get() {
            lock(estimate).ended(&row.url, row.interval());
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

/// URLs that have their row.
fn ended(ledger: Ledger) -> u64 {
    u64::try_from(ledger.done + ledger.skipped + ledger.dead).unwrap_or(0)
}

fn lock(estimate: &Mutex<Estimate>) -> MutexGuard<'_, Estimate> {
    estimate.lock().unwrap_or_else(PoisonError::into_inner)
}

fn style(estimate: Arc<Mutex<Estimate>>) -> ProgressStyle {
    let template = "{bar:30} {percent}%  {pos}/{len} URLs  {rate}  {msg}  ETA {left}";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // With very many sites it is the requests under way at once that take the time.
        let left =
            if state.is_finished() { state.eta() } else { lock(&estimate).left().max(state.eta()) };
        write!(out, "{:#}", HumanDuration(left)).unwrap_or_default();
    };
    style.with_key("rate", write_rate).with_key("left", left)
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
