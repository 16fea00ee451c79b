//! Identifies this process in the list of instances.

/// `hostname/process id`.
pub(crate) fn this_process() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = if machine.trim().is_empty() { "unnamed" } else { machine.trim() };
    format!("{machine}/{}", std::process::id())
}
