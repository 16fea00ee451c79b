//! What stands in `deploy/`: that it is sound by the rules of those who read it, and agrees with the program.

mod clients;
mod compose;
mod image;
mod kubernetes;
mod metrics;
mod package;
mod prometheus;
mod systemd;

use std::path::{Path, PathBuf};

use fetchwell_testkit::skip::skipped;
use serde_json::Value;

/// The folder.
fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().unwrap()
}

fn text(path: &str) -> String {
    let path = deploy().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A YAML document.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Whether a program is there to check with; if not, that is said aloud.
fn is_there(tool: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).exists()));
    if !found {
        skipped(&format!("there is no {tool} here; scripts/setup --test installs what it can"));
    }
    found
}

/// Runs a tool in a folder; what it finds fails the test.
fn check(tool: &str, arguments: &[&str], folder: &Path) {
    let ended = std::process::Command::new(tool).args(arguments).current_dir(folder).output();
    let ended = ended.unwrap_or_else(|error| panic!("{tool}: {error}"));
    let said = String::from_utf8_lossy(&ended.stdout);
    let complained = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{tool} {arguments:?}:\n{said}{complained}");
}
