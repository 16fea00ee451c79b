//! What a worker has done, for those who watch it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_telemetry::prometheus::{family, single};

use super::output::Written;
use super::record::WorkRecord;

/// What is counted by this process.
#[derive(Default)]
pub(super) struct WorkMetrics {
    batches: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
    records: AtomicU64,
    documents: AtomicU64,
    repeated: AtomicU64,
    bytes: AtomicU64,
    segments: AtomicU64,
    left_out: Mutex<BTreeMap<&'static str, u64>>,
    broken: Mutex<BTreeMap<&'static str, u64>>,
}

impl WorkMetrics {
    /// A batch came to an end, or to the end of a round.
    pub(super) fn settled(&self, records: &[WorkRecord], settlement: &Settlement, how: Settled) {
        add(&self.records, records.len() as u64);
        for record in records {
            match record {
                WorkRecord::Document(_) => {}
                WorkRecord::LeftOut { filter, .. } => count(&self.left_out, filter),
                WorkRecord::Broken(page) => count(&self.broken, page.kind),
            }
        }
        match settlement {
            _ if how == Settled::Stale => {}
            Settlement::Done | Settlement::Skipped => add(&self.batches, 1),
            Settlement::Dead { .. } => add(&self.dead, 1),
            Settlement::Retry { .. } | Settlement::Recur { .. } => add(&self.retried, 1),
            Settlement::HandBack { .. } => {}
        }
    }

    /// Documents went into the folder.
    pub(super) fn written(&self, written: &Written) {
        add(&self.documents, written.documents);
        add(&self.repeated, written.repeated);
        add(&self.bytes, written.new_bytes);
    }

    /// A file of documents is complete.
    pub(super) fn segment_sealed(&self) {
        add(&self.segments, 1);
    }

    /// Documents that this process wrote.
    pub(super) fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// All of it, as Prometheus reads it.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        let counters = [
            ("worker_batches", &self.batches, "Batches completed."),
            (
                "fetchwell_commoncrawl_batches_retried_total",
                &self.retried,
                "Batches put back for another attempt.",
            ),
            ("fetchwell_commoncrawl_batches_dead_total", &self.dead, "Batches given up."),
            ("fetchwell_commoncrawl_records_total", &self.records, "Captured pages processed."),
            ("fetchwell_commoncrawl_documents_total", &self.documents, "Documents written."),
            (
                "fetchwell_commoncrawl_documents_repeated_total",
                &self.repeated,
                "Documents that were already written, because their batch was delivered again.",
            ),
            (
                "fetchwell_commoncrawl_bytes_total",
                &self.bytes,
                "Bytes of documents written, compressed.",
            ),
            (
                "fetchwell_commoncrawl_segments_total",
                &self.segments,
                "Files of documents completed.",
            ),
        ];
        for (name, counter, about) in counters {
            single(&mut text, name, "counter", about, counter.load(Ordering::Relaxed));
        }
        let kinds = |counts: &Mutex<BTreeMap<&'static str, u64>>,
                     label: &str|
         -> Vec<(String, u64)> {
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.iter().map(|(kind, count)| (format!("{{{label}=\"{kind}\"}}"), *count)).collect()
        };
        let (filtered, errors) =
            ("fetchwell_commoncrawl_filtered_total", "fetchwell_commoncrawl_errors_total");
        let about = "Captured pages left out, by filter.";
        family(&mut text, filtered, "counter", about, kinds(&self.left_out, "filter"));
        let about = "Captured pages that could not be read, by kind.";
        family(&mut text, errors, "counter", about, kinds(&self.broken, "kind"));
        text
    }
}

fn add(counter: &AtomicU64, many: u64) {
    counter.fetch_add(many, Ordering::Relaxed);
}

fn count(counts: &Mutex<BTreeMap<&'static str, u64>>, kind: &'static str) {
    *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::commoncrawl::work::document::WarcPlace;

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
