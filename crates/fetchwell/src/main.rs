//! `fetchwell`: give it URLs, from anywhere; it brings the pages back, politely, and loses none.

use std::process::ExitCode;

use clap::Parser;
use fetchwell::cli::{self, Cli};
use mimalloc::MiMalloc;

/// Pages are allocated on one thread and freed on another, where the system's allocator makes threads
/// wait for each other.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let exit = cli::run(Cli::parse()).await.unwrap_or_else(|exit| exit);
    let last_words = exit.to_string();
    if !last_words.is_empty() {
        #[expect(clippy::print_stderr, reason = "the last words, when logging may not have begun")]
        {
            eprintln!("fetchwell: {last_words}");
        }
    }
    exit.code()
}
