//! What the worst page takes, of processor time and of memory beside the page itself.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_MEMORY_BYTES: u64 = 256 << 20;

#[derive(Default)]
pub(crate) struct Costs {
    pages: usize,
    slowest: (Duration, String),
    largest: (u64, String),
}

impl Costs {
    pub(crate) fn measure(&mut self, name: &str, work: impl FnOnce()) {
        // The peak begins anew at what is held now. Where that is forbidden, the peak of all before counts.
        drop(std::fs::write("/proc/self/clear_refs", "5"));
        let held = status_bytes("VmRSS:");
        let start = thread_time();
        work();
        let time = thread_time() - start;
        let memory = status_bytes("VmHWM:").saturating_sub(held);
        self.pages += 1;
        if time > self.slowest.0 {
            self.slowest = (time, name.to_owned());
        }
        if memory > self.largest.0 {
            self.largest = (memory, name.to_owned());
        }
    }

    /// Fails if the worst is too much; else says what it was.
    pub(crate) fn worst(&self) -> String {
        let (time, slowest) = &self.slowest;
        let (memory, largest) = &self.largest;
        assert!(*time <= MAX_TIME, "{slowest} took {time:?}");
        assert!(*memory <= MAX_MEMORY_BYTES, "{largest} took {memory} bytes");
        let megabytes = memory >> 20;
        format!(
            "{} pages: at most {time:?} ({slowest:?}), {megabytes} MB ({largest:?})",
            self.pages
        )
    }
}

/// Unlike the time on a clock it does not grow with what else the machine does.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

fn status_bytes(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() << 10
}
