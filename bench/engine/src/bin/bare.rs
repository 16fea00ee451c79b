//! The yardstick as anyone would write it: on the system's allocator.

use anyhow::Result;
use clap::Parser;
use fetchwell_bench::bare;
use fetchwell_bench::flow::Load;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    load: Load,
}

#[tokio::main]
async fn main() -> Result<()> {
    bare::fetch_all(Cli::parse().load).await
}
