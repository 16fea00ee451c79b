//! What the extractor makes of a folder of pages, and what that costs.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

mod pages;
mod timing;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use fetchwell_extract::{decode, extract};
use serde_json::json;

use pages::Page;

/// As in the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the extractor over pages, for measuring.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints one JSON line a page: id, text, title, date and the other fields.
    Write {
        /// A folder with truth.json and a page in each ID.html.gz.
        folder: PathBuf,
    },
    /// Prints one JSON line a round: seconds of processor time for all pages, by kind of work.
    Time {
        /// A folder with truth.json and a page in each ID.html.gz.
        folder: PathBuf,
        /// How often to go through all pages.
        #[arg(long, default_value_t = 1)]
        rounds: usize,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Write { folder } => pages::read(&folder)?.iter().for_each(print_fields),
        Command::Time { folder, rounds } => {
            let pages = pages::read(&folder)?;
            for _ in 0..rounds {
                println!("{}", timing::measure(&pages)?);
            }
        }
    }
    Ok(())
}

fn print_fields(page: &Page) {
    let html = decode(&page.body, None).text;
    let article = extract(&html, &page.url);
    let line = json!({
        "id": page.id,
        "title": article.title,
        "date": article.published,
        "author": article.author,
        "lang": article.lang,
        "image": article.image,
        "canonical": article.canonical,
        "abstract": article.abstract_text,
        "text": article.text,
        "markdown": article.markdown,
    });
    println!("{line}");
}
