//! Lets tests that would disturb each other take turns, even in different processes.

use std::fs::File;
use std::io;
use std::path::Path;

/// The turn of one test. Dropping it lets the next one run.
#[derive(Debug)]
pub struct Turn {
    _locked: File,
}

/// Waits until no other timing-sensitive test is running.
pub async fn alone() -> Turn {
    turn("timed").await
}

/// Waits until no other test of this group is running.
///
/// It is a file lock, because `cargo nextest` runs each test in its own process. There is one file per machine, because
/// two checkouts that are tested at the same time would disturb each other, too.
///
/// # Panics
///
/// If the lock file cannot be opened or locked.
pub async fn turn(group: &str) -> Turn {
    let path = std::env::temp_dir().join(format!("fetchwell-test-{group}.lock"));
    let locked = tokio::task::spawn_blocking(move || lock(&path)).await;
    let locked = locked.unwrap_or_else(|error| panic!("{error}"));
    Turn { _locked: locked.unwrap_or_else(|error| panic!("the lock of {group}: {error}")) }
}

fn lock(path: &Path) -> io::Result<File> {
    // Read access is enough for a lock, and works on a file that another user created.
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            File::options().create(true).append(true).read(true).open(path)?
        }
        opened => opened?,
    };
    file.lock()?;
    Ok(file)
}
