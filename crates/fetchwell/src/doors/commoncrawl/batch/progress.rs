//! How a batcher gets on: metrics for machines, a bar for a person.

use std::collections::BTreeMap;

use fetchwell_telemetry::metric_set;
use fetchwell_telemetry::registry::{IntCounter, IntCounterVec, Registry};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::checkpoint::Checkpoint;

/// What is known of it. Metrics count what this process did, and the bar all that was done.
pub(super) struct Progress {
    earlier: Checkpoint,
    metrics: BatchMetrics,
    bar: ProgressBar,
    /// The bar counts pages up to this limit; without one it counts bytes of `cluster.idx`.
    limit: Option<u64>,
}

impl Progress {
    /// Begins where a checkpoint stopped. The bar draws nothing where standard error is no terminal.
    pub(super) fn new(
        earlier: Checkpoint,
        index_bytes: u64,
        limit: Option<u64>,
        shows_bar: bool,
    ) -> Progress {
        let bar = ProgressBar::new(limit.unwrap_or(index_bytes));
        if !shows_bar {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let of = if limit.is_some() { "--limit" } else { "cluster.idx" };
        let style = format!("{{bar:30}} {{percent}}% of {of}  {{msg}}  ETA {{eta}}");
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style);
        }
        let progress = Progress { earlier, metrics: BatchMetrics::default(), bar, limit };
        progress.count(&progress.earlier);
        progress.bar.set_position(progress.position(&progress.earlier));
        // What was done before took no time now.
        progress.bar.reset_eta();
        progress
    }

    fn position(&self, checkpoint: &Checkpoint) -> u64 {
        match self.limit {
            Some(_) => checkpoint.pages_published(),
            None => checkpoint.position.index_offset,
        }
    }

    /// It has come this far.
    pub(super) fn advance(&self, checkpoint: &Checkpoint) {
        self.bar.set_position(self.position(checkpoint));
        let batches = checkpoint.batches;
        let pages = checkpoint.pages;
        self.bar.set_message(format!("{batches} batches, {pages} pages"));
        self.count(checkpoint);
    }

    fn count(&self, now: &Checkpoint) {
        let before = &self.earlier;
        let counts = &now.counts;
        let earlier = &before.counts;
        let metrics = &self.metrics;
        raise(&metrics.batches, now.batches, before.batches);
        raise(&metrics.pages, now.pages, before.pages);
        raise(&metrics.blocks, counts.blocks, earlier.blocks);
        raise(&metrics.records, counts.lines, earlier.lines);
        raise(&metrics.bytes, counts.bytes, earlier.bytes);
        raise_each(&metrics.filtered, &counts.filtered, &earlier.filtered);
        raise_each(&metrics.errors, &counts.errors, &earlier.errors);
    }

    /// Leaves the bar as it stands at the end: full, when all is done.
    pub(super) fn end(&self, is_done: bool) {
        if is_done {
            self.bar.finish();
        } else {
            self.bar.abandon();
        }
    }

    /// All metrics, in Prometheus's format.
    pub(super) fn render(&self) -> String {
        self.metrics.registry.render(|| {})
    }
}

metric_set! {
    struct BatchMetrics(registry) {
        registry: Registry = registry.clone(),
        batches: IntCounter = registry.counter("batcher_batches", "Batches published."),
        pages: IntCounter = registry.counter(
            "fetchwell_commoncrawl_pages_total", "Pages in published batches."),
        blocks: IntCounter = registry.counter(
            "fetchwell_commoncrawl_blocks_total", "Blocks of the index read."),
        records: IntCounter = registry.counter(
            "fetchwell_commoncrawl_records_total", "Lines of the index read."),
        bytes: IntCounter = registry.counter(
            "fetchwell_commoncrawl_bytes_total", "Bytes of the index read."),
        filtered: IntCounterVec = registry.counters(
            "fetchwell_commoncrawl_filtered_total",
            "Lines left out, by filter.", &["filter"]),
        errors: IntCounterVec = registry.counters(
            "fetchwell_commoncrawl_errors_total",
            "Lines and blocks skipped, by kind of error.", &["kind"]),
    }
}

/// Raises a counter to what came after `before`.
fn raise(counter: &IntCounter, now: u64, before: u64) {
    counter.inc_by(now.saturating_sub(before).saturating_sub(counter.get()));
}

/// A name without a count since `before` has a counter at 0.
fn raise_each(
    counters: &IntCounterVec,
    now: &BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) {
    for (name, count) in now {
        let before = before.get(name).copied().unwrap_or_default();
        raise(&counters.with_label_values(&[name]), *count, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_ends_full_when_all_is_done() {
        // A limit may lie beyond the last page of the index.
        for (limit, pages) in [(None, 7), (Some(10), 10), (Some(10), 7)] {
            let mut checkpoint = Checkpoint { pages, ..Checkpoint::default() };
            checkpoint.position.index_offset = 90;
            let progress = Progress::new(Checkpoint::default(), 100, limit, false);
            progress.advance(&checkpoint);
            assert_eq!(progress.bar.position(), if limit.is_some() { pages } else { 90 });
            progress.end(true);
            assert_eq!(Some(progress.bar.position()), progress.bar.length());
        }
        let stopped = Progress::new(Checkpoint::default(), 100, None, false);
        stopped.end(false);
        assert_eq!(stopped.bar.position(), 0);
    }

    #[test]
    fn metrics_count_what_this_process_did() {
        let mut checkpoint = Checkpoint { batches: 7, pages: 300, ..Checkpoint::default() };
        checkpoint.counts.add_error("gzip", 2);
        let progress = Progress::new(checkpoint.clone(), 100, None, false);
        (checkpoint.batches, checkpoint.pages) = (10, 450);
        checkpoint.counts.add_error("gzip", 1);
        checkpoint.counts.filtered.insert("language".to_owned(), 5);
        progress.advance(&checkpoint);
        let text = progress.render();
        for line in [
            "# TYPE batcher_batches counter",
            "batcher_batches 3",
            "fetchwell_commoncrawl_pages_total 150",
            "fetchwell_commoncrawl_filtered_total{filter=\"language\"} 5",
            "fetchwell_commoncrawl_errors_total{kind=\"gzip\"} 1",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in:\n{text}");
        }
    }
}
