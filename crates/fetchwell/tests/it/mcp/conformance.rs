//! The conformance suite of the protocol against `/mcp`.
//!
//! The scenarios that do not apply are in `expected-failures.yml`, each with its reason; one that passes although it is
//! listed fails the test.

use std::path::Path;
use std::process::Stdio;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Program, Service};
use fetchwell_testkit::node::node;
use tokio::process::Command;
use tokio::time::timeout;

use super::with_token::WithToken;

/// The scenarios that are about what the server has.
const APPLICABLE: [&str; 4] =
    ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"];

#[tokio::test(flavor = "multi_thread")]
async fn the_applicable_scenarios_pass_and_no_others_are_expected_to() {
    let Some(node) = node() else { return };
    let service = Service::start(Program::new(env!("CARGO_BIN_EXE_fetchwell"))).await;
    let front = WithToken::start(service.address, &service.token).await;
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/expected-failures.yml");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(&node.binary);
    command
        .arg(node.modules.join("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", &format!("http://{}/mcp", front.address)])
        .args(["--suite", "active", "--expected-failures"])
        .arg(&expected)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = timeout(DEADLINE, command.output()).await.expect("an end in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned()
        + &String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}\nthe service:\n{}", service.log());
    let expected = std::fs::read_to_string(expected).unwrap();
    for scenario in APPLICABLE {
        assert!(!expected.contains(&format!("- {scenario}\n")), "{scenario} must pass");
        assert!(said.contains(&format!("✓ {scenario}: ")), "{scenario}: {said}");
    }
}
