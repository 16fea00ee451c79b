//! `fetchwell commoncrawl batch`: turns the index of a crawl into batches of captured pages on a queue.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fetchwell_commoncrawl::batch::{
    ACROSS_BLOCKS, BatchProgress, BatchTarget, Batcher, Checkpoint, CheckpointFile,
};
use fetchwell_engine::pipeline::RunEnd;
use fetchwell_policy::units::quantity;
use fetchwell_settings::{Settings, Values};
use fetchwell_telemetry::metrics::DoorName;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::archive::{OpenArchive, open_bounded};
use super::args::BatchArgs;
use super::batch_bar::BatchBar;
use crate::console::exit::Exit;
use crate::console::output::{Running, print_either};
use crate::console::signals::stop_on_signal;
use crate::wiring::{listen_for_metrics, with_metrics};

pub(super) fn run(settings: &Settings, args: BatchArgs, as_json: bool, quiet: u8) -> Running<'_> {
    Box::pin(async move {
        let values = &settings.values;
        let rules = args.rules(values)?;
        let index_bytes = index_bytes(&args)?;
        let path = checkpoint_path(&args);
        let opened = (!args.dry_run).then(|| CheckpointFile::open(&path)).transpose()?;
        let (file, kept) = opened.unzip();
        let kept = kept.flatten();
        // A run that an earlier version started is finished in the way of that version, so that no batch ID changes
        // midway.
        let across_blocks = kept.as_ref().is_none_or(Checkpoint::is_across_blocks);
        let selection = selection(values, &args, across_blocks);
        let fresh = Checkpoint { selection: selection.clone(), ..Checkpoint::default() };
        let earlier = kept.unwrap_or(fresh);
        refuse_another_selection(&path, &earlier, &selection)?;
        if is_done(&args, &earlier) {
            let path = path.display();
            info!("everything is already published; move {path} away to publish it again");
            return tell(&earlier, as_json);
        }
        let listener = listen_for_metrics(values.commoncrawl_batch_metrics_listen).await?;
        let archive = OpenArchive::open(settings).await?;
        if let Some(listener) = &listener {
            let address = listener.local_addr()?;
            archive.parts.own_listeners.register(address);
            info!("metrics are at http://{address}/metrics");
        }
        let target = match file {
            None => None,
            Some(checkpoint) => {
                let outlet = open_bounded(settings, &archive.parts.clock).await?;
                Some(BatchTarget { outlet, checkpoint })
            }
        };
        let begun_at = earlier.position.index_offset;
        info!("reading {} from byte {begun_at} of {index_bytes}", args.cluster_idx.display());
        if !across_blocks {
            info!(
                "{} was started by an earlier version: its batches end with their index block, as \
                 before",
                path.display()
            );
        }
        let stop = stop_on_signal();
        let bar = Arc::new(BatchBar::new(&earlier, index_bytes, args.limit, quiet == 0));
        let shown = bar.clone();
        let progress = BatchProgress::new(earlier.clone(), move |now| shown.advance(now));
        let progress = Arc::new(progress);
        let runtime = archive.runtime(settings, None, DoorName::Batch);
        let batcher =
            Batcher { rules, archive: &archive.archive, target, progress: progress.clone() };
        let process_metrics = archive.parts.process_metrics.clone();
        let metrics = move || progress.render() + &process_metrics.render();
        let batching = batcher.run(earlier, runtime, &stop);
        let over = CancellationToken::new();
        let ended = with_metrics(listener, values, metrics, over, batching).await;
        bar.end(matches!(&ended, Ok((_, checkpoint)) if is_done(&args, checkpoint)));
        let (ended, checkpoint) = ended?;
        let exit = tell(&checkpoint, as_json)?;
        if let RunEnd::Halted(reason) = &ended {
            error!("stopped: {reason}; run the same command to continue");
            return Ok(archive.exit_when_halted(reason));
        }
        if ended == RunEnd::Stopped && !is_full(&args, &checkpoint) {
            info!("stopped; run the same command to continue");
        }
        if checkpoint.unread_blocks > 0 {
            let blocks = quantity(checkpoint.unread_blocks, "block", "blocks");
            warn!("{blocks} could not be read; see \"unread\" in {}", path.display());
        }
        Ok(exit)
    })
}

