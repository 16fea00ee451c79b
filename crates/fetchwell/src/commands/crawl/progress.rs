//! Shows the progress of a crawl on a terminal.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::frontier::{CrawlCounts, Frontier};
use fetchwell_policy::units::readable_duration;
use fetchwell_stores::sqlite::SqliteFrontier;
use indicatif::{ProgressBar, ProgressStyle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::commands::fetch::FetchProgress;
use crate::console::signals::sleep_unless_stopped;

/// How often the bar is updated.
const INTERVAL: Duration = Duration::from_secs(1);

/// Estimates the remaining time of a crawl. A site gets one request per interval, so it takes at least as long as the
/// site with the most known pages; new pages make it longer.
pub(super) struct Estimate {
    pub(super) limit: u64,
    /// The default pace. A Crawl-delay makes a site slower.
    pub(super) interval: Duration,
    pub(super) progress: Arc<FetchProgress>,
}

impl Estimate {
    fn done(&self) -> u64 {
        self.progress.with(|_| true)
    }

    /// The minimum time.
    fn left(&self, counts: &CrawlCounts) -> Duration {
        let unfinished = counts.known.saturating_sub(self.done());
        let budget = self.limit.saturating_sub(self.done());
        let pages = if unfinished <= budget {
            counts.longest
        } else {
            budget.div_ceil(counts.sites.max(1)).min(counts.longest)
        };
        self.interval.saturating_mul(u32::try_from(pages).unwrap_or(u32::MAX))
    }

    fn text(&self, counts: &CrawlCounts) -> String {
        let left = readable_duration(self.left(counts));
        format!("{} failed  at least {left} left", self.progress.failed())
    }
}

/// A line with the progress.
pub(super) struct CrawlBar {
    bar: ProgressBar,
    stop: CancellationToken,
    updates: Option<AbortOnDropHandle<()>>,
}

impl CrawlBar {
    /// Shows it if the user wants it and standard error is a terminal.
    pub(super) fn show(wanted: bool, frontier: SqliteFrontier, estimate: Estimate) -> CrawlBar {
        let bar = if wanted { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let stop = CancellationToken::new();
        if bar.is_hidden() {
            return CrawlBar { bar, stop, updates: None };
        }
        let style = ProgressStyle::with_template("{pos} pages done, {len} known  {per_sec}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_position(estimate.done());
        // Earlier runs must not count towards the rate.
        bar.reset_eta();
        let shown = bar.clone();
        let stopped = stop.clone();
        let updates = AbortOnDropHandle::new(tokio::spawn(async move {
            while !stopped.is_cancelled() {
                sleep_unless_stopped(INTERVAL, &stopped).await;
                // A store that fails stops the crawl, not its bar.
                if let Ok(counts) = frontier.counts().await {
                    shown.set_length(counts.known);
                    shown.set_position(estimate.done());
                    shown.set_message(estimate.text(&counts));
                }
            }
        }));
        CrawlBar { bar, stop, updates: Some(updates) }
    }

    /// Leaves the line on the screen, up to date.
    pub(super) async fn end(self) {
        let Some(updates) = self.updates else { return };
        self.stop.cancel();
        drop(updates.await);
        self.bar.abandon();
        // The bar does not end its line.
        drop(writeln!(std::io::stderr()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_that_of_the_longest_site_within_the_budget() {
        for (limit, known, longest, sites, seconds) in [
            (100, 50, 30, 2, 30),
            (100, 0, 0, 0, 0),
            (100, 100, 1, 100, 1),
            (100, 1_000, 900, 10, 10),
            (100, 1_000, 5, 10, 5),
        ] {
            let interval = Duration::from_secs(1);
            let estimate = Estimate { limit, interval, progress: Arc::default() };
            let counts = CrawlCounts { known, longest, sites, ..CrawlCounts::default() };
            assert_eq!(estimate.left(&counts), Duration::from_secs(seconds), "{known} of {limit}");
        }
    }
}
