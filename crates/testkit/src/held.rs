//! The tasks, open files and memory of this process, so that a test can detect leaks.

use std::fs;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::DEADLINE;
use crate::replay::is_soak;

/// How long an idle machine may take to release tasks and descriptors.
const SOON: Duration = Duration::from_secs(10);

/// The resources of the process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Tasks of the current tokio runtime.
    pub tasks: usize,
    /// Open descriptors of the whole process.
    pub descriptors: usize,
    /// Resident memory of the whole process.
    pub resident_bytes: u64,
}

impl Held {
    /// The current resources. Call it within a tokio runtime.
    pub fn now() -> Held {
        let open =
            fs::read_dir("/proc/self/fd").unwrap_or_else(|error| panic!("no /proc: {error}"));
        Held {
            tasks: Handle::current().metrics().num_alive_tasks(),
            descriptors: open.count(),
            resident_bytes: status_bytes("VmRSS:"),
        }
    }

    /// The same, and resets the peak for [`peak_growth_bytes`](Held::peak_growth_bytes).
    pub fn now_and_forget_peak() -> Held {
        let forgotten = fs::write("/proc/self/clear_refs", "5");
        forgotten.unwrap_or_else(|error| panic!("the peak can't be forgotten: {error}"));
        Held::now()
    }

    /// How much the memory has grown since then, at its peak.
    pub fn peak_growth_bytes(&self) -> u64 {
        status_bytes("VmHWM:").saturating_sub(self.resident_bytes)
    }

    /// Waits until the process holds no more tasks and descriptors than `self`. This can take a moment,
    /// because peers notice a closed connection late. Panics if they are not released in time.
    pub async fn await_return(&self) {
        let began = Instant::now();
        let patience = if is_soak() { SOON } else { DEADLINE };
        loop {
            let now = Held::now();
            if now.tasks <= self.tasks && now.descriptors <= self.descriptors {
                return;
            }
            assert!(began.elapsed() < patience, "left behind: {now:?}; before: {self:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn status_bytes(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    let kib = line.trim().strip_suffix(" kB").unwrap_or_default().parse::<u64>();
    kib.unwrap_or_else(|error| panic!("no {field} in /proc/self/status: {error}")) << 10
}
