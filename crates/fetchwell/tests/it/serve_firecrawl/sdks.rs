//! Firecrawl's own clients, unmodified, with nothing changed but the URL and the key.
//!
//! They need `FETCHWELL_TEST_PYTHON` and `FETCHWELL_TEST_NODE`; without them these tests say that they skip.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::node::node;
use fetchwell_testkit::python::python;
use tokio::process::Command;
use tokio::time::timeout;

use super::Place;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/serve_firecrawl").join(name)
}

/// Runs a script of a client's, which says at its end that all held.
async fn all_holds(program: &Path, name: &str, modules: Option<&Path>) {
    let place = Place::start().await;
    let mut command = Command::new(program);
    command
        .arg(script(name))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FETCHWELL_URL", format!("http://{}", place.service.address))
        .env("FETCHWELL_TOKEN", &place.service.token)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(modules) = modules {
        command.env("FETCHWELL_NODE_MODULES", modules);
    }
    let child = command.spawn().unwrap();
    let ended = timeout(DEADLINE, child.wait_with_output()).await.expect("an end in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let complained = String::from_utf8_lossy(&ended.stderr);
    let is_good = ended.status.success() && said.trim_end().ends_with("all held");
    assert!(is_good, "{name}:\n{said}\n{complained}\nthe service:\n{}", place.service.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_works() {
    let Some(python) = python() else { return };
    all_holds(&python, "client.py", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_of_version_1_works() {
    let Some(node) = node() else { return };
    all_holds(&node.binary, "client-v1.mjs", Some(&node.modules)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_of_version_2_works() {
    let Some(node) = node() else { return };
    all_holds(&node.binary, "client-v4.mjs", Some(&node.modules)).await;
}
