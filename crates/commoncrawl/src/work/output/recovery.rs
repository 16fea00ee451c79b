//! Recovers segments that dead processes left behind.

use std::io;
use std::path::{Path, PathBuf};

use fetchwell_engine::ports::error::StoreError;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::errors::{io_fault, own_error};
use rusqlite::Connection;

use super::manifest::{note_sealed, open_segments};
use super::segment::{PART, Segment};

/// Takes over the segments of dead processes. No process can start a segment meanwhile: that takes a transaction, too.
pub(super) async fn left_behind(db: &Db, folder: &Path) -> Result<Vec<Segment>, StoreError> {
    let folder = folder.to_owned();
    db.write(move |tx| take_over_all(tx, &folder)).await
}

fn take_over_all(tx: &Connection, folder: &Path) -> rusqlite::Result<Vec<Segment>> {
    let names = open_segments(tx)?;
    remove_the_unknown(folder, &names).map_err(|error| io_fault(folder, error))?;
    let mut left = Vec::new();
    for name in names {
        let segment = Segment::named(name.clone());
        let part = segment.part(folder);
        if part.exists() {
            if segment.take_over(folder).map_err(|error| io_fault(&part, error))? {
                left.push(segment);
            }
        } else if folder.join(&name).exists() {
            note_sealed(tx, &name)?; // It was renamed, but the crash came before this was recorded.
        } else {
            return Err(own_error(StoreError::transient(format!(
                "{name} is missing in {}, although documents were written to it: put it back, or \
                 start with an empty folder",
                folder.display()
            ))));
        }
    }
    Ok(left)
}

/// A file without a committed write contains no documents.
fn remove_the_unknown(folder: &Path, known: &[String]) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = name.strip_suffix(PART) else { continue };
        let is_known = known.iter().any(|known| known == name);
        let segment = Segment::named(name.to_owned());
        if !is_known && name.starts_with("documents-") && segment.take_over(folder)? {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}
