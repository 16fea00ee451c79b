//! `fetchwell commoncrawl batch`: the index of a crawl becomes batches of captured pages on a queue.
//!
//! `cluster_source` reads `cluster.idx` line by line, `block` is the plan of a line, `ahead` keeps what waits
//! within bounds, `window` puts blocks in order and cuts them into batches, `outgoing` says what is to be
//! published next and what is so once it is confirmed, `publishing` does that, and `checkpoint` is the file
//! that says how far it has come.

mod ahead;
pub mod block;
mod checkpoint;
mod cluster_source;
mod counts;
mod outgoing;
mod progress;
mod publishing;
pub(crate) mod standing;
mod window;

use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_archive::cdxj::{Filter, Language, LanguagePlace};
use fetchwell_engine::pipeline::{self, Door, Ended};
use fetchwell_service::metrics_server::{self, at_once};
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use serde_json::{Value as Json, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::queue::BoundedQueue;
use crate::commands::commoncrawl::archive::OpenArchive;
use crate::commands::commoncrawl::args::BatchArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::console::signals::stop_on_signal;
use crate::wiring::{connection_rules, listen_for_metrics, open_batches};
use ahead::{Ahead, Bounded};
use block::Batching;
use checkpoint::{ACROSS_BLOCKS, Checkpoint, CheckpointFile};
use cluster_source::ClusterSource;
use outgoing::Outgoing;
use progress::Progress;
use publishing::{Publisher, State, Target};
use window::{Cutting, Windows};

/// For each request to the archive so many blocks may wait for one before them.
const AHEAD_BLOCKS_PER_REQUEST: usize = 4;
/// So many bytes of pages may wait for their turn or for the queue.
const MAX_BYTES_AHEAD: u64 = 32 << 20;
/// The word that lifts a filter.
const ANY: &str = "any";

/// Does what was typed.
pub(crate) fn run(settings: &Settings, args: BatchArgs, as_json: bool, quiet: u8) -> Running<'_> {
    Box::pin(run_inner(settings, args, as_json, quiet))
}

async fn run_inner(
    settings: &Settings,
    args: BatchArgs,
    as_json: bool,
    quiet: u8,
) -> Result<Exit, Exit> {
    let values = &settings.values;
    let crawl = settings.values.commoncrawl_crawl.as_str();
    let batching = batching(&args)?;
    let index_bytes = index_bytes(&args)?;
    let (file, kept) = match args.dry_run {
        true => (None, None),
        false => {
            let (file, kept) = CheckpointFile::open(&checkpoint_path(&args))?;
            (Some(file), kept)
        }
    };
    // What an earlier version began is finished as that version would, so that no id changes midway.
    let across_blocks = kept.as_ref().is_none_or(Checkpoint::is_across_blocks);
    let selection = selection(settings, &args, crawl, across_blocks);
    let fresh = Checkpoint { selection: selection.clone(), ..Checkpoint::default() };
    let earlier = kept.unwrap_or(fresh);
    refuse_another_selection(&args, &earlier, &selection)?;
    if is_done(&args, &earlier) {
        return say_done(&args, &earlier, as_json);
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
            let queue = open_batches(settings, &archive.parts.clock).await?;
            Some(Target { outlet: BoundedQueue::new(queue, settings), checkpoint })
        }
    };
    let begun_at = earlier.position.index_offset;
    info!("reading {} from byte {begun_at} of {index_bytes}", args.cluster_idx.display());
    if !across_blocks {
        info!(
            "{} was started by an earlier version: its batches end with their index block, as \
             before",
            checkpoint_path(&args).display()
        );
    }
    let stop = stop_on_signal();
    let progress = Arc::new(Progress::new(earlier.clone(), index_bytes, args.limit, quiet == 0));
    let flow = Flow { settings, args: &args, archive: &archive, progress: progress.clone() };
    let told = progress.clone();
    let measures = archive.parts.measures.clone();
    let over = CancellationToken::new();
    let (ended, ()) = tokio::join!(
        async {
            let ended = flow.run(crawl, batching, target, earlier, &stop).await;
            over.cancel();
            ended
        },
        metrics_server::serve(
            listener,
            connection_rules(values),
            at_once(move || told.render() + &measures.render()),
            None,
            over.clone()
        ),
    );
    progress.end(matches!(&ended, Ok((_, checkpoint)) if is_done(&args, checkpoint)));
    let (ended, checkpoint) = ended?;
    tell(&checkpoint, as_json)?;
    if let Ended::Halted(reason) = &ended {
        error!("stopped: {reason}; run the same command to continue");
        return Ok(archive.exit_when_halted(reason));
    }
    Ok(say_end(&args, &ended, &checkpoint))
}

/// What a run goes by.
struct Flow<'a> {
    settings: &'a Settings,
    args: &'a BatchArgs,
    archive: &'a OpenArchive,
    progress: Arc<Progress>,
}

