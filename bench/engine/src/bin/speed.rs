//! Processor time a page of the whole flow, in units of a bare reqwest loop's.
//!
//! The origin is a process of its own, so its time is not counted. The contestants take turns, each in a
//! process of its own, with the same pages and as many requests at once. Part of what the engine saves is
//! its allocator's doing, so the loop runs twice: as anyone would write it, and on the same allocator.

#![expect(clippy::print_stdout, reason = "a table on standard output is what it is for")]

use anyhow::Result;
use clap::{Parser, Subcommand};
use fetchwell_bench::bare;
use fetchwell_bench::flow::{self, Load};
use fetchwell_bench::meter::{median, processor_micros};
use fetchwell_bench::origin::{self, Origin};
use mimalloc::MiMalloc;
use tokio::runtime::Runtime;

/// As in the real program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    /// Pages a round and contestant.
    #[arg(long, default_value_t = 20_000)]
    pages: usize,
    /// Sites that the pages are of.
    #[arg(long, default_value_t = 8)]
    sites: usize,
    /// Requests at once.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

/// What a process of its own does.
#[derive(Subcommand)]
enum Role {
    Origin,
    Bare(Load),
    Memory(Load),
    Durable(Load),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = Runtime::new()?;
    match cli.role {
        None => compare(&cli),
        Some(Role::Origin) => runtime.block_on(origin::announce_and_serve()),
        Some(Role::Bare(load)) => runtime.block_on(bare::fetch_all(load)),
        Some(Role::Memory(load)) => runtime.block_on(flow::in_memory(load)),
        Some(Role::Durable(load)) => {
            let folder = tempfile::tempdir()?;
            runtime.block_on(flow::durable(load, folder.path()))
        }
    }
}

fn compare(cli: &Cli) -> Result<()> {
    let origin = Origin::start()?;
    let this = std::env::current_exe()?;
    let contestants = [
        ("bare reqwest loop", this.with_file_name("bare"), None),
        ("bare reqwest loop, on the engine's allocator", this.clone(), Some("bare")),
        ("engine, queue in memory", this.clone(), Some("memory")),
        ("engine, durable queue and output", this.clone(), Some("durable")),
    ];
    let mut micros: Vec<[f64; 4]> = Vec::new();
    for _ in 0..cli.rounds {
        let mut round = [0.0; 4];
        for (took, (_, program, role)) in round.iter_mut().zip(&contestants) {
            let arguments = arguments(cli, *role, origin.port);
            *took = processor_micros(program, &arguments)? as f64 / cli.pages as f64;
        }
        micros.push(round);
    }
    println!(
        "{} pages of {} KiB, {} sites, {} requests at once, median of {} rounds\n",
        cli.pages,
        origin::PAGE_BYTES >> 10,
        cli.sites,
        cli.connections,
        cli.rounds
    );
    println!("| | processor time a page | to the bare loop | to the one on the same allocator |");
    println!("|---|---|---|---|");
    for (place, (name, ..)) in contestants.iter().enumerate() {
        let took = median(micros.iter().map(|round| round[place]).collect());
        let [ratio, same_allocator] = [0, 1]
            .map(|loops| median(micros.iter().map(|round| round[place] / round[loops]).collect()));
        println!("| {name} | {took:.0} µs | {ratio:.2} | {same_allocator:.2} |");
    }
    Ok(())
}

fn arguments(cli: &Cli, role: Option<&str>, port: u16) -> Vec<String> {
    let load = [usize::from(port), cli.pages, cli.sites, cli.connections].map(|n| n.to_string());
    role.map(str::to_owned).into_iter().chain(load).collect()
}
