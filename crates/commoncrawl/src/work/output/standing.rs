//! What workers have written to a folder, read from its manifest without a lock.

use std::path::Path;

use fetchwell_engine::ports::crawl_progress::FolderStanding;

use super::manifest::open_to_read;

/// The totals of a folder; `None` if no worker has written to it.
pub(crate) fn folder(folder: &Path) -> Option<FolderStanding> {
    let sums =
        "SELECT coalesce(sum(documents), 0), coalesce(sum(length) FILTER (WHERE documents > 0), 0),
                       count(*) FILTER (WHERE is_sealed = 1 AND documents > 0),
                       count(*) FILTER (WHERE is_sealed = 0),
                       coalesce(sum(length) FILTER (WHERE documents = 0 AND is_sealed = 1), 0)
                FROM segment";
    let standing = open_to_read(folder).ok()?.query_row(sums, [], |row| {
        Ok(FolderStanding {
            documents: row.get(0)?,
            bytes: row.get(1)?,
            sealed_segments: row.get(2)?,
            open_segments: row.get(3)?,
            errors_bytes: row.get(4)?,
        })
    });
    standing.ok()
}
