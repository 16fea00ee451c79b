//! The unit: systemd's own check, and how much it lets a fault do.

use super::{check, is_there, text};

#[test]
fn systemd_finds_no_fault_and_little_exposure() {
    let unit = text("systemd/fetchwell.service");
    for needed in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "LimitNOFILE="]
    {
        assert!(unit.contains(needed), "{needed}");
    }
    if !is_there("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The program need not be installed where this runs.
    let program = env!("CARGO_BIN_EXE_fetchwell");
    let here = unit.replace("/usr/local/bin/fetchwell --config", &format!("{program} --config"));
    std::fs::write(folder.path().join("fetchwell.service"), here).unwrap();
    check("systemd-analyze", &["verify", "./fetchwell.service"], folder.path());
    let most = ["security", "--offline=true", "--threshold=20", "./fetchwell.service"];
    check("systemd-analyze", &most, folder.path());
}
