//! Publishes the pages of `errors.jsonl` again.
//!
//! A page that is read this time becomes a document and is not published again; one that is filtered out is published
//! again only if that kind is named. A page that still cannot be read is published by the next run.

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
    /// The kinds of errors to retry; empty for all that another attempt might fix.
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
    /// Lines that are not valid.
    pub garbage: usize,
    /// Whether it was stopped before the end of the file.
    pub is_interrupted: bool,
}

/// Publishes unreadable pages again. Repeating the command while a page is still queued does not queue it twice.
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

/// Batches to publish, and the number of pages in them.
#[derive(Default)]
struct NextBatches {
    batches: Vec<Batch>,
    pages: usize,
}

/// The next batches of the file, at most `most`.
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

/// The ID is the hash of the content, as for all batches, so that a batch that is still queued is recognized.
fn batch(pages: &[CdxRecord]) -> Batch {
    // Serializing text cannot fail.
    let body = serde_json::to_vec(pages).unwrap_or_default();
    Batch { id: sha256_hex(&body), body: Bytes::from(body) }
}
