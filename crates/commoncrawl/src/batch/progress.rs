//! The progress of a batcher, as metrics and for a progress bar.

use std::collections::BTreeMap;

use fetchwell_telemetry::metric_set;
use fetchwell_telemetry::registry::{IntCounter, IntCounterVec, Registry};

use super::checkpoint::Checkpoint;

/// The progress. Metrics count only what this process did.
pub struct BatchProgress {
    earlier: Checkpoint,
    metrics: BatchMetrics,
    show: Box<dyn Fn(&Checkpoint) + Send + Sync>,
}

impl BatchProgress {
    /// Starts from a checkpoint; `show` is called with each later one.
    pub fn new(
        earlier: Checkpoint,
        show: impl Fn(&Checkpoint) + Send + Sync + 'static,
    ) -> BatchProgress {
        let metrics = BatchMetrics::default();
        let progress = BatchProgress { earlier, metrics, show: Box::new(show) };
        progress.count(&progress.earlier);
        progress
    }

    /// Reports a new checkpoint.
    pub(super) fn advance(&self, checkpoint: &Checkpoint) {
        (self.show)(checkpoint);
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

    /// All metrics in Prometheus's text format.
    pub fn render(&self) -> String {
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

/// Raises a counter to the increase since `before`.
fn raise(counter: &IntCounter, now: u64, before: u64) {
    counter.inc_by(now.saturating_sub(before).saturating_sub(counter.get()));
}

/// A name that has not increased since `before` gets a counter at 0.
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
    fn metrics_count_what_this_process_did() {
        let mut checkpoint = Checkpoint { batches: 7, pages: 300, ..Checkpoint::default() };
        checkpoint.counts.add_error("gzip", 2);
        let progress = BatchProgress::new(checkpoint.clone(), |_| {});
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
