//! Checks who can read the file of an embedded store.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fetchwell_stores::finding::Finding;

/// The mode bits that let others read or write.
const OTHERS: u32 = 0o066;

/// The file and its WAL and shared-memory files, each with its mode.
pub(super) fn read(path: &Path) -> Vec<(String, u32)> {
    let mode = |ending: &str| {
        let name = format!("{}{ending}", path.display());
        let mode = std::fs::metadata(&name).ok()?.permissions().mode();
        Some((name, mode))
    };
    ["", "-wal", "-shm"].into_iter().filter_map(mode).collect()
}

pub(super) fn judge(check: &str, modes: &[(String, u32)]) -> Option<Finding> {
    let open: Vec<&str> = modes
        .iter()
        .filter(|(_, mode)| mode & OTHERS != 0)
        .map(|(name, _)| name.as_str())
        .collect();
    if open.is_empty() {
        return None;
    }
    Some(Finding::warn(
        format!("{check}: file mode"),
        format!("other users of this machine can read or write {}", open.join(", ")),
        "they can read fetched data and its callers, and change the queue",
        format!("chmod 600 {}; new stores are created with this mode", open.join(" ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_can_read_are_named_with_what_to_do() {
        let modes = |main, wal| [("a.db".to_owned(), main), ("a.db-wal".to_owned(), wal)];
        assert_eq!(judge("store", &modes(0o100_600, 0o100_600)), None);
        for (main, wal, named) in [
            (0o100_644, 0o100_600, "chmod 600 a.db;"),
            (0o100_600, 0o100_640, "chmod 600 a.db-wal;"),
            (0o100_666, 0o100_604, "chmod 600 a.db a.db-wal;"),
        ] {
            let finding = judge("store", &modes(main, wal)).unwrap();
            assert!(finding.mend.starts_with(named), "{finding:?}");
        }
    }
}
