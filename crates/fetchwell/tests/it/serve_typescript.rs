//! The TypeScript client: its types against the OpenAPI document, and the client in Node against a real service on a
//! simulated web.
//!
//! It needs `FETCHWELL_TEST_NODE`, as `scripts/setup --test` makes. Without it these tests say that they skip.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fetchwell_testkit::conformance::servers::unused_postgres;
use fetchwell_testkit::crash::Service;
use fetchwell_testkit::node::{Node, node};
use fetchwell_testkit::plain_http::ask;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::serve_python::{examples, run_to_its_end, service_on, web};

/// If it is set, the types are written anew; `scripts/update-client-types` sets it.
const UPDATE: &str = "FETCHWELL_UPDATE_CLIENT_TYPES";

const HEAD: &str =
    "// Types of the OpenAPI document. To write them anew: scripts/update-client-types\n\n";

fn client() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/typescript")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_types_are_those_of_the_document() {
    let Some(node) = node() else { return };
    let origin = web();
    let service = service_on("sqlite:fetchwell.db", &origin).await;
    let document = ask(service.address, &service.token, "GET /openapi.json", &[], "").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("openapi.json");
    std::fs::write(&path, document.unwrap().body).unwrap();
    let types = folder.path().join("openapi.ts");
    let mut generator = Command::new(&node.binary);
    generator.arg(node.modules.join("openapi-typescript/bin/cli.js"));
    generator.arg(&path).arg("--output").arg(&types);
    run_to_its_end(generator, &service, "").await;
    let types = format!("{HEAD}{}", std::fs::read_to_string(&types).unwrap());
    let kept = client().join("src/openapi.ts");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&kept, &types).unwrap();
    }
    let difference = "clients/typescript/src/openapi.ts is not what the OpenAPI document says; run \
                      scripts/update-client-types, and adapt the client if it no longer compiles";
    assert!(std::fs::read_to_string(&kept).unwrap() == types, "{difference}");
}

/// A folder in which the client is installed, with its tests and examples beside it.
async fn installed(node: &Node, service: &Service) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("node_modules/fetchwell-client");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::copy(client().join("package.json"), package.join("package.json")).unwrap();
    std::fs::write(folder.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    let mut compiler = Command::new(&node.binary);
    compiler.arg(node.modules.join("typescript/bin/tsc")).arg("--project").arg(client());
    compiler.arg("--outDir").arg(package.join("dist"));
    run_to_its_end(compiler, service, "").await;
    for place in ["tests", "examples"] {
        let target = folder.path().join(place);
        std::fs::create_dir(&target).unwrap();
        for file in std::fs::read_dir(client().join(place)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), target.join(file.file_name())).unwrap();
        }
    }
    folder
}

/// Runs a program of that folder to its good end, and returns what it wrote.
async fn run(
    node: &Node,
    folder: &TempDir,
    service: &Service,
    arguments: &[&str],
    input: &str,
) -> String {
    let mut command = Command::new(&node.binary);
    command.arg("--disable-warning=ExperimentalWarning").args(arguments).current_dir(folder.path());
    run_to_its_end(command, service, input).await
}

async fn the_client_is_right_on(store: &str) {
    let Some(node) = node() else { return };
    let origin = web();
    let service = service_on(store, &origin).await;
    let folder = installed(&node, &service).await;
    let said = run(&node, &folder, &service, &["tests/end_to_end.ts"], "").await;
    assert_eq!(said.trim_end(), "all held");

    let urls: Vec<String> = (0..25).map(|n| format!("http://pages.test/list/{n}")).collect();
    let list = format!("{}\n\nhttp://gone.test/x\n", urls.join("\n"));
    let rows = run(&node, &folder, &service, &["examples/fetch_list.ts", "admhr"], &list).await;
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let of = |status: &str| {
        let rows = rows.iter().filter(|row| row["status"] == status);
        rows.map(|row| row["url"].as_str().unwrap()).collect::<HashSet<_>>()
    };
    assert_eq!(of("success"), urls.iter().map(String::as_str).collect());
    assert_eq!(of("http_error"), HashSet::from(["http://gone.test/x"]));
    assert_eq!(rows.len(), 26);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_the_client_and_its_example_are_right() {
    the_client_is_right_on("sqlite:fetchwell.db").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_the_client_and_its_example_are_right() {
    let Some(store) = unused_postgres().await else { return };
    the_client_is_right_on(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_readme_runs() {
    let Some(node) = node() else { return };
    let origin = web();
    let service = service_on("sqlite:fetchwell.db", &origin).await;
    let folder = installed(&node, &service).await;
    let readme = std::fs::read_to_string(client().join("README.md")).unwrap();
    let examples = examples(&readme, "ts", &service);
    assert!(examples.len() >= 5, "{}", examples.len());
    for (number, example) in examples.iter().enumerate() {
        let name = format!("example{number}.ts");
        std::fs::write(folder.path().join(&name), example).unwrap();
        run(&node, &folder, &service, &[&name], "").await;
    }
}
