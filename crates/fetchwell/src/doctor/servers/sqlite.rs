//! The file of an embedded store.

use std::path::Path;

use fetchwell_engine::adapters::sqlite::{self, SqliteFacts};

use super::unreachable;
use crate::doctor::finding::Finding;

pub(super) fn examine(check: &str, path: &Path) -> Finding {
    let path_name = path.display();
    if !path.exists() {
        let what = format!("sqlite:{path_name} is not there yet: it is made when it is first used");
        return Finding::ok(check, what);
    }
    match sqlite::examine(path) {
        Ok(facts) => judge(check, &path_name.to_string(), &facts),
        Err(fault) => unreachable(check, &fault),
    }
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
