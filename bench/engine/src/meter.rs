//! What a process used, and how it tells its parent.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Bytes of memory that this process has in use, by the system's count.
pub fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).context("no VmRSS")?;
    Ok(kib.trim().parse::<u64>()? * 1_024)
}

/// What the processors of this machine were there for, in ticks of the system.
#[derive(Clone, Copy)]
pub struct ProcessorTicks {
    all: u64,
    stolen: u64,
}

impl ProcessorTicks {
    /// Since the machine began.
    pub fn now() -> Result<ProcessorTicks> {
        let text = std::fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().and_then(|line| line.strip_prefix("cpu "));
        // User, nice, system, idle, waiting for disks, two kinds of interrupts, stolen; guests count as users.
        let ticks: Vec<u64> = line
            .context("/proc/stat does not begin with cpu")?
            .split_whitespace()
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        Ok(ProcessorTicks { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) })
    }

    /// How many of a hundred other machines on the same host took since then. Where that is much, a loop with one
    /// thread is hurt less than a program with several.
    pub fn percent_stolen_since(earlier: ProcessorTicks) -> Result<f64> {
        let now = ProcessorTicks::now()?;
        let all = now.all.saturating_sub(earlier.all).max(1);
        Ok(100.0 * now.stolen.saturating_sub(earlier.stolen) as f64 / all as f64)
    }
}

/// Processor time that this process has used, user and system. Unlike the time on a clock it does not
/// grow with what else the machine does.
pub fn own_micros() -> Result<i64> {
    Ok(micros(getrusage(UsageWho::RUSAGE_SELF)?))
}

/// The same of the children that have ended.
fn children_micros() -> Result<i64> {
    Ok(micros(getrusage(UsageWho::RUSAGE_CHILDREN)?))
}

fn micros(usage: Usage) -> i64 {
    usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
}

/// Runs this program again with other arguments, and returns what it printed.
pub fn in_a_child(arguments: &[String]) -> Result<String> {
    run(&std::env::current_exe()?, arguments)
}

/// Runs a program, and returns the microseconds of processor time that it took.
pub fn processor_micros(program: &Path, arguments: &[String]) -> Result<i64> {
    let before = children_micros()?;
    run(program, arguments)?;
    Ok(children_micros()? - before)
}

fn run(program: &Path, arguments: &[String]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{} could not be started", program.display()))?;
    let command = || format!("{} {}", program.display(), arguments.join(" "));
    ensure!(output.status.success(), "`{}` failed: {}", command(), output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The one in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
