//! The metrics of a worker.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_telemetry::metric_set;
use fetchwell_telemetry::registry::{IntCounter, IntCounterVec, Registry};

use super::record::{WorkRecord, Written};

metric_set! {
    /// The metrics of this process.
    pub struct WorkMetrics(registry) {
        registry: Registry = registry.clone(),
        batches: IntCounter = registry.counter("worker_batches", "Batches completed."),
        retried: IntCounter = registry.counter(
            "fetchwell_commoncrawl_batches_retried_total", "Batches put back for another attempt."),
        dead: IntCounter = registry.counter(
            "fetchwell_commoncrawl_batches_dead_total", "Batches given up."),
        records: IntCounter = registry.counter(
            "fetchwell_commoncrawl_records_total", "Captured pages processed."),
        documents: IntCounter = registry.counter(
            "fetchwell_commoncrawl_documents_total", "Documents written."),
        repeated: IntCounter = registry.counter(
            "fetchwell_commoncrawl_documents_repeated_total",
            "Documents that were already written, because their batch was delivered again."),
        bytes: IntCounter = registry.counter(
            "fetchwell_commoncrawl_bytes_total", "Bytes of documents written, compressed."),
        segments: IntCounter = registry.counter(
            "fetchwell_commoncrawl_segments_total", "Files of documents completed."),
        left_out: IntCounterVec = registry.counters(
            "fetchwell_commoncrawl_filtered_total",
            "Captured pages left out, by filter.", &["filter"]),
        broken: IntCounterVec = registry.counters(
            "fetchwell_commoncrawl_errors_total",
            "Captured pages that could not be read, by kind.", &["kind"]),
    }
}

impl WorkMetrics {
    /// Counts a batch that has ended, or a round of it.
    pub(super) fn settled(&self, records: &[WorkRecord], settlement: &Settlement, how: Settled) {
        self.records.inc_by(records.len() as u64);
        for record in records {
            match record {
                WorkRecord::Document(_) => {}
                WorkRecord::LeftOut { filter, .. } => {
                    self.left_out.with_label_values(&[filter]).inc();
                }
                WorkRecord::Broken(page) => self.broken.with_label_values(&[&page.kind]).inc(),
            }
        }
        match settlement {
            _ if how == Settled::Stale => {}
            Settlement::Done | Settlement::Skipped => self.batches.inc(),
            Settlement::Dead { .. } => self.dead.inc(),
            Settlement::Retry { .. } => self.retried.inc(),
            Settlement::HandBack { .. } => {}
        }
    }

    /// Counts documents that were written.
    pub(super) fn written(&self, written: &Written) {
        self.documents.inc_by(written.documents);
        self.repeated.inc_by(written.repeated);
        self.bytes.inc_by(written.new_bytes);
    }

    pub(super) fn segment_sealed(&self) {
        self.segments.inc();
    }

    /// The number of documents that this process wrote.
    pub fn documents(&self) -> u64 {
        self.documents.get()
    }

    /// All metrics in Prometheus's text format.
    pub fn render(&self) -> String {
        self.registry.render(|| {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::document::WarcPlace;

    #[test]
    fn what_is_left_out_is_counted_under_the_label_that_the_batcher_has() {
        let metrics = WorkMetrics::default();
        let warc = WarcPlace { filename: "a.warc.gz".to_owned(), offset: 0, length: 9 };
        let left_out = WorkRecord::LeftOut { filter: "too_short", warc };
        let records = [left_out.clone(), left_out];
        metrics.settled(&records, &Settlement::Done, Settled::Confirmed);
        let text = metrics.render();
        let line = "fetchwell_commoncrawl_filtered_total{filter=\"too_short\"} 2";
        assert!(text.lines().any(|told| told == line), "{text}");
    }
}