impl Flow<'_> {
    async fn run(
        &self,
        crawl: &str,
        batching: Batching,
        target: Option<Target>,
        earlier: Checkpoint,
        stop: &CancellationToken,
    ) -> Result<(Ended, Checkpoint), Exit> {
        let values = &self.settings.values;
        let max_blocks = AHEAD_BLOCKS_PER_REQUEST * values.commoncrawl_max_concurrency;
        let ahead = Arc::new(Ahead::new(max_blocks as u64, MAX_BYTES_AHEAD));
        let indexes = self.archive.archive.indexes(crawl)?;
        let (path, from) = (&self.args.cluster_idx, earlier.position.index_offset);
        let clock = self.archive.parts.clock.clone();
        let source = Arc::new(ClusterSource::open(path, from, indexes, ahead.clone(), clock)?);
        let by_file_pages = batching.by_file.then_some(values.commoncrawl_by_file_pages);
        let batch_size = self.args.batch_size;
        let across_windows = earlier.is_across_blocks();
        let cutting = Cutting { batch_size, by_file_pages, across_windows };
        let run_ends = stop.child_token();
        let publisher = Arc::new(Publisher {
            target,
            instance: source.instance(),
            ahead: ahead.clone(),
            progress: self.progress.clone(),
            stop: run_ends.clone(),
            state: Mutex::new(State {
                windows: Windows::after(&earlier, cutting),
                outgoing: Outgoing::after(&earlier, self.args.limit),
                checkpoint: earlier,
            }),
        });
        let door = Door {
            source,
            planner: Arc::new(move |lease| {
                let plan = block::plan(&batching, lease);
                Box::new(Bounded::new(plan, ahead.clone(), lease))
            }),
            finish: publisher.clone(),
            obituary: Arc::new(block::obituary),
        };
        let plant = self.archive.plant(self.settings, None, DoorName::Batch);
        let ended = pipeline::run(door, plant, run_ends).await?;
        let checkpoint = publisher.close(ended == Ended::Exhausted).await?;
        Ok((ended, checkpoint))
    }
}

fn batching(args: &BatchArgs) -> Result<Batching, Exit> {
    let status = match args.status.as_str() {
        ANY => None,
        status => Some(status.parse().map_err(|_| {
            Exit::Usage(format!(
                "--status {status} is not a status: use a number such as 200, or any"
            ))
        })?),
    };
    let place = if args.primary { LanguagePlace::Primary } else { LanguagePlace::Any };
    let language = (args.lang != ANY).then(|| Language { code: args.lang.clone(), place });
    let filter = Filter {
        status,
        language,
        mime: args.mime.clone(),
        url_prefix: args.url_prefix.clone(),
        length_bytes: length_bytes(args),
    };
    Ok(Batching { filter, by_file: args.by_file })
}

fn length_bytes(args: &BatchArgs) -> Option<std::ops::RangeInclusive<u64>> {
    let least = args.min_length;
    let most = args.max_length;
    (least.is_some() || most.is_some()).then(|| least.unwrap_or(0)..=most.unwrap_or(u64::MAX))
}

/// All that batches depend on. Where the archive is does not matter to them.
fn selection(settings: &Settings, args: &BatchArgs, crawl: &str, across_blocks: bool) -> Json {
    let by_file = args.by_file.then_some(settings.values.commoncrawl_by_file_pages);
    let mut selection = json!({
        "crawl": crawl,
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

/// Half of the batches by one filter and half by another would be nobody's wish.
fn refuse_another_selection(
    args: &BatchArgs,
    earlier: &Checkpoint,
    selection: &Json,
) -> Result<(), Exit> {
    let differences = earlier.differences(selection);
    if differences.is_empty() {
        return Ok(());
    }
    let path = checkpoint_path(args);
    Err(Exit::Usage(format!(
        "the batches recorded in {} were made with another --{}; use the same value to continue, \
         or another --checkpoint to start over",
        path.display(),
        differences.join(" and --")
    )))
}

/// Whether there is nothing left to do.
fn is_done(args: &BatchArgs, earlier: &Checkpoint) -> bool {
    let is_full = args.limit.is_some_and(|limit| earlier.pages_published() >= limit);
    earlier.is_finished || is_full
}

fn say_done(args: &BatchArgs, earlier: &Checkpoint, as_json: bool) -> Result<Exit, Exit> {
    let path = checkpoint_path(args);
    info!("everything is already published; move {} away to publish it again", path.display());
    tell(earlier, as_json)?;
    Ok(exit_of(earlier))
}

fn say_end(args: &BatchArgs, ended: &Ended, checkpoint: &Checkpoint) -> Exit {
    let is_full = args.limit.is_some_and(|limit| checkpoint.pages_published() >= limit);
    if *ended == Ended::Stopped && !is_full {
        info!("stopped; run the same command to continue");
    }
    if checkpoint.unread_blocks > 0 {
        warn!(
            "{} blocks could not be read; they are listed under \"unread\" in {}",
            checkpoint.unread_blocks,
            checkpoint_path(args).display()
        );
    }
    exit_of(checkpoint)
}

fn exit_of(checkpoint: &Checkpoint) -> Exit {
    if checkpoint.unread_blocks > 0 { Exit::SomeFailed } else { Exit::Ok }
}

/// What came of it, over all runs.
fn tell(checkpoint: &Checkpoint, as_json: bool) -> Result<(), Exit> {
    let Checkpoint { batches, counts, unread_blocks, is_finished, .. } = checkpoint;
    let pages = checkpoint.pages_published();
    let text = if as_json {
        let told = json!({
            "batches": batches, "pages": pages, "blocks": counts.blocks, "bytes": counts.bytes,
            "lines": counts.lines, "filtered": counts.filtered, "errors": counts.errors,
            "unread_blocks": unread_blocks, "finished": is_finished,
        });
        format!("{told}\n")
    } else {
        let mut text = format!(
            "{batches} batches, {pages} pages\nout of {} lines in {} blocks\n",
            counts.lines, counts.blocks
        );
        for (name, count) in &counts.filtered {
            text.push_str(&format!("{count} left out by {name}\n"));
        }
        for (kind, count) in &counts.errors {
            text.push_str(&format!("{count} skipped: {kind}\n"));
        }
        text
    };
    print(text.as_bytes()).map(|_| ())
}
