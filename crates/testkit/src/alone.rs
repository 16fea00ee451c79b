//! Tests that measure time take turns, in whichever process they run.

use std::fs::File;
use std::io;

/// One file for the whole machine: two checkouts that test at the same time would disturb each other, too.
const LOCK_FILE: &str = "fetchwell-test-alone.lock";

/// The turn of one test. Dropping it gives way to the next.
#[derive(Debug)]
pub struct Turn {
    _locked: File,
}

/// Waits until no other test that measures is running.
///
/// A file lock, because `cargo nextest` runs each test in a process of its own.
///
/// # Panics
///
/// When the lock file cannot be opened or locked.
pub async fn alone() -> Turn {
    let locked = tokio::task::spawn_blocking(lock).await.unwrap_or_else(|error| panic!("{error}"));
    Turn { _locked: locked.unwrap_or_else(|error| panic!("{LOCK_FILE}: {error}")) }
}

fn lock() -> io::Result<File> {
    let path = std::env::temp_dir().join(LOCK_FILE);
    // Reading is enough for a lock, and works on a file that another user made.
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            File::options().create(true).append(true).read(true).open(&path)?
        }
        opened => opened?,
    };
    file.lock()?;
    Ok(file)
}
