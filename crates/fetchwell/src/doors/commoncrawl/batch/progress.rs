//! How a batcher gets on: metrics for machines, a bar for a person.

use std::sync::{Mutex, PoisonError};

use fetchwell_telemetry::prometheus::{family, single};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::checkpoint::Checkpoint;

/// What is known of it. Metrics count what this process did, and the bar all that was done.
pub(super) struct Progress {
    earlier: Checkpoint,
    latest: Mutex<Checkpoint>,
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
        let progress = Progress { latest: Mutex::new(earlier.clone()), earlier, bar, limit };
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
        let (batches, pages) = (checkpoint.batches, checkpoint.pages);
        self.bar.set_message(format!("{batches} batches, {pages} pages"));
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoint.clone_into(&mut latest);
        latest.pending = Vec::new(); // It is not shown, and may be large.
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
        let now = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let before = &self.earlier;
        let text = &mut String::new();
        let batches = now.batches - before.batches;
        single(text, "batcher_batches", "counter", "Batches published.", batches);
        let (counts, earlier) = (&now.counts, &before.counts);
        for (name, about, value) in [
            ("pages", "Pages in published batches.", now.pages - before.pages),
            ("blocks", "Blocks of the index read.", counts.blocks - earlier.blocks),
            ("records", "Lines of the index read.", counts.lines - earlier.lines),
            ("bytes", "Bytes of the index read.", counts.bytes - earlier.bytes),
        ] {
            let name = format!("fetchwell_commoncrawl_{name}_total");
            single(text, &name, "counter", about, value);
        }
        let since = |label: &str, now: &Counted, before: &Counted| {
            let sample = |(name, count): (&String, &u64)| {
                let count = count - before.get(name).unwrap_or(&0);
                (format!("{{{label}=\"{name}\"}}"), count)
            };
            now.iter().map(sample).collect::<Vec<_>>()
        };
        let filtered = since("filter", &counts.filtered, &earlier.filtered);
        let about = "Lines left out, by filter.";
        family(text, "fetchwell_commoncrawl_filtered_total", "counter", about, filtered);
        let errors = since("kind", &counts.errors, &earlier.errors);
        let about = "Lines and blocks skipped, by kind of error.";
        family(text, "fetchwell_commoncrawl_errors_total", "counter", about, errors);
        std::mem::take(text)
    }
}

type Counted = std::collections::BTreeMap<String, u64>;

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
