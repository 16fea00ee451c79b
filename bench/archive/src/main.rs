//! Reads archives and indexes, and makes large ones to read. `bench/archive/run` is who calls it.

#![expect(clippy::print_stdout, reason = "what it found goes to standard output")]

mod index;
mod make;
mod read;
mod samples;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use mimalloc::MiMalloc;

/// As in the real program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Parser)]
enum Task {
    /// Writes an archive of pages and samples, with about so many bytes in it when inflated.
    MakeWarc { data: PathBuf, out: PathBuf, content_bytes: u64 },
    /// Writes `cluster.idx` and `cdx-00000.gz` into a folder, with about so many bytes of lines.
    MakeIndex { data: PathBuf, folder: PathBuf, content_bytes: u64 },
    /// Reads an archive up to the body of each HTTP message.
    ReadWarc { file: PathBuf },
    /// Inflates the blocks of an index, filters their lines and makes batches.
    Batch { folder: PathBuf },
    /// Says of a sample what became of each of its records: a JSON value a line.
    Sample { file: PathBuf },
}

fn main() -> Result<()> {
    let said = match Task::parse() {
        Task::MakeWarc { data, out, content_bytes } => make::warc(&data, &out, content_bytes)?,
        Task::MakeIndex { data, folder, content_bytes } => {
            index::make(&data, &folder, content_bytes)?
        }
        Task::ReadWarc { file } => read::warc(&file)?,
        Task::Batch { folder } => index::batch(&folder)?,
        Task::Sample { file } => samples::told(&file)?,
    };
    println!("{said}");
    Ok(())
}
