//! A network namespace for one test, in which every address of the internet is on this machine.
//!
//! There, a connection to any address can be observed, and none leaves the machine.

use std::process::{Command, Output};

use crate::DEADLINE;
use crate::skip::skipped;

/// Set for the test inside the namespace.
const INSIDE: &str = "FETCHWELL_IN_NAMESPACE";

/// Set by users who cannot create namespaces.
const SKIP: &str = "FETCHWELL_SKIP_NAMESPACES";

/// Differs from the exit codes of a failed test.
const NO_NETWORK: i32 = 97;

/// Makes every address local, sets our name server, and adds test entries to the hosts file.
const SET_UP: &str = r#"
    fail() { echo "namespace: $1" >&2; exit 97; }
    ip link set lo up || fail "the loopback interface can't be set up"
    ip route add local default dev lo || fail "IPv4 addresses can't be made local"
    ip -6 route add local default dev lo || fail "IPv6 addresses can't be made local"
    mount -t tmpfs tmpfs /mnt || fail "there is no file system for it"
    printf 'nameserver 127.0.0.1\nsearch search.test\noptions ndots:5\n' >/mnt/resolv.conf
    printf '127.0.0.1 localhost\n93.184.216.34 pinned.test\n10.0.0.1 inside.test\n' >/mnt/hosts
    for file in resolv.conf hosts; do
        mount --bind "/mnt/$file" "/etc/$file" || fail "/etc/$file can't be replaced"
    done
    exec "$@"
"#;

/// Whether the calling test, with this full name, is inside the namespace. If not, the test is run inside, and its
/// result is checked.
///
/// # Panics
///
/// If the test fails inside, or if no namespace can be created. `FETCHWELL_SKIP_NAMESPACES=1` skips the test and
/// reports that on standard error.
pub fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if std::env::var_os(SKIP).is_some() {
        skipped(&format!("{test} needs a network namespace, and {SKIP} is set"));
        return false;
    }
    judge(test, run_inside(test));
    false
}

fn run_inside(test: &str) -> std::io::Result<Output> {
    Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "--"])
        .args(["timeout", &DEADLINE.as_secs().to_string(), "sh", "-c", SET_UP, "sh"])
        .arg(std::env::current_exe()?)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
}

fn judge(test: &str, ended: std::io::Result<Output>) {
    let mend = format!(
        "it needs Linux, unshare and ip (scripts/setup --packages util-linux iproute2), and \
         permission to create namespaces; {SKIP}=1 skips it"
    );
    let output = match ended {
        Ok(output) => output,
        Err(error) => panic!("{test} can't run in a namespace: unshare: {error}; {mend}"),
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // `running 1 test` shows that the namespace was created and that the name is right.
    let ran = said.contains("running 1 test");
    if !ran || output.status.code() == Some(NO_NETWORK) {
        panic!("{test} did not run in a namespace ({}): {}; {mend}", output.status, told.trim());
    }
    assert!(output.status.success(), "{test}, in a namespace: {}\n{said}\n{told}", output.status);
}
