//! `fetchwell commoncrawl retry-errors`: the pages of `errors.jsonl` go back on the queue.
//!
//! A page that is read this time becomes a document, and is not published again, or is left out, and is published again
//! only with `--kind left_out`. One that still can't be read is published by the next run.

use std::io;

use bytes::Bytes;
use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::Batch;
use fetchwell_policy::digest::sha256_hex;
use fetchwell_settings::Settings;
use serde_json::json;
use tracing::info;

use super::document::LASTING_KINDS;
use super::output::{ErrorEntry, ErrorFile};
use crate::commands::commoncrawl::args::RetryErrorsArgs;
use crate::commands::commoncrawl::queue::open_bounded;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::console::signals::stop_on_signal;

/// What came of it.
#[derive(Default)]
struct Tally {
    batches: usize,
    pages: usize,
    /// Pages that have a document by now.
    read: usize,
    /// Pages that another attempt would not fix.
    lasting: usize,
    /// Lines that name no record.
    nowhere: usize,
    /// Lines that are none of ours.
    garbage: usize,
}

/// Publishes what can't be read once more, a page once however often this runs while it waits.
pub(crate) fn retry_errors(
    settings: &Settings,
    args: RetryErrorsArgs,
    as_json: bool,
) -> Running<'_> {
    Box::pin(retry_errors_inner(settings, args, as_json))
}

async fn retry_errors_inner(
    settings: &Settings,
    args: RetryErrorsArgs,
    as_json: bool,
) -> Result<Exit, Exit> {
    let mut file = ErrorFile::open(&settings.values.commoncrawl_output)?;
    let outlet = open_bounded(settings, &Clock::system()).await?;
    let stop = stop_on_signal();
    let mut tally = Tally::default();
    let exit = loop {
        let room = outlet.room(&stop).await?;
        let NextBatches { batches, pages } =
            next_batches(&mut file, &args, room.max(1), &mut tally)?;
        if batches.is_empty() {
            break Exit::Ok;
        }
        if stop.is_cancelled() {
            info!("stopped; run the same command to start over: it publishes under the same ids");
            break Exit::Interrupted;
        }
        outlet.queue.publish(&batches).await?;
        tally.batches += batches.len();
        tally.pages += pages;
    };
    tell(&tally, as_json)?;
    Ok(exit)
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
    args: &RetryErrorsArgs,
    most: usize,
    tally: &mut Tally,
) -> io::Result<NextBatches> {
    let mut next = NextBatches::default();
    let mut pages: Vec<CdxRecord> = Vec::new();
    while next.batches.len() < most {
        let entry = file.read_next()?;
        let is_end = entry.is_none();
        match entry {
            Some(ErrorEntry::Page(page, kind)) => {
                let is_lasting = args.kind.is_empty() && LASTING_KINDS.contains(&kind.as_str());
                tally.lasting += usize::from(is_lasting);
                let is_meant = !is_lasting && (args.kind.is_empty() || args.kind.contains(&kind));
                pages.extend(is_meant.then_some(page));
            }
            Some(ErrorEntry::Read) => tally.read += 1,
            Some(ErrorEntry::Nowhere) => tally.nowhere += 1,
            Some(ErrorEntry::Garbage) => tally.garbage += 1,
            None => {}
        }
        if pages.len() >= args.batch_size || is_end && !pages.is_empty() {
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

fn tell(tally: &Tally, as_json: bool) -> Result<Exit, Exit> {
    let Tally { batches, pages, read, lasting, nowhere, garbage } = tally;
    if as_json {
        let told = json!({
            "batches": batches, "pages": pages, "already_read": read, "only_by_kind": lasting,
            "without_a_place": nowhere, "unreadable_lines": garbage,
        });
        return print(format!("{told}\n").as_bytes());
    }
    let mut text = format!("published {pages} pages in {batches} batches\n");
    for (count, what) in [
        (read, "have a document by now"),
        (lasting, "would fail again or were filtered out; --kind publishes them anyway"),
        (nowhere, "have no record that could be read"),
        (garbage, "were not written by this program"),
    ] {
        if *count > 0 {
            text.push_str(&format!("{count} {what}\n"));
        }
    }
    print(text.as_bytes())
}