/// Everything that batches depend on. The location of the archive does not matter to them.
fn selection(values: &Values, args: &BatchArgs, across_blocks: bool) -> Json {
    let by_file = args.by_file.then_some(values.commoncrawl_by_file_pages);
    let mut selection = json!({
        "crawl": values.commoncrawl_crawl,
        "lang": args.lang,
        "primary": args.primary,
        "status": args.status,
        "mime": args.mime,
        "url-prefix": args.url_prefix,
        "min-length": args.min_length,
        "max-length": args.max_length,
        "batch-size": args.batch_size,
        "by-file": by_file,
    });
    if across_blocks {
        selection[ACROSS_BLOCKS] = true.into();
    }
    selection
}

fn index_bytes(args: &BatchArgs) -> Result<u64, Exit> {
    let path = &args.cluster_idx;
    let metadata = std::fs::metadata(path).map_err(|error| {
        Exit::Usage(format!(
            "cannot read {}: {error}; download it from \
             BASE/cc-index/collections/CRAWL/indexes/cluster.idx",
            path.display()
        ))
    })?;
    Ok(metadata.len())
}

fn checkpoint_path(args: &BatchArgs) -> PathBuf {
    args.checkpoint.clone().unwrap_or_else(|| {
        let mut path = args.cluster_idx.clone().into_os_string();
        path.push(".checkpoint");
        PathBuf::from(path)
    })
}

/// Refuses to continue with other filters: half of the batches would use one set of filters, half another.
fn refuse_another_selection(
    path: &Path,
    earlier: &Checkpoint,
    selection: &Json,
) -> Result<(), Exit> {
    let differences = earlier.differences(selection);
    if differences.is_empty() {
        return Ok(());
    }
    Err(Exit::Usage(format!(
        "the batches recorded in {} were made with another --{}; use the same value to continue, \
         or another --checkpoint to start over",
        path.display(),
        differences.join(" and --")
    )))
}

fn is_full(args: &BatchArgs, checkpoint: &Checkpoint) -> bool {
    args.limit.is_some_and(|limit| checkpoint.pages_published() >= limit)
}

fn is_done(args: &BatchArgs, checkpoint: &Checkpoint) -> bool {
    checkpoint.is_finished || is_full(args, checkpoint)
}

/// Prints the totals over all runs, and returns the exit code that they mean.
fn tell(checkpoint: &Checkpoint, as_json: bool) -> Result<Exit, Exit> {
    let Checkpoint { batches, counts, unread_blocks, is_finished, .. } = checkpoint;
    let pages = checkpoint.pages_published();
    let told = json!({
        "batches": batches, "pages": pages, "blocks": counts.blocks, "bytes": counts.bytes,
        "lines": counts.lines, "filtered": counts.filtered, "errors": counts.errors,
        "unread_blocks": unread_blocks, "finished": is_finished,
    });
    let mut text = format!(
        "{}, {}\nout of {} in {}\n",
        quantity(*batches, "batch", "batches"),
        quantity(pages, "page", "pages"),
        quantity(counts.lines, "line", "lines"),
        quantity(counts.blocks, "block", "blocks")
    );
    for (name, count) in &counts.filtered {
        text.push_str(&format!("{count} left out by {name}\n"));
    }
    for (kind, count) in &counts.errors {
        text.push_str(&format!("{count} skipped: {kind}\n"));
    }
    print_either(as_json, told, text)?;
    Ok(if *unread_blocks > 0 { Exit::SomeFailed } else { Exit::Ok })
}
