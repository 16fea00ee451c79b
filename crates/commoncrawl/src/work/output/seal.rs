//! Seals a segment: gives it its final format and its final name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::errors::io_fault;
use tracing::warn;

use super::columns;
use super::manifest::{confirmed_bytes, note_sealed};
use super::segment::{Segment, SegmentFormat, sync_folder};
use super::target::OutputTarget;

/// The suffix of a converted file until it is renamed. After a crash, the file is made again.
const UNFINISHED: &str = ".unfinished";

/// Seals a segment of ours. If this is interrupted, the next process that opens the folder does it again.
pub(super) async fn seal(
    db: &Db,
    target: &OutputTarget,
    segment: Arc<Segment>,
) -> Result<(), StoreError> {
    let name = segment.name.clone();
    let length = db.write(move |tx| confirmed_bytes(tx, &name)).await?;
    let folder = target.folder.clone();
    let sealed = segment.clone();
    let shape = {
        let folder = folder.clone();
        let segment = segment.clone();
        move || shaped(&folder, &segment, length)
    };
    let shaped = tokio::task::spawn_blocking(shape).await;
    let what = || format!("{} could not be closed", segment.name);
    shaped
        .map_err(|error| StoreError::bug(what()).with_source(error))?
        .map_err(|error| StoreError::transient(what()).with_source(error))?;
    let part = segment.part(&folder);
    db.write(move |tx| {
        renamed(&folder, &sealed).map_err(|error| io_fault(&folder.join(&sealed.name), error))?;
        note_sealed(tx, &sealed.name)
    })
    .await?;
    // Only now: the file is needed until the final name is recorded.
    if let Err(error) = remove(&part) {
        warn!("could not remove {}, which is no longer needed: {error}", part.display());
    }
    Ok(())
}

/// Truncates the file to its confirmed length, and converts it to its final format.
fn shaped(folder: &Path, segment: &Segment, length: u64) -> io::Result<()> {
    let file = segment.file(folder)?;
    file.set_len(length)?;
    file.sync_all()?;
    if segment.format == SegmentFormat::Parquet {
        columns::write(&file, &unfinished(folder, segment))?;
    }
    Ok(())
}

fn renamed(folder: &Path, segment: &Segment) -> io::Result<()> {
    let name = folder.join(&segment.name);
    let from = match segment.format {
        SegmentFormat::JsonLines => segment.part(folder),
        SegmentFormat::Parquet => unfinished(folder, segment),
    };
    match fs::rename(from, &name) {
        // It was renamed before, but this could not be recorded.
        Err(error) if error.kind() == io::ErrorKind::NotFound && name.exists() => {}
        done => done?,
    }
    sync_folder(folder)
}

fn unfinished(folder: &Path, segment: &Segment) -> PathBuf {
    folder.join(format!("{}{UNFINISHED}", segment.name))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
