//! What the inbox of `fetchwell serve` takes in and gives out, beside bare loops on the same store.

#![expect(clippy::print_stdout, reason = "tables on standard output are what it is for")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use fetchwell_bench::inbox::accepting::{self, Load, Round, bare_loops};
use fetchwell_bench::inbox::claims::{self, Filled};
use fetchwell_bench::inbox::store::{Kind, Store};
use fetchwell_bench::inbox::{looking, whole};
use fetchwell_bench::meter::median;
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
    /// `sqlite`, or the address of a PostgreSQL server on which databases may be made; several: one after
    /// the other.
    #[arg(long = "store", default_value = "sqlite", value_name = "sqlite|postgres://…")]
    stores: Vec<Kind>,
    /// What to measure; several, with commas between them.
    #[arg(long, value_delimiter = ',', default_values = ["singles", "batches", "whole", "claims", "looking"])]
    only: Vec<Part>,
    /// How long each loop and each program runs, for messages that are accepted.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How often; the figures are medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Claims are timed at 1,000 messages, at ten times that, and so on up to this. Without it: ten
    /// million on SQLite, a million on PostgreSQL.
    #[arg(long)]
    most_queued: Option<usize>,
    /// Operators' questions are asked where so many messages are.
    #[arg(long, default_value_t = 1_000_000)]
    messages: usize,
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
    Whole,
    Claims,
    Looking,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = Runtime::new()?;
    match cli.role {
        Some(Role::Origin) => runtime.block_on(origin::announce_and_serve()),
        None => runtime.block_on(all(&cli)),
    }
}

async fn all(cli: &Cli) -> Result<()> {
    for kind in &cli.stores {
        for part in &cli.only {
            match part {
                Part::Singles => accept(cli, kind, Load::Singles).await?,
                Part::Batches => accept(cli, kind, Load::Batches).await?,
                Part::Whole => whole_way(cli, kind).await?,
                Part::Claims => claim(cli, kind).await?,
                Part::Looking => look(cli, kind).await?,
            }
        }
    }
    Ok(())
}

async fn accept(cli: &Cli, kind: &Kind, load: Load) -> Result<()> {
    let origin = Origin::start()?;
    let time = Duration::from_secs_f64(cli.seconds);
    let mut rounds: Vec<Round> = Vec::new();
    for _ in 0..cli.rounds {
        rounds.push(accepting::round(kind, load, &cli.folder, &origin, time).await?);
    }
    let (what, connections, goal) = match load {
        Load::Singles => ("singles", accepting::SINGLES_AT_ONCE, 60),
        Load::Batches => ("batches of 1,000", accepting::BATCHES_AT_ONCE, 80),
    };
    println!("\n| {}: {what} | rows a second | `serve` makes of it |\n|---|---|---|", kind.name());
    let loops = bare_loops(kind, load);
    let middle = |read: &dyn Fn(&Round) -> f64| median(rounds.iter().map(read).collect());
    for (place, bare) in loops.iter().enumerate() {
        println!(
            "| bare: {} | {:.0} | {:.0} %{} |",
            bare.name,
            middle(&|round| round.bare[place]),
            middle(&|round| 100.0 * round.accepted.per_second / round.bare[place]),
            if bare.counts { format!(" (goal: {goal} %)") } else { String::new() },
        );
    }
    let store_alone = middle(&|round| round.store_alone);
    println!("| its store alone, {connections} tasks | {store_alone:.0} | |");
    let http_alone = middle(&|round| round.accepted.http_alone);
    println!(
        "| its HTTP alone (`GET /livez`; requests a second), {connections} connections | {http_alone:.0} | |"
    );
    let per_second = middle(&|round| round.accepted.per_second);
    println!("| `fetchwell serve`, {connections} connections | {per_second:.0} | |");
    println!(
        "\nAn answer took {:.1} ms in the middle and {:.1} ms at the 99th percentile. Processor time of the \
         program: {:.1} µs a message. Others on the same host took {:.0} % of the processors meanwhile.",
        middle(&|round| round.accepted.p50.as_secs_f64() * 1e3),
        middle(&|round| round.accepted.p99.as_secs_f64() * 1e3),
        middle(&|round| round.accepted.micros_each),
        middle(&|round| round.percent_stolen),
    );
    Ok(())
}

async fn whole_way(cli: &Cli, kind: &Kind) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..cli.rounds {
        rounds.push(whole::measure(kind, &cli.folder, whole::MESSAGES, whole::SITES).await?);
    }
    let middle = |read: &dyn Fn(&whole::Took) -> f64| median(rounds.iter().map(read).collect());
    println!(
        "\n| {}: from the first message to the last result | messages a second | of it, accepting | \
         processor time of the program |\n|---|---|---|---|",
        kind.name()
    );
    println!(
        "| {} messages, {} sites, pages of {} KiB | {:.0} | {:.1} of {:.1} s | {:.0} µs a message |",
        whole::MESSAGES,
        whole::SITES,
        origin::PAGE_BYTES >> 10,
        middle(&|took| whole::MESSAGES as f64 / took.time.as_secs_f64()),
        middle(&|took| took.accepting.as_secs_f64()),
        middle(&|took| took.time.as_secs_f64()),
        middle(&|took| took.micros_each),
    );
    Ok(())
}

async fn claim(cli: &Cli, kind: &Kind) -> Result<()> {
    let most = cli.most_queued.unwrap_or(match kind {
        Kind::Sqlite => 10_000_000,
        Kind::Postgres(_) => 1_000_000,
    });
    let store = Store::fresh(kind, &cli.folder).await?;
    let mut filled = Filled::open(kind, &store).await?;
    println!(
        "\n| {}: queued, {} sites | claim of {}, 64 of a site | to the first | claim of {}, 1 of a site | \
         to the first |\n|---|---|---|---|---|",
        kind.name(),
        claims::SITES,
        claims::A_TAKE,
        claims::A_TAKE,
    );
    let mut first = None;
    for queued in std::iter::successors(Some(1_000), |queued| Some(queued * 10)) {
        if queued > most {
            break;
        }
        let claim = filled.claim_at(queued).await?;
        let (many, one) = *first.get_or_insert((claim.many_of_a_site, claim.one_of_a_site));
        println!(
            "| {queued} | {:.2} ms | {:.2} | {:.2} ms | {:.2} |",
            claim.many_of_a_site,
            claim.many_of_a_site / many,
            claim.one_of_a_site,
            claim.one_of_a_site / one,
        );
    }
    if let Some(plans) = filled.plans().await? {
        println!("\n{plans}");
    }
    drop(filled);
    store.remove().await
}

async fn look(cli: &Cli, kind: &Kind) -> Result<()> {
    let store = Store::fresh(kind, &cli.folder).await?;
    let answers = looking::measure(kind, &store, cli.messages).await?;
    println!(
        "\n| {}: {} messages, {} sites | in the middle | at the longest (goal: 200 ms) |\n|---|---|---|",
        kind.name(),
        cli.messages,
        looking::SITES,
    );
    for looking::Answered { question, middle, longest } in answers {
        println!("| {question} | {middle:.1} ms | {longest:.1} ms |");
    }
    store.remove().await
}
