//! The .deb: installed into a clean root, used, upgraded, removed and purged.

use std::path::{Path, PathBuf};
use std::process::Command;

use fetchwell_testkit::skip::skipped;

/// `FETCHWELL_TEST_DEB` names a package to check instead of one made of the program under test.
#[test]
fn the_package_installs_runs_upgrades_and_leaves_nothing_when_purged() {
    let has_dpkg = Command::new("dpkg-deb").arg("--version").output().is_ok();
    if !has_dpkg {
        skipped("there is no dpkg-deb here, so no package is made");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let deb =
        std::env::var_os("FETCHWELL_TEST_DEB").map_or_else(|| make(folder.path()), PathBuf::from);
    let report = run(Command::new(script("test-package")).arg(deb));
    report.lines().filter_map(|line| line.strip_prefix("SKIPPED: ")).for_each(skipped);
}

/// Makes packages of the program under test, and returns the .deb.
fn make(folder: &Path) -> PathBuf {
    let mut package = Command::new(script("package"));
    package.args(["--fast", "--only", "program", "--program", env!("CARGO_BIN_EXE_fetchwell")]);
    package.arg("--output").arg(folder);
    let made = run(&mut package);
    let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    for file in made.lines().map(Path::new) {
        assert!(file.exists(), "{made}");
        assert!(sums.contains(file.file_name().unwrap().to_str().unwrap()), "{sums}");
    }
    made.lines().find(|file| file.ends_with(".deb")).unwrap().into()
}

#[test]
fn the_workflows_call_scripts_that_are_there() {
    for (workflow, called) in [
        ("test.yml", vec![".ci/run"]),
        ("release.yml", vec!["scripts/test", "scripts/package", "scripts/test-package"]),
    ] {
        let path = top().join(".github/workflows").join(workflow);
        let text = std::fs::read_to_string(path).unwrap();
        serde_saphyr::from_str::<serde_json::Value>(&text).unwrap();
        for file in called {
            assert!(text.contains(&format!("- run: {file}")), "{workflow} does not call {file}");
            assert!(top().join(file).exists(), "there is no {file}");
        }
    }
}

pub(super) fn run(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}:\n{stdout}{stderr}");
    stdout
}

pub(super) fn script(name: &str) -> PathBuf {
    top().join("scripts").join(name)
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
