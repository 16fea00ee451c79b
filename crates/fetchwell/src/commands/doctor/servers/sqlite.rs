//! Checks the file of an embedded store.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fetchwell_stores::sqlite::SqliteFacts;

use crate::commands::doctor::finding::Finding;

/// The mode bits that let others read or write.
const OTHERS: u32 = 0o066;

/// The file and its WAL and shared-memory files, each with its mode.
pub(super) fn modes(path: &Path) -> Vec<(String, u32)> {
    let mode = |ending: &str| {
        let name = format!("{}{ending}", path.display());
        let mode = std::fs::metadata(&name).ok()?.permissions().mode();
        Some((name, mode))
    };
    ["", "-wal", "-shm"].into_iter().filter_map(mode).collect()
}

pub(super) fn judge_modes(check: &str, modes: &[(String, u32)]) -> Option<Finding> {
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

pub(super) fn judge(check: &str, path: &str, facts: &SqliteFacts) -> Finding {
    if let Some(first) = facts.damage.first() {
        return Finding::fail(
            check,
            format!("{path} is damaged: {first}"),
            "data on the damaged pages cannot be read",
            format!(
                "stop all processes that use it, then run: sqlite3 {path} .recover | sqlite3 \
                 recovered.db"
            ),
        );
    }
    if let Some(newer) = &facts.newer {
        return Finding::fail(
            check,
            format!("{path}: {newer}"),
            "every command that uses it exits with code 2",
            "use the newer fetchwell, or restore a backup from before the upgrade",
        );
    }
    if !facts.journal_mode.eq_ignore_ascii_case("wal") {
        return Finding::warn(
            check,
            format!("{path} is intact, but its journal mode is {}", facts.journal_mode),
            "readers and writers block each other",
            "open it once with fetchwell, which sets the mode to wal; network file systems do not \
             support that",
        );
    }
    Finding::ok(check, format!("{path} is intact (SQLite {}, wal)", facts.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_can_read_are_named_with_what_to_do() {
        let modes = |main, wal| [("a.db".to_owned(), main), ("a.db-wal".to_owned(), wal)];
        assert_eq!(judge_modes("store", &modes(0o100_600, 0o100_600)), None);
        for (main, wal, named) in [
            (0o100_644, 0o100_600, "chmod 600 a.db;"),
            (0o100_600, 0o100_640, "chmod 600 a.db-wal;"),
            (0o100_666, 0o100_604, "chmod 600 a.db a.db-wal;"),
        ] {
            let finding = judge_modes("store", &modes(main, wal)).unwrap();
            assert!(finding.mend.starts_with(named), "{finding:?}");
        }
    }
}
