//! The Python client of the protocol, on standard streams and over HTTP.
//!
//! It needs `FETCHWELL_TEST_PYTHON`, the Python of an environment that has `mcp`, such as `scripts/setup --test` makes.

use std::path::Path;
use std::process::Stdio;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::python::python;
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

fn web() -> TestWeb {
    let page = "<title>A page</title><article><p>The quick brown fox jumps over the lazy dog, and then \
                it does so again, for a page needs some words.</p></article>";
    TestWeb::start([SiteScript::new("pages.test")
        .text("/one", "text/html", page)
        .status("/gone", 404)])
}

async fn run(python: &Path, program: &Program, how: &[&str], log: impl Fn() -> String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/client.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .args(how)
        .current_dir(program.folder())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = timeout(DEADLINE, command.output()).await.expect("an end in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned()
        + &String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("all held"), "{said}\n{}", log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_reads_pages_on_standard_streams() {
    let Some(python) = python() else { return };
    let origin = web();
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"));
    let arguments = [&["mcp".to_owned()][..], &origin.flags()[..]].concat();
    let home = json!({"HOME": program.folder()});
    let server = json!({
        "command": env!("CARGO_BIN_EXE_fetchwell"), "args": arguments, "env": home,
    });
    run(&python, &program, &["stdio", &server.to_string()], String::new).await;
    assert!(program.file(".local/share/fetchwell/mcp.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_reads_pages_over_http() {
    let Some(python) = python() else { return };
    let origin = web();
    let service = Service::start(Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin)).await;
    let url = format!("http://{}/mcp", service.address);
    let how = ["http", &*url, &*service.token];
    run(&python, service.program(), &how, || service.log()).await;
}
