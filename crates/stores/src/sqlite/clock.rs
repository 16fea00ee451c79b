//! The clock of a store: all processes on the file use it, and it never jumps.
//!
//! The processes run on one machine, so they share its clock since boot. The first of them to open the file after a
//! boot records the boot time by the wall clock in the file. After that the wall clock is not read again: even if it is
//! set by hours, no slot moves.

use std::fs;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use rusqlite::Connection;

use super::meta;

/// Identifies the current boot of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The clock of the store.
pub async fn clock(db: &Db) -> Result<Clock, StoreError> {
    // Without an id of this boot, a record of another boot could be mistaken for it.
    let Ok(boot_id) = fs::read_to_string(BOOT_ID) else {
        return Ok(Clock::since_boot(Clock::booted_at()));
    };
    let booted_at = db.write(move |tx| anchor(tx, boot_id.trim(), Clock::booted_at())).await?;
    Ok(Clock::since_boot(booted_at))
}

/// Runs `work` in a transaction of the store. It gets the time at which it runs.
pub(super) async fn write_at<T: Send + 'static>(
    db: &Db,
    clock: &Clock,
    work: impl FnOnce(&Connection, Time) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let clock = clock.clone();
    db.write(move |tx| work(tx, clock.now())).await
}

/// The boot time as recorded by the first process that opened the file after the boot.
fn anchor(tx: &Connection, boot_id: &str, booted_at: Time) -> rusqlite::Result<Time> {
    let of_this_run = meta::value(tx, "clock")?.as_deref().and_then(|kept| {
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
