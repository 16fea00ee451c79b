//! Runs the simulated fleet: one seed with its trace, or many seeds until one fails.

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use fetchwell_engine::seed::random_seed;
use fetchwell_fleet::{
    Load, Measured, Report, ScenarioOverrides, Tracing, measure, page, run, shrink,
};

/// Seeds of a series are at most this large, so that they are easy to type.
const MAX_FIRST_SEED: u64 = 1_000_000_000;

/// Runs simulated fleets of Fetchwell, and checks that they lose nothing and are polite.
#[derive(Parser)]
struct Arguments {
    /// Run this seed and print its trace.
    #[arg(long, required_unless_present_any = ["seeds", "speed", "scale"])]
    seed: Option<u64>,
    /// Run this many seeds, and print what failed.
    #[arg(long, conflicts_with = "seed")]
    seeds: Option<u64>,
    /// The first of these seeds [default: random].
    #[arg(long, requires = "seeds")]
    first: Option<u64>,
    /// Stop at the first seed that fails.
    #[arg(long, requires = "seeds")]
    fail_fast: bool,
    /// Print the result, but not the trace.
    #[arg(long)]
    quiet: bool,
    /// Also write the run to this file, as a page that plays it.
    #[arg(long, requires = "seed", value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Look for a smaller scenario that fails in the same way.
    #[arg(long)]
    shrink: bool,
    /// Measure how fast the simulation is, without faults: in release mode, it takes a minute.
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    speed: bool,
    /// Measure a large fleet, without faults: so many machines, sites and URLs. In release mode, 64 machines with 10
    /// million URLs take half an hour and 10 GiB.
    #[arg(long, num_args = 3, value_names = ["MACHINES", "SITES", "URLS"], conflicts_with_all = ["seed", "seeds", "speed"])]
    scale: Option<Vec<usize>>,
    /// Append the arguments of each smaller scenario to this file.
    #[arg(long, requires_all = ["seeds", "shrink"], value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    overrides: ScenarioOverrides,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    match (arguments.seed, arguments.seeds, arguments.scale.as_deref()) {
        (Some(seed), ..) => one(&arguments, seed),
        (None, Some(seeds), _) => many(&arguments, seeds),
        (None, None, Some(&[machines, sites, urls])) => scale(machines, sites, urls),
        (None, None, _) => speed(),
    }
}

fn one(arguments: &Arguments, seed: u64) -> anyhow::Result<ExitCode> {
    let scenario = arguments.overrides.scenario(seed);
    let mut out = stdout().lock();
    writeln!(out, "{scenario}")?;
    let began = Instant::now();
    let is_kept = !arguments.quiet || arguments.html.is_some();
    let report = run(&scenario, if is_kept { Tracing::Kept } else { Tracing::Hashed })?;
    let took = began.elapsed();
    for entry in report.trace.iter().filter(|_| !arguments.quiet) {
        writeln!(out, "{entry}")?;
    }
    if let Some(file) = &arguments.html {
        fs::write(file, page(&scenario, &report.trace))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let Report { trace_hash, events, lasted, requests, .. } = &report;
    let simulated_s = lasted.as_secs_f64();
    writeln!(
        out,
        "trace {trace_hash:016x}: {events} events and {requests} requests in {simulated_s:.0} simulated seconds; \
         {:.3} s real time",
        took.as_secs_f64()
    )?;
    let Some(failure) = report.failure else { return Ok(ExitCode::SUCCESS) };
    writeln!(out, "FAILED {failure}")?;
    if arguments.shrink {
        writeln!(out, "smaller: {}", shrink(&scenario)?.command())?;
    }
    Ok(ExitCode::FAILURE)
}

fn many(arguments: &Arguments, seeds: u64) -> anyhow::Result<ExitCode> {
    let first = arguments.first.unwrap_or_else(|| random_seed() % MAX_FIRST_SEED);
    let mut out = stdout().lock();
    let began = Instant::now();
    let mut failed = 0_u64;
    let mut tried = 0_u64;
    let mut simulated = Duration::ZERO;
    let mut requests = 0;
    for seed in first..first.saturating_add(seeds) {
        let scenario = arguments.overrides.scenario(seed);
        let report = run(&scenario, Tracing::Off).with_context(|| scenario.command())?;
        tried += 1;
        simulated += report.lasted;
        requests += report.requests;
        let Some(failure) = report.failure else { continue };
        failed += 1;
        writeln!(out, "{}\n    {failure}", scenario.command())?;
        if arguments.shrink {
            let smaller = shrink(&scenario)?;
            writeln!(out, "    smaller: {}", smaller.command())?;
            if let Some(file) = &arguments.record {
                let comment = failure.to_string().replace('\n', " ");
                let entry = format!("\n# {comment}\n{}\n", smaller.arguments());
                let opened = fs::OpenOptions::new().append(true).create(true).open(file);
                opened
                    .and_then(|mut records| records.write_all(entry.as_bytes()))
                    .with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
        out.flush()?;
        if arguments.fail_fast {
            break;
        }
    }
    let took_s = began.elapsed().as_secs_f64();
    writeln!(
        out,
        "seeds {first} to {}: {failed} of {tried} failed; {:.1} simulated hours and {requests} requests in {took_s:.1} s",
        first.saturating_add(tried).saturating_sub(1),
        simulated.as_secs_f64() / 3_600.0
    )?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The share of the largest site in `--scale`: with 100,000 sites, it has a hundred times as many URLs as the smallest.
const EXPONENT: f64 = 0.4;

/// Measures a fleet with little to do, and one with much.
fn speed() -> anyhow::Result<ExitCode> {
    let quiet =
        Load { machines: 8, sites: 1_000, urls: 18_000, urls_per_second: Some(5), exponent: 0.0 };
    let busy = Load { sites: 2_000, urls: 200_000, urls_per_second: None, ..quiet };
    let has_failed = [("quiet", quiet), ("busy", busy)].into_iter().map(|(name, load)| {
        let measured = measure(&load)?;
        report(name, &load, &measured)
    });
    let has_failed = has_failed.collect::<anyhow::Result<Vec<bool>>>()?;
    Ok(if has_failed.contains(&true) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn scale(machines: usize, sites: usize, urls: usize) -> anyhow::Result<ExitCode> {
    let load = Load { machines, sites, urls, urls_per_second: None, exponent: EXPONENT };
    let has_failed = report("scale", &load, &measure(&load)?)?;
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints the result of a measurement, and returns whether a check failed.
fn report(name: &str, load: &Load, measured: &Measured) -> anyhow::Result<bool> {
    let mut out = stdout().lock();
    let Load { machines, sites, urls, .. } = load;
    let Measured { failure, requests, store_calls, simulated, shortest, took } = measured;
    let simulated_s = simulated.as_secs_f64();
    let took_s = took.as_secs_f64();
    writeln!(
        out,
        "{name}: {machines} machines, {sites} sites, {urls} URLs: {requests} requests in {simulated_s:.1} simulated seconds \
         and {took_s:.1} s: {:.0} simulated seconds and {:.0} requests per second; {:.3} times the shortest possible time \
         of {:.0} s; {:.2} store calls per URL",
        simulated_s / took_s,
        *requests as f64 / took_s,
        simulated_s / shortest.as_secs_f64(),
        shortest.as_secs_f64(),
        *store_calls as f64 / *urls as f64
    )?;
    if let Some(failure) = failure {
        writeln!(out, "FAILED {failure}")?;
    }
    Ok(failure.is_some())
}
