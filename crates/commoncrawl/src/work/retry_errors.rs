//! The pages of `errors.jsonl` go back on the queue.
//!
//! A page that is read this time becomes a document, and is not published again, or is left out, and is published again
//! only where that kind is named. One that still can't be read is published by the next run.

use std::io;

use bytes::Bytes;
use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_engine::ports::batches::Batch;
use fetchwell_policy::digest::sha256_hex;
use tokio_util::sync::CancellationToken;

use super::document::LASTING_KINDS;
use super::output::{ErrorEntry, ErrorFile};
use crate::bounded_queue::BoundedQueue;
use crate::error::CommonCrawlError;

/// Which pages are published again, and how.
pub struct RetryRules {
    /// Those with errors of these kinds; none: all that another attempt might fix.
    pub kinds: Vec<String>,
    pub batch_size: usize,
}

#[derive(Default)]
pub struct RetriedErrors {
    pub batches: usize,
    pub pages: usize,
    /// Pages that have a document by now.
    pub read: usize,
    /// Pages that another attempt would not fix.
    pub lasting: usize,
    /// Lines that name no record.
    pub nowhere: usize,
    /// Lines that are none of ours.
    pub garbage: usize,
    /// Whether it was told to stop before the end of the file.
    pub is_interrupted: bool,
}

/// Publishes what can't be read once more, a page once however often this runs while it waits.
pub async fn retry_errors(
    file: &mut ErrorFile,
    rules: &RetryRules,
    outlet: &BoundedQueue,
    stop: &CancellationToken,
) -> Result<RetriedErrors, CommonCrawlError> {
    let mut tally = RetriedErrors::default();
    loop {
        let room = outlet.room(stop).await?;
        let NextBatches { batches, pages } = next_batches(file, rules, room.max(1), &mut tally)?;
        if batches.is_empty() {
            break;
        }
        if stop.is_cancelled() {
            tally.is_interrupted = true;
            break;
        }
        outlet.queue.publish(&batches).await?;
        tally.batches += batches.len();
        tally.pages += pages;
    }
    Ok(tally)
}

/// Batches that are to be published, and the pages in them.
#[derive(Default)]
struct NextBatches {
    batches: Vec<Batch>,
    pages: usize,
}

/// The next batches of the file, at most so many.
fn next_batches(
    file: &mut ErrorFile,
    rules: &RetryRules,
    most: usize,
    tally: &mut RetriedErrors,
) -> io::Result<NextBatches> {
    let mut next = NextBatches::default();
    let mut pages: Vec<CdxRecord> = Vec::new();
    while next.batches.len() < most {
        let entry = file.read_next()?;
        let is_end = entry.is_none();
        match entry {
            Some(ErrorEntry::Page(page, kind)) => {
                let is_lasting = rules.kinds.is_empty() && LASTING_KINDS.contains(&kind.as_str());
                tally.lasting += usize::from(is_lasting);
                let is_meant =
                    !is_lasting && (rules.kinds.is_empty() || rules.kinds.contains(&kind));
                pages.extend(is_meant.then_some(page));
            }
            Some(ErrorEntry::Read) => tally.read += 1,
            Some(ErrorEntry::Nowhere) => tally.nowhere += 1,
            Some(ErrorEntry::Garbage) => tally.garbage += 1,
            None => {}
        }
        if pages.len() >= rules.batch_size || is_end && !pages.is_empty() {
            next.pages += pages.len();
            next.batches.push(batch(&pages));
            pages.clear();
        }
        if is_end {
            break;
        }
    }
    Ok(next)
}

/// Named by its content, as all batches are: one that waits already is known by its id.
fn batch(pages: &[CdxRecord]) -> Batch {
    // Texts can always be written.
    let body = serde_json::to_vec(pages).unwrap_or_default();
    Batch { id: sha256_hex(&body), body: Bytes::from(body) }
}
