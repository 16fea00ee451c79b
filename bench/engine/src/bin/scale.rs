//! What scale costs: memory a site and a URL, time to choose, and the durable queue at size.

#![expect(clippy::print_stdout, reason = "tables on standard output are what it is for")]

use anyhow::Result;
use clap::{Parser, Subcommand};
use fetchwell_bench::choosing::nanos_per_choice;
use fetchwell_bench::idle::{engine_bytes_per_site, store_bytes_per_site};
use fetchwell_bench::meter::in_a_child;
use fetchwell_bench::queue::{self, Fill};
use fetchwell_bench::window::bytes_per_url;
use mimalloc::MiMalloc;
use tokio::runtime::Runtime;

/// As in the real program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    measurement: Option<Measurement>,
    /// A hundredth of the sizes, for a look.
    #[arg(long)]
    quick: bool,
    /// Leaves the durable queue out.
    #[arg(long)]
    memory_only: bool,
}

/// What a process of its own measures.
#[derive(Subcommand)]
enum Measurement {
    Window { urls: usize, sites: usize },
    IdleEngine { sites: usize },
    IdleStore { sites: usize },
    Choosing { sites: usize },
    Queue(Fill),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = Runtime::new()?;
    let value = match cli.measurement {
        None => return all(&cli),
        Some(Measurement::Queue(fill)) => return runtime.block_on(queue_row(fill)),
        Some(Measurement::Window { urls, sites }) => {
            runtime.block_on(bytes_per_url(urls, sites))?
        }
        Some(Measurement::IdleEngine { sites }) => {
            runtime.block_on(engine_bytes_per_site(sites))?
        }
        Some(Measurement::IdleStore { sites }) => runtime.block_on(store_bytes_per_site(sites))?,
        Some(Measurement::Choosing { sites }) => nanos_per_choice(sites)?,
    };
    print!("{value:.0}");
    Ok(())
}

fn all(cli: &Cli) -> Result<()> {
    let million = if cli.quick { 10_000 } else { 1_000_000 };
    println!("| memory (resident), {million} of each | bytes |\n|---|---|");
    for (name, measurement) in [
        ("a known idle site, in the engine", vec!["idle-engine", "M"]),
        ("a known idle site, in the store in memory", vec!["idle-store", "M"]),
        ("a URL that waits, 100 a site", vec!["window", "M", "M/100"]),
        ("a URL that waits and its site, one each", vec!["window", "M", "M"]),
    ] {
        println!("| {name} | {} |", in_a_child(&sized(&measurement, million))?);
    }
    println!("\n| sites with something to do | processor time to choose |\n|---|---|");
    for sites in [100, 1_000, 10_000, 100_000, 1_000_000] {
        if sites <= million {
            let nanos = in_a_child(&["choosing".to_owned(), sites.to_string()])?;
            println!("| {sites} | {nanos} ns |");
        }
    }
    if cli.memory_only {
        return Ok(());
    }
    println!(
        "\n| queued in SQLite | sites | closed | put in (processor time a URL) | put in at the end | take | settle | memory | file |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (urls, sites, closed) in [
        ("10000", "1000", "0"),
        ("M", "1000", "0"),
        ("M", "M/10", "0"),
        ("M", "1000", "M"),
        ("10M", "M/10", "0"),
    ] {
        print!("{}", in_a_child(&sized(&["queue", urls, sites, closed], million))?);
    }
    Ok(())
}

/// Arguments, with their sizes filled in.
fn sized(arguments: &[&str], million: usize) -> Vec<String> {
    let fill = |argument: &&str| match *argument {
        "M" => million.to_string(),
        "M/10" => (million / 10).to_string(),
        "M/100" => (million / 100).to_string(),
        "10M" => (10 * million).to_string(),
        other => other.to_owned(),
    };
    arguments.iter().map(fill).collect()
}

async fn queue_row(fill: Fill) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cost = queue::measure(fill, folder.path()).await?;
    let mib = |bytes: u64| bytes >> 20;
    println!(
        "| {} | {} | {} | {:.1} µs | {:.1} µs | {:.1} µs | {:.1} µs | {} MiB | {} MiB |",
        fill.urls,
        fill.sites,
        fill.closed_urls,
        cost.enqueue_micros,
        cost.last_enqueue_micros,
        cost.take_micros,
        cost.settle_micros,
        mib(cost.resident_bytes),
        mib(cost.file_bytes),
    );
    Ok(())
}
