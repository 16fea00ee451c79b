//! `fetchwell serve` beside an earlier `fetchwell serve`: messages and batches that are accepted, stored pages that are
//! read.

#![expect(clippy::print_stdout, reason = "tables on standard output are what it is for")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use fetchwell_bench::inbox::accepting::Load;
use fetchwell_bench::inbox::against::{Made, Task, run};
use fetchwell_bench::inbox::store::Kind;
use fetchwell_bench::meter::{ProcessorTicks, median};
use fetchwell_bench::origin::{self, Origin};
use tokio::runtime::Runtime;

#[derive(Parser)]
#[command(subcommand_negates_reqs = true)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    /// The program that is measured.
    #[arg(long, required = true)]
    program: Option<PathBuf>,
    /// The earlier program.
    #[arg(long, required = true)]
    earlier: Option<PathBuf>,
    /// `sqlite`, or the address of a PostgreSQL server on which databases may be made.
    #[arg(long = "store", default_value = "sqlite", value_name = "sqlite|postgres://…")]
    stores: Vec<Kind>,
    /// What to measure; several, with commas between them.
    #[arg(long, value_delimiter = ',', default_values = ["singles", "batches", "reads"])]
    only: Vec<Part>,
    /// How long each program runs.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How often; the figures are medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Where SQLite files go: on the disk that is meant.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

/// What a process of its own does.
#[derive(Subcommand)]
enum Role {
    #[command(hide = true)]
    Origin,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Singles,
    Batches,
    Reads,
}

impl Part {
    fn task(self) -> Task {
        match self {
            Part::Singles => Task::Accept(Load::Singles),
            Part::Batches => Task::Accept(Load::Batches),
            Part::Reads => Task::Read,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Part::Singles => "`POST /fetch`, 64 connections",
            Part::Batches => "`POST /fetch/batch`, 1,000 each, 16 connections",
            Part::Reads => "`GET /r/` of a stored page, 64 connections",
        }
    }
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = Runtime::new()?;
    match (&cli.role, &cli.program, &cli.earlier) {
        (Some(Role::Origin), ..) => runtime.block_on(origin::announce_and_serve()),
        (None, Some(program), Some(earlier)) => runtime.block_on(all(&cli, program, earlier)),
        _ => Ok(()),
    }
}

async fn all(cli: &Cli, program: &Path, earlier: &Path) -> Result<()> {
    let before = ProcessorTicks::now()?;
    println!(
        "| | earlier, a second | now, a second | now to earlier | p99, earlier and now | processor time each, \
         earlier and now |\n|---|---|---|---|---|---|"
    );
    for kind in &cli.stores {
        for part in &cli.only {
            compare(cli, kind, *part, program, earlier).await?;
        }
    }
    let stolen = ProcessorTicks::percent_stolen_since(before)?;
    println!("\nOthers on the same host took {stolen:.0} % of the processors meanwhile.");
    Ok(())
}

async fn compare(cli: &Cli, kind: &Kind, part: Part, program: &Path, earlier: &Path) -> Result<()> {
    let origin = Origin::start()?;
    let time = Duration::from_secs_f64(cli.seconds);
    let mut rounds: Vec<(Made, Made)> = Vec::new();
    for round in 0..cli.rounds {
        let of = async |program: &Path| {
            run(program, kind, part.task(), &cli.folder, &origin, time).await
        };
        // An earlier program cannot read pages. Who is first in one round is second in the next.
        let pair = match (part, round % 2) {
            (Part::Reads, _) => (Made::default(), of(program).await?),
            (_, 0) => {
                let old = of(earlier).await?;
                (old, of(program).await?)
            }
            _ => {
                let new = of(program).await?;
                (of(earlier).await?, new)
            }
        };
        rounds.push(pair);
    }
    let middle = |read: &dyn Fn(&(Made, Made)) -> f64| median(rounds.iter().map(read).collect());
    let ms = |made: &Made| made.p99.as_secs_f64() * 1e3;
    let new = middle(&|pair| pair.1.per_second);
    let new_p99 = middle(&|pair| ms(&pair.1));
    let new_micros = middle(&|pair| pair.1.micros_each);
    let name = format!("{}: {}", kind.name(), part.name());
    if part == Part::Reads {
        println!("| {name} | – | {new:.0} | – | {new_p99:.1} ms | {new_micros:.1} µs |");
        return Ok(());
    }
    println!(
        "| {name} | {:.0} | {new:.0} | {:.2} | {:.1} and {new_p99:.1} ms | {:.1} and {new_micros:.1} µs |",
        middle(&|pair| pair.0.per_second),
        middle(&|pair| pair.1.per_second / pair.0.per_second),
        middle(&|pair| ms(&pair.0)),
        middle(&|pair| pair.0.micros_each),
    );
    Ok(())
}
