//! The clock of a store: all processes on the file go by it, and it never jumps.
//!
//! The processes are on one machine, so they share its clock since boot. What the wall clock showed when
//! the first of them opened the file since then is kept in the file. After that nobody looks at the wall
//! clock again: it may be set by hours, in one process or in all, and no slot moves.

use std::fs;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use rusqlite::{Connection, OptionalExtension};

/// Names this run of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The clock of the store.
pub async fn clock(db: &Db) -> Result<Clock, StoreError> {
    // Without a name for this run of the machine, one of another run might be taken for it.
    let Ok(boot_id) = fs::read_to_string(BOOT_ID) else {
        return Ok(Clock::since_boot(Clock::booted_at()));
    };
    let booted_at = db.write(move |tx| anchor(tx, boot_id.trim(), Clock::booted_at())).await?;
    Ok(Clock::since_boot(booted_at))
}

/// When the machine was started, as the first process said that opened the file since then.
fn anchor(tx: &Connection, boot_id: &str, booted_at: Time) -> rusqlite::Result<Time> {
    let kept: Option<String> = tx
        .query_row("SELECT value FROM meta WHERE key = 'clock'", [], |row| row.get(0))
        .optional()?;
    let of_this_run = kept.as_deref().and_then(|kept| {
        let (run, micros) = kept.split_once(' ')?;
        (run == boot_id).then(|| micros.parse().ok()).flatten()
    });
    if let Some(micros) = of_this_run {
        return Ok(Time::from_micros(micros));
    }
    let value = format!("{boot_id} {}", booted_at.as_micros());
    tx.execute(
        "INSERT INTO meta VALUES ('clock', ?1) ON CONFLICT (key) DO UPDATE SET value = ?1",
        [value],
    )?;
    Ok(booted_at)
}

#[cfg(test)]
mod tests {
    use fetchwell_sqlite::db::Durability;

    use super::super::open;
    use super::*;

    #[tokio::test]
    async fn the_first_process_since_boot_sets_the_clock_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder.path().join("store.db"), Durability::Process).unwrap();
        let set = async |boot_id: &'static str, booted_at_s| {
            let booted_at = Time::from_secs(booted_at_s);
            db.write(move |tx| anchor(tx, boot_id, booted_at)).await.unwrap()
        };
        assert_eq!(set("one", 1_000).await, Time::from_secs(1_000));
        assert_eq!(set("one", 4_600).await, Time::from_secs(1_000));
        assert_eq!(set("two", 9_000).await, Time::from_secs(9_000));
        assert_eq!(set("two", 1_000).await, Time::from_secs(9_000));
    }
}
