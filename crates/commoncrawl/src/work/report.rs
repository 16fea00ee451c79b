//! Counts what is finished, once it is, and names in the log what went wrong.

use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use tracing::warn;

use super::metrics::WorkMetrics;
use super::record::{BrokenPage, WorkRecord};

/// Of a batch's pages that can't be read so many are named in the log; all are in a file.
const BROKEN_PAGES_NAMED: usize = 3;

/// Counts a batch that is finished, and logs what went wrong.
pub(super) fn report(finished: &Finished<WorkRecord>, settled: Settled, metrics: &WorkMetrics) {
    metrics.settled(&finished.records, &finished.settlement, settled);
    // One that is not ours any more comes again.
    if settled == Settled::Confirmed {
        complaints(finished).iter().for_each(|line| warn!("{line}"));
    }
}

/// What there is to say of a batch in the log.
fn complaints(finished: &Finished<WorkRecord>) -> Vec<String> {
    let batch = finished.lease.job.url.escape_debug();
    let broken: Vec<&BrokenPage> = finished.records.iter().filter_map(broken).collect();
    let name = |page: &&BrokenPage| format!("{}: skipped: {}", page.place(), page.reason);
    let mut lines: Vec<String> = broken.iter().take(BROKEN_PAGES_NAMED).map(name).collect();
    let more = broken.len() - lines.len();
    if more > 0 {
        lines.push(format!("and {more} more pages of batch {batch}; errors.jsonl has all of them"));
    }
    if let Settlement::Dead { reason } = &finished.settlement {
        lines.push(format!(
            "batch {batch} was given up: {reason}; `fetchwell commoncrawl dead list` lists such batches, \
             `dead retry` puts them back on the queue"
        ));
    }
    lines
}

fn broken(record: &WorkRecord) -> Option<&BrokenPage> {
    match record {
        WorkRecord::Broken(page) => Some(page),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::budget::Share;
    use fetchwell_engine::web::Phases;
    use fetchwell_testkit::samples::lease;

    use super::*;
    use crate::work::document::WarcPlace;

    fn finished(broken: u64, settlement: Settlement) -> Finished<WorkRecord> {
        let place = |offset| WarcPlace { filename: "a.warc.gz".to_owned(), offset, length: 9 };
        let page = |offset| {
            WorkRecord::Broken(Box::new(BrokenPage {
                url: Some("https://example.com/\u{1b}[2J".to_owned()),
                surt: "com,example)/".to_owned(),
                timestamp: "20240712000102".to_owned(),
                warc: Some(place(offset)),
                kind: "gzip".into(),
                reason: "it is cut off".to_owned(),
                metadata: Default::default(),
            }))
        };
        let left_out = WorkRecord::LeftOut { filter: "too_short", warc: place(99) };
        let records = [left_out].into_iter().chain((0..broken).map(page));
        let phases = Phases::default();
        let records = records.collect();
        Finished { lease: lease("b-1", "[]"), records, settlement, phases, share: Share::none() }
    }

    #[test]
    fn bad_records_and_dead_batches_are_named_and_no_batch_fills_the_log() {
        assert!(complaints(&finished(0, Settlement::Done)).is_empty());
        let lines = complaints(&finished(2, Settlement::Done));
        let page = "https://example.com/\\u{1b}[2J in a.warc.gz";
        let want = [0, 1].map(|offset| format!("{page} at {offset}: skipped: it is cut off"));
        assert_eq!(lines, want);
        let dead = Settlement::Dead { reason: "500 three times".to_owned() };
        let lines = complaints(&finished(50, dead));
        assert_eq!(lines.len(), 5);
        assert!(lines[3].starts_with("and 47 more pages of batch b-1"), "{lines:?}");
        assert!(lines[4].starts_with("batch b-1 was given up: 500 three times"), "{lines:?}");
    }
}
