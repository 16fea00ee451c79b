//! The progress of batchers, read from their checkpoints without taking the lock.

use std::path::Path;

use fetchwell_engine::ports::crawl_progress::BatcherStanding;

use super::checkpoint::Checkpoint;

/// The number of checkpoints read per folder.
const MOST_CHECKPOINTS: usize = 20;

/// The batchers with checkpoints in a folder.
pub(crate) fn batchers(folder: &Path) -> Vec<BatcherStanding> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "checkpoint"))
        .collect();
    paths.sort();
    paths.iter().take(MOST_CHECKPOINTS).filter_map(|path| batcher(path)).collect()
}

fn batcher(path: &Path) -> Option<BatcherStanding> {
    let checkpoint: Checkpoint = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let index = std::fs::metadata(path.with_extension("")).ok().map(|file| file.len());
    let done = checkpoint.position.index_offset as f64;
    let share = index.filter(|bytes| *bytes > 0).map(|bytes| (done / bytes as f64).min(1.0));
    Some(BatcherStanding {
        name: path.file_name()?.to_string_lossy().into_owned(),
        share: if checkpoint.is_finished { Some(1.0) } else { share },
        is_finished: checkpoint.is_finished,
        batches: checkpoint.batches,
        pages: checkpoint.pages_published(),
        lines: checkpoint.counts.lines,
        bytes: checkpoint.counts.bytes,
        unread_blocks: checkpoint.unread_blocks,
        errors: checkpoint.counts.errors,
    })
}

#[cfg(test)]
mod tests {
    use super::super::checkpoint::{CheckpointFile, Position};
    use super::*;

    #[test]
    fn a_batcher_is_as_far_as_its_checkpoint_says() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cluster.idx"), [b'x'; 200]).unwrap();
        std::fs::write(folder.path().join("other.checkpoint"), "no checkpoint").unwrap();
        let (file, _) =
            CheckpointFile::open(&folder.path().join("cluster.idx.checkpoint")).unwrap();
        let position = Position::at(50);
        file.write(&Checkpoint { position, batches: 7, ..Checkpoint::default() }).unwrap();
        let found = batchers(folder.path());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].share, found[0].batches), (Some(0.25), 7));
        assert!(batchers(&folder.path().join("nowhere")).is_empty());
    }
}
