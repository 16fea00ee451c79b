//! Counts pages, and shows a progress bar on a terminal.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use fetchwell_policy::units::{quantity, readable_duration};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing::info;

use super::page::ExtractOutcome;

pub(super) struct ExtractProgress {
    counts: ExtractCounts,
    /// Counts the bytes that were read. Hidden until `show`.
    bar: ProgressBar,
    began: Instant,
    is_quiet: bool,
}

#[derive(Default)]
struct ExtractCounts {
    pages: u64,
    skipped: u64,
    failed: u64,
}

impl ExtractProgress {
    /// Starts at zero. `bytes` is the total size of the files, if it is known.
    pub(super) fn new(bytes: Option<u64>, is_quiet: bool) -> ExtractProgress {
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::hidden());
        let template = match bytes {
            Some(_) => "{bar:30} {percent}%  {msg}  ETA {eta}",
            None => "{spinner} {bytes}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        ExtractProgress { counts: ExtractCounts::default(), bar, began: Instant::now(), is_quiet }
    }

    pub(super) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Shows the bar if standard error is a terminal.
    pub(super) fn show(&self) {
        if !self.is_quiet {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    pub(super) fn count(&mut self, outcome: &ExtractOutcome) {
        let count = match outcome {
            ExtractOutcome::Page { .. } => &mut self.counts.pages,
            ExtractOutcome::Skipped => &mut self.counts.skipped,
            ExtractOutcome::Failed(_) => &mut self.counts.failed,
        };
        *count += 1;
        if !self.bar.is_hidden() {
            self.bar.set_message(self.counts.to_string());
        }
    }

    pub(super) fn has_failures(&self) -> bool {
        self.counts.failed > 0
    }

    /// Leaves the bar on the screen, and logs a summary.
    pub(super) fn end(&self) {
        if !self.bar.is_hidden() {
            self.bar.abandon();
            // The bar does not end its line.
            drop(writeln!(io::stderr()));
        }
        if !self.is_quiet {
            info!("{} in {}", self.counts, readable_duration(self.began.elapsed()));
        }
    }
}

/// `3 pages, 2 records skipped, 1 failed`.
impl fmt::Display for ExtractCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&quantity(self.pages, "page", "pages"))?;
        if self.skipped > 0 {
            write!(out, ", {} skipped", quantity(self.skipped, "record", "records"))?;
        }
        if self.failed > 0 {
            write!(out, ", {} failed", self.failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_what_was_not_extracted() {
        for (pages, skipped, failed, text) in [
            (0, 0, 0, "0 pages"),
            (1, 0, 0, "1 page"),
            (12, 1, 0, "12 pages, 1 record skipped"),
            (1, 20, 3, "1 page, 20 records skipped, 3 failed"),
        ] {
            assert_eq!(ExtractCounts { pages, skipped, failed }.to_string(), text);
        }
    }
}
