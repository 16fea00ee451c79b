//! `fetchwell`: give it URLs, from anywhere; it brings the pages back, politely, and loses none.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Pages are allocated on one thread and freed on another, where the system's allocator makes threads
/// wait for each other.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    fetchwell::cli::main()
}
