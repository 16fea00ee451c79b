//! The file of an embedded store.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fetchwell_stores::sqlite::{self, SqliteFacts};

use super::unreachable;
use crate::commands::doctor::finding::Finding;

/// Reading or writing by anybody but the owner.
const OTHERS: u32 = 0o066;

pub(super) fn examine(check: &str, path: &Path) -> Vec<Finding> {
    let path_name = path.display();
    if !path.exists() {
        let what = format!("sqlite:{path_name} is not there yet: it is made when it is first used");
        return vec![Finding::ok(check, what)];
    }
    let mut findings = Vec::from_iter(judge_modes(check, &modes(path)));
    let found = match sqlite::examine(path) {
        Ok(facts) => judge(check, &path_name.to_string(), &facts),
        Err(fault) => unreachable(check, &fault),
    };
    findings.insert(0, found);
    findings
}

/// The file and those that belong to it, each with its mode.
fn modes(path: &Path) -> Vec<(String, u32)> {
    let mode = |ending: &str| {
        let name = format!("{}{ending}", path.display());
        let mode = std::fs::metadata(&name).ok()?.permissions().mode();
        Some((name, mode))
    };
    ["", "-wal", "-shm"].into_iter().filter_map(mode).collect()
}

fn judge_modes(check: &str, modes: &[(String, u32)]) -> Option<Finding> {
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
        "they can read what was fetched and for whom, and change what is queued",
        format!("chmod 600 {}; new stores are created so", open.join(" ")),
    ))
}

fn judge(check: &str, path: &str, facts: &SqliteFacts) -> Finding {
    if let Some(first) = facts.damage.first() {
        return Finding::fail(
            check,
            format!("{path} is damaged: {first}"),
            "what stands on the damaged pages can't be read",
            format!("stop all processes on it, then: sqlite3 {path} .recover | sqlite3 mended.db"),
        );
    }
    if let Some(newer) = &facts.newer {
        return Finding::fail(
            check,
            format!("{path}: {newer}"),
            "every command on it ends with exit code 2",
            "use the newer fetchwell, or restore the backup from before the upgrade",
        );
    }
    if !facts.journal_mode.eq_ignore_ascii_case("wal") {
        return Finding::warn(
            check,
            format!("{path} is sound, and its journal mode is {}", facts.journal_mode),
            "those who read and those who write hold each other up",
            "open it once with this program, which sets it to wal; file systems over a network can't do that",
        );
    }
    Finding::ok(check, format!("{path} is sound (SQLite {}, wal)", facts.version))
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
