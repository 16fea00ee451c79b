//! The resource usage of this process, mostly from /proc.

use std::fs;
use std::time::Duration;

use fetchwell_engine::descriptors::Descriptors;

use super::snapshot::ProcessSnapshot;
use crate::metric_set;
use crate::registry::{CounterVec, OptionalGauge};

/// The unit of CPU time in /proc, which is fixed regardless of the timer frequency of the kernel.
const TICKS_PER_SECOND: u64 = 100;
/// The size of a memory page on the supported machines.
const PAGE_BYTES: u64 = 4096;

metric_set! {
    /// Process metrics under the names that the Prometheus client libraries use.
    pub(super) struct ProcessMetrics(registry) {
        resident_bytes: OptionalGauge = registry.optional_gauge(
            "process_resident_memory_bytes", "Resident memory of this process."),
        cpu_s: CounterVec = registry.float_counters(
            "process_cpu_seconds_total", "CPU time of this process, user and system.", &[]),
        open_fds: OptionalGauge = registry.optional_gauge(
            "process_open_fds", "Open file descriptors."),
        max_fds: OptionalGauge = registry.optional_gauge(
            "process_max_fds", "Maximum number of open file descriptors."),
    }
}

impl ProcessMetrics {
    pub(super) fn refresh(&self) {
        let ProcessSnapshot { resident_bytes, cpu, open_fds, max_fds } = look();
        self.resident_bytes.set(resident_bytes.map(|bytes| bytes as f64));
        // A counter cannot be set, only reset.
        self.cpu_s.reset();
        if let Some(cpu) = cpu {
            self.cpu_s.with_label_values::<&str>(&[]).inc_by(cpu.as_secs_f64());
        }
        self.open_fds.set(open_fds.map(|count| count as f64));
        self.max_fds.set(max_fds.map(|count| count as f64));
    }
}

/// The current usage. Without /proc only the limit on file descriptors is known.
pub(super) fn look() -> ProcessSnapshot {
    ProcessSnapshot {
        resident_bytes: read("/proc/self/statm").as_deref().and_then(resident_bytes),
        cpu: read("/proc/self/stat").as_deref().and_then(cpu),
        open_fds: fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64),
        max_fds: Descriptors::of_this_process().limit(),
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn resident_bytes(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// The name of the program is in parentheses and may contain any character; user and system time are the 12th and 13th
/// fields after it.
fn cpu(stat: &str) -> Option<Duration> {
    let after_name = stat.rsplit_once(") ")?.1;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let total = ticks()? + ticks()?;
    Some(Duration::from_millis(total * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_read() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 100 1000 10 99";
        assert_eq!(cpu(stat), Some(Duration::from_secs(3)));
        assert_eq!(resident_bytes("100 25 3 4 0 5 0"), Some(25 * 4096));
        for nonsense in ["", "x", ") "] {
            assert_eq!((cpu(nonsense), resident_bytes(nonsense)), (None, None));
        }
    }

    #[test]
    fn this_process_has_memory_and_files() {
        let now = look();
        assert!(now.resident_bytes.unwrap() > 100_000 && now.open_fds.unwrap() >= 3, "{now:?}");
    }
}
