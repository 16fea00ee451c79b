//! The progress bar of a batcher, over all its runs.

use fetchwell_commoncrawl::batch::Checkpoint;
use fetchwell_policy::units::quantity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) struct BatchBar {
    bar: ProgressBar,
    /// The bar counts pages up to this limit; without one it counts bytes of `cluster.idx`.
    limit: Option<u64>,
}

impl BatchBar {
    /// Starts from a checkpoint. Draws nothing if standard error is not a terminal.
    pub(super) fn new(
        earlier: &Checkpoint,
        index_bytes: u64,
        limit: Option<u64>,
        is_shown: bool,
    ) -> BatchBar {
        let bar = ProgressBar::new(limit.unwrap_or(index_bytes));
        if !is_shown {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let of = if limit.is_some() { "--limit" } else { "cluster.idx" };
        let style = format!("{{bar:30}} {{percent}}% of {of}  {{msg}}  ETA {{eta}}");
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style);
        }
        let bar = BatchBar { bar, limit };
        bar.bar.set_position(bar.position(earlier));
        // Earlier runs must not count in the ETA.
        bar.bar.reset_eta();
        bar
    }

    fn position(&self, checkpoint: &Checkpoint) -> u64 {
        match self.limit {
            Some(_) => checkpoint.pages_published(),
            None => checkpoint.position.index_offset,
        }
    }

    /// Shows a new checkpoint.
    pub(super) fn advance(&self, checkpoint: &Checkpoint) {
        self.bar.set_position(self.position(checkpoint));
        let batches = quantity(checkpoint.batches, "batch", "batches");
        let pages = quantity(checkpoint.pages, "page", "pages");
        self.bar.set_message(format!("{batches}, {pages}"));
    }

    /// Leaves the bar on the screen; it is full only if everything is done.
    pub(super) fn end(&self, is_done: bool) {
        if is_done {
            self.bar.finish();
        } else {
            self.bar.abandon();
        }
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
            let bar = BatchBar::new(&Checkpoint::default(), 100, limit, false);
            bar.advance(&checkpoint);
            assert_eq!(bar.bar.position(), if limit.is_some() { pages } else { 90 });
            bar.end(true);
            assert_eq!(Some(bar.bar.position()), bar.bar.length());
        }
        let stopped = BatchBar::new(&Checkpoint::default(), 100, None, false);
        stopped.end(false);
        assert_eq!(stopped.bar.position(), 0);
    }
}
