//! The OpenAPI document with third-party tools: a validator, a client generator, and a check that a running service
//! follows what the document says about webhooks and streams.
//!
//! These tools are Python packages, so this needs `FETCHWELL_TEST_PYTHON`; without it these tests say that they skip.

use std::path::Path;

use fetchwell_testkit::plain_http::ask;
use fetchwell_testkit::python::python;

use crate::serve_python::{client, run_with, service_on, web};

/// A script beside this file.
fn script(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/serve_openapi");
    folder.join(name).display().to_string()
}

/// Runs a script on the document of a running service.
async fn run(name: &str) -> Option<String> {
    let python = python()?;
    let origin = web();
    let service = service_on("sqlite:fetchwell.db", &origin).await;
    let document = ask(service.address, &service.token, "GET /openapi.json", &[], "").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("openapi.json");
    std::fs::write(&path, document.unwrap().body).unwrap();
    let path = path.display().to_string();
    let modules = [client().join("src"), client().join("tests")];
    Some(run_with(&python, &service, &modules, &[&script(name), &path], "").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_valid_and_webhooks_and_events_are_as_it_says() {
    let Some(said) = run("described.py").await else { return };
    assert_eq!(said.trim_end(), "all held");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_client_works_beside_ours() {
    let Some(said) = run("generated.py").await else { return };
    assert_eq!(said.lines().last(), Some("all held"), "{said}");
}
