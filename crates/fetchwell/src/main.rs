//! `fetchwell`: fetches web pages politely, without losing any.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Pages are allocated on one thread and freed on another; with the system allocator, this makes threads wait for each
/// other.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    fetchwell::cli::main()
}
