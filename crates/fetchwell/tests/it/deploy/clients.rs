//! The packages of the clients, installed as people install them.

use std::path::{Path, PathBuf};
use std::process::Command;

use fetchwell_testkit::node::node;
use fetchwell_testkit::python::python;

use super::package::{run, script};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints the version of the package, and where it is.
const IMPORT_IN_PYTHON: &str = "import fetchwell_client as it; print(it.__version__, it.__file__)";
const IMPORT_IN_NODE: &str =
    "import { Fetchwell, VERSION } from 'fetchwell-client'; console.log(VERSION, Fetchwell.name)";

/// Makes the packages, whose checksums are listed.
fn make(folder: &Path) -> Vec<PathBuf> {
    let mut package = Command::new(script("package"));
    let made = run(package.args(["--only", "clients", "--output"]).arg(folder));
    run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(folder));
    let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    let made: Vec<PathBuf> = made.lines().map(PathBuf::from).collect();
    let names: Vec<&str> = made.iter().map(|file| name(file)).collect();
    let listed: Vec<&str> =
        sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(names, listed);
    made
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

#[test]
fn the_packages_of_the_clients_can_be_installed_and_are_the_same_each_time() {
    let Some(python) = python() else { return };
    let Some(node) = node() else { return };
    let folder = tempfile::tempdir().unwrap();
    let made = make(folder.path());
    let wheel = folder.path().join(format!("fetchwell_client-{VERSION}-py3-none-any.whl"));
    let package = folder.path().join(format!("fetchwell-client-{VERSION}.tgz"));
    assert_eq!(made, [wheel.clone(), package.clone()]);

    let site = folder.path().join("site");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]);
    run(pip.arg(&site).arg(&wheel));
    let mut import = Command::new(&python);
    let said = run(import.args(["-c", IMPORT_IN_PYTHON]).env("PYTHONPATH", &site));
    assert!(said.starts_with(&format!("{VERSION} {}", site.display())), "{said}");
    assert!(site.join("fetchwell_client/py.typed").exists());

    let module = folder.path().join("node_modules/fetchwell-client");
    std::fs::create_dir_all(&module).unwrap();
    let mut tar = Command::new("tar");
    run(tar
        .args(["--extract", "--strip-components=1", "--file"])
        .arg(&package)
        .current_dir(&module));
    let mut import = Command::new(&node.binary);
    import.args(["--input-type=module", "--eval", IMPORT_IN_NODE]).current_dir(folder.path());
    assert_eq!(run(&mut import).trim_end(), format!("{VERSION} Fetchwell"));
    for file in
        ["dist/index.d.ts", "dist/openapi.d.ts", "README.md", "LICENSE-MIT", "LICENSE-APACHE"]
    {
        assert!(module.join(file).exists(), "{file}");
    }
    assert!(!module.join("src").exists() && !module.join("tests").exists());

    let again = tempfile::tempdir().unwrap();
    for (one, other) in made.iter().zip(make(again.path())) {
        assert!(std::fs::read(one).unwrap() == std::fs::read(&other).unwrap(), "{}", name(&other));
    }
}
